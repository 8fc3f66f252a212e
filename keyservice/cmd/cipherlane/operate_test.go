// The commands that call the key service, against a real one.

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const operatorPolicy = `version: 1
topics:
  - topics: ["claims", "claims.*"]
    mode: encrypt
    scope: claims
  - topics: ["*"]
    mode: encrypt
grants:
  - principals: ["spiffe://dev.cipherlane/producer"]
    actions: [encrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/consumer"]
    actions: [decrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [rotate, destroy]
    scopes: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [admin, revoke]
`

// shows runs a command for people and sees that the text has what it should.
func shows(t *testing.T, k *testservice.KeyService, args []string, wants ...string) string {
	t.Helper()
	out := tool(t, append([]string{"--config", k.Operator}, args...)...).ok(t)
	for _, want := range wants {
		if !strings.Contains(out, want) {
			t.Errorf("%v: %q is not in\n%s", args, want, out)
		}
	}
	return out
}

func asks(t *testing.T, k *testservice.KeyService, answer any, args ...string) {
	t.Helper()
	tool(t, append([]string{"--config", k.Operator, "--json"}, args...)...).json(t, answer)
}

func TestStatusAndPolicy(t *testing.T) {
	k := testservice.StartKeyService(t, operatorPolicy)
	shows(t, k, []string{"status"}, "ready", "yes", "embedded", k.URL)
	var status struct{ Ready bool }
	asks(t, k, &status, "status")
	if !status.Ready {
		t.Error("not ready")
	}
	if out := shows(t, k, []string{"policy", "show"}, "# loaded", "4 grants"); !strings.HasSuffix(out, operatorPolicy) {
		t.Errorf("%s", out)
	}
	stranger := k.Principals["stranger"]
	for _, args := range [][]string{{"status"}, {"policy", "show"}, {"scopes"}, {"keys", "claims"}, {"leases"}, {"revocations"}, {"rewrap"}} {
		tool(t, append([]string{"--config", k.Operator, "--certificate", stranger.Certificate, "--key", stranger.Key}, args...)...).fails(t, 1, "not-authorized")
	}
}

func TestScopesAndKeys(t *testing.T) {
	k := testservice.StartKeyService(t, operatorPolicy)
	first := encryptionKey(t, k, "claims").Kid
	shows(t, k, []string{"rotate", "claims"}, "Scope claims has a new current key")
	second := encryptionKey(t, k, "claims").Kid
	encryptionKey(t, k, "other")
	shows(t, k, []string{"scopes"}, "claims  "+second, "other", "1d 0h")
	shows(t, k, []string{"keys", "claims"}, first+"  readable", second+"  current")
	var keys struct {
		Keys []struct{ Kid, State string }
	}
	asks(t, k, &keys, "keys", "claims")
	if len(keys.Keys) != 2 || keys.Keys[0].Kid != first || keys.Keys[1].State != "current" {
		t.Errorf("%+v", keys)
	}
	tool(t, "--config", k.Operator, "keys", "none").fails(t, 1, "topic-unknown")
}

func TestDestroy(t *testing.T) {
	k := testservice.StartKeyService(t, operatorPolicy)
	first := encryptionKey(t, k, "claims").Kid
	shows(t, k, []string{"rotate", "claims"})
	second := encryptionKey(t, k, "claims").Kid
	at := func(args ...string) []string {
		return append([]string{"--config", k.Operator, "destroy", "claims"}, args...)
	}

	// No answer, a wrong one, and what may not be destroyed: nothing happens.
	for _, input := range []string{"", "y\n", "yes\n", "other\n"} {
		o := toolWith(t, input, nil, at(first)...)
		o.fails(t, 1, "makes unreadable", "claims.*", first, "nothing was destroyed")
	}
	tool(t, at()...).fails(t, 1, "name the keys")
	tool(t, at(first, "--all")...).fails(t, 1, "name the keys")
	tool(t, at(first, "--yes", "x", "--dry-run")...).fails(t, 1, "do not go together")
	tool(t, at(first, "--yes", "x")...).fails(t, 1, "refused")
	tool(t, at(second, "--dry-run")...).fails(t, 1, "refused", "rotate")
	shows(t, k, []string{"keys", "claims"}, first+"  readable")

	toolWith(t, "claims\n", nil, at(first)...).ok(t)
	shows(t, k, []string{"keys", "claims"}, first+"  destroyed", second+"  current")

	// For scripts: the token of the dry run.
	shows(t, k, []string{"destroy", "claims", "--all", "--dry-run"}, "Nothing was destroyed", "--yes=")
	var doomed struct {
		Count   int
		Confirm string
	}
	asks(t, k, &doomed, "destroy", "claims", "--all", "--dry-run")
	var done struct {
		Destroyed int
		Current   string
	}
	asks(t, k, &done, "destroy", "claims", "--all", "--yes="+doomed.Confirm)
	if doomed.Count != 1 || done.Destroyed != 1 || done.Current == second {
		t.Errorf("%+v %+v", doomed, done)
	}
	tool(t, at("--all", "--yes="+doomed.Confirm)...).fails(t, 1, "refused")
}

func TestLeasesAndRevocations(t *testing.T) {
	k := testservice.StartKeyService(t, operatorPolicy)
	encryptionKey(t, k, "claims")
	const producer = "spiffe://dev.cipherlane/producer"
	shows(t, k, []string{"leases"}, producer, "claims", "encrypt")
	var none struct{ Leases []any }
	asks(t, k, &none, "leases", "--principal", "nobody")
	if len(none.Leases) != 0 {
		t.Errorf("%+v", none)
	}
	tool(t, "--config", k.Operator, "revoke", "--reason", "x").fails(t, 1, "--principal")
	tool(t, "--config", k.Operator, "revoke", "--principal", producer).fails(t, 2, "--reason")

	var made struct{ ID string }
	asks(t, k, &made, "revoke", "--principal", producer, "--reason", "INC-7")
	shows(t, k, []string{"revocations"}, made.ID, "principal "+producer, "INC-7", "operator")
	var answer struct{}
	until(t, "the revocation to hold", func() bool {
		err := as(t, k, "producer").Post(t.Context(), "/v1/encryption-key", map[string]string{"topic": "claims"}, &answer)
		return err != nil && strings.Contains(err.Error(), "not-authorized")
	})
	shows(t, k, []string{"unrevoke", made.ID}, "No longer revoked: principal "+producer)
	until(t, "it to hold no longer", func() bool {
		return as(t, k, "producer").Post(t.Context(), "/v1/encryption-key", map[string]string{"topic": "claims"}, &answer) == nil
	})
	tool(t, "--config", k.Operator, "unrevoke", made.ID).fails(t, 1, "not-found")
	shows(t, k, []string{"revoke", "--principal", producer, "--scope", "claims", "--action", "encrypt", "--reason", "x"}, "in scope claims, encrypt")
}

func TestRewrap(t *testing.T) {
	k := testservice.StartKeyService(t, operatorPolicy)
	encryptionKey(t, k, "claims")
	shows(t, k, []string{"rewrap"}, "never changed")
	out := shows(t, k, []string{"rewrap", "--start", "--wait"}, "done", "data keys")
	if !slices.Contains(strings.Fields(out), "state") {
		t.Error(out)
	}
}
