// Package rig holds what benchmarks share: children and folders that end with a group of measurements, CPU time and memory of
// processes, and the report.
package rig

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"sync"
	"syscall"
	"testing"
)

// Scope is what a group measures with. It stands in for a testing.TB, so that packages made for tests (testvault, testservice) start
// their real parts here too: of that interface it has the methods which those use.
type Scope struct {
	testing.TB

	mu       sync.Mutex
	cleanups []func()
}

// Failure ends a group by a panic, as testing.TB has no other way.
type Failure struct{ Err error }

// Run ends with the error that Check or Must met. A signal ends the program, with its children.
func (b *Scope) Run(measure func()) (err error) {
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM)
	go func() {
		fmt.Fprintln(os.Stderr, "stopped:", <-signals)
		b.Close()
		os.Exit(1)
	}()
	defer func() {
		if p := recover(); p != nil {
			f, ok := p.(Failure)
			if !ok {
				panic(p)
			}
			err = f.Err
		}
	}()
	measure()
	return nil
}

// Close ends everything, the last first.
func (b *Scope) Close() {
	b.mu.Lock()
	cleanups := b.cleanups
	b.cleanups = nil
	b.mu.Unlock()
	for _, cleanup := range slices.Backward(cleanups) {
		cleanup()
	}
}

// Must ends the group on an error.
func Must[T any](value T, err error) T {
	Check(err)
	return value
}

// Check ends the group on an error.
func Check(err error) {
	if err != nil {
		panic(Failure{err})
	}
}

// Helper implements testing.TB.
func (*Scope) Helper() {}

// Cleanup implements testing.TB.
func (b *Scope) Cleanup(f func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.cleanups = append(b.cleanups, f)
}

// Fatal implements testing.TB.
func (*Scope) Fatal(args ...any) { panic(Failure{errors.New(fmt.Sprint(args...))}) }

// Fatalf implements testing.TB.
func (*Scope) Fatalf(format string, args ...any) { panic(Failure{fmt.Errorf(format, args...)}) }

// Skip implements testing.TB: a benchmark leaves out nothing.
func (b *Scope) Skip(args ...any) { b.Fatal(args...) }

// Failed implements testing.TB.
func (*Scope) Failed() bool { return false }

// Log implements testing.TB.
func (*Scope) Log(args ...any) { fmt.Fprintln(os.Stderr, args...) }

// Logf implements testing.TB.
func (*Scope) Logf(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) }

// Context implements testing.TB.
func (*Scope) Context() context.Context { return context.Background() }

// TempDir implements testing.TB.
func (b *Scope) TempDir() string {
	dir := Must(os.MkdirTemp("", "cipherlane-bench-"))
	b.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}
