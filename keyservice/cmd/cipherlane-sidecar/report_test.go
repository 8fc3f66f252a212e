// What the key service shows of a sidecar that runs.

package main

import (
	"os"
	"slices"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// reported waits until an operator is shown what goes through the sidecar: who writes what, under which lease, and what was refused.
func (g *guarded) reported(t *testing.T) {
	t.Helper()
	writer, client := g.as(t, "writer"), g.operator(t)
	var shown operator.View
	eventually(t, "a report of the writer", func() bool {
		if err := write(t, writer, "open"); err != nil { // so that its lease has time left, whenever the report is made
			t.Fatal(err)
		}
		shown = operator.View{}
		if err := client.Get(t.Context(), "/v1/sidecars", nil, &shown); err != nil {
			t.Fatal(err)
		}
		return len(shown.Sidecars) == 1 && slices.ContainsFunc(shown.Sidecars[0].Uses, writesUnderALease)
	})
	s := shown.Sidecars[0]
	host, err := os.Hostname()
	if err != nil || s.Host != host || s.Principal != "spiffe://dev.cipherlane/sidecar" || !slices.Contains(s.Listens, g.sidecar.Listeners["kafka"]) {
		t.Errorf("%q of %q listens on %v; %v", s.Principal, s.Host, s.Listens, err)
	}
	if s.Age > view.Forget.Seconds() || s.Uptime <= 0 || s.Certificate <= 0 || s.Certificate > 3600 {
		t.Errorf("reported %v s ago, up for %v s, with a certificate for %v s", s.Age, s.Uptime, s.Certificate)
	}
	if !slices.ContainsFunc(s.Connections, func(c view.Connection) bool {
		return c.Principal == "spiffe://dev.cipherlane/writer" && c.Client == "test-writer" && c.Remote != "" && c.Certificate > 0
	}) {
		t.Errorf("the writer's connection is not among %+v", s.Connections)
	}
	// A producer asks for Metadata before it writes.
	if !slices.ContainsFunc(s.Denials, func(d view.Denial) bool {
		return d.Principal == "spiffe://dev.cipherlane/writer" && d.Action == "describe" && d.Name == "secret" && d.Code == "topic-forbidden" && d.Count > 0
	}) {
		t.Errorf("what the writer was refused is not among %+v", s.Denials)
	}
}

func writesUnderALease(u view.Use) bool {
	const lease = 2 // seconds, in the policy
	return u.Principal == "spiffe://dev.cipherlane/writer" && u.Action == "write" && u.Name == "open" && u.Requests > 0 && u.Records > 0 && u.Bytes > 0 &&
		u.ExpiresIn > 0 && u.ExpiresIn <= lease
}
