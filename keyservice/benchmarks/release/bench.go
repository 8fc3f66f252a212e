// The life of a group of measurements: a folder, children and servers that end with it.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// bench is what a group measures with. It stands in for a testing.TB, so that package testvault starts real Vaults here too: of that
// interface it has the methods which that package uses.
type bench struct {
	testing.TB
	report   *report
	requests int
	cleanups []func()
}

func newBench(out *report, requests int) *bench { return &bench{report: out, requests: requests} }

// failure ends a group by a panic, as testing.TB has no other way.
type failure struct{ err error }

func (b *bench) run(measure func(*bench)) (err error) {
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(failure)
			if !ok {
				panic(p)
			}
			err = f.err
		}
	}()
	measure(b)
	return nil
}

func (b *bench) close() {
	for _, cleanup := range slices.Backward(b.cleanups) {
		cleanup()
	}
}

// must ends the group on an error.
func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

// Helper implements testing.TB.
func (*bench) Helper() {}

// Cleanup implements testing.TB.
func (b *bench) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }

// Fatal implements testing.TB.
func (*bench) Fatal(args ...any) { panic(failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf implements testing.TB.
func (*bench) Fatalf(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// Skip implements testing.TB: a benchmark leaves out nothing.
func (b *bench) Skip(args ...any) { b.Fatal(args...) }

// Failed implements testing.TB.
func (*bench) Failed() bool { return false }

// Log implements testing.TB.
func (*bench) Log(args ...any) { fmt.Fprintln(os.Stderr, args...) }

// Logf implements testing.TB.
func (*bench) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Context implements testing.TB.
func (*bench) Context() context.Context { return context.Background() }

// TempDir implements testing.TB.
func (b *bench) TempDir() string {
	dir := must(os.MkdirTemp("", "cipherlane-bench-"))
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// config of every service here: one principal makes all the load, which is more than it may make otherwise.
const config = `tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
policy: policy.yaml
audit: {file: audit.jsonl}
limits: {principal: {rate: 1000000, burst: 10000000}}
store:
`

// folder makes one for the dev command, with a store.
func (b *bench) folder(store string) string {
	dir := filepath.Join(b.TempDir(), "dev")
	check(os.MkdirAll(dir, 0o700))
	check(os.WriteFile(filepath.Join(dir, "keyservice.yaml"), []byte(config+store), 0o600))
	return dir
}

const embedded = "  embedded: {path: keys.db, kek: kek.json}\n"
