// The life of a group of measurements: a folder, children and servers that end with it.

package main

import (
	"os"
	"path/filepath"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

// bench is what a group measures with.
type bench struct {
	rig.Scope

	report   *rig.Report
	requests int
}

func newBench(out *rig.Report, requests int) *bench { return &bench{report: out, requests: requests} }

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
	rig.Check(os.MkdirAll(dir, 0o700))
	rig.Check(os.WriteFile(filepath.Join(dir, "keyservice.yaml"), []byte(config+store), 0o600))
	return dir
}

const embedded = "  embedded: {path: keys.db, kek: kek.json}\n"
