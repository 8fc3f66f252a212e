// Revocation and the list of leases, end to end.

package main

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
)

// [CL-OPR-003] Revoking a lease, a scope and a principal, and taking it back; [CL-KEY-008] is what SDKs do upon it.
func TestRevoke(t *testing.T) {
	k := startOperated(t)
	const producer, consumer = "spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/consumer"
	made := k.encryptionKey(t, "claims")
	encrypts := func(topic string) bool {
		t.Helper()
		a := k.post(t, "producer", "/v1/encryption-key", `{"topic":"`+topic+`"}`)
		if a.Status != http.StatusOK {
			refuses(t, a, http.StatusForbidden, "not-authorized")
		}
		return a.Status == http.StatusOK
	}
	decrypts := func(topic string) bool {
		t.Helper()
		a, _ := k.decrypt(t, topic, made.text("kid"))
		if a.Status != http.StatusOK {
			refuses(t, a, http.StatusForbidden, "not-authorized")
		}
		return a.Status == http.StatusOK
	}
	for _, c := range []struct {
		body                                       string
		producerClaims, producerOther, reads, read bool // encrypt claims, encrypt t-x, decrypt claims, decrypt t-x
	}{
		{`{"principal":"` + producer + `","scope":"claims","action":"encrypt"}`, false, true, true, true},
		{`{"principal":"` + producer + `","scope":"claims","action":"decrypt"}`, true, true, true, true},
		{`{"principal":"` + producer + `","scope":"claims"}`, false, true, true, true},
		{`{"principal":"` + producer + `"}`, false, false, true, true},
		{`{"principal":"` + consumer + `"}`, true, true, false, false},
		{`{"scope":"claims"}`, false, true, false, true},
		{`{"principal":"spiffe://dev.cipherlane/prod"}`, true, true, true, true},
	} {
		first := k.must(t, http.MethodPost, "/v1/revocations", c.body)
		if again := k.must(t, http.MethodPost, "/v1/revocations", strings.Replace(c.body, "}", `,"reason":"twice"}`, 1)); !bytes.Equal(again.Body, first.Body) {
			t.Errorf("%s is not %s", again.Body, first.Body)
		}
		got := []bool{encrypts("claims"), encrypts("t-x"), decrypts("claims"), decrypts("t-x")}
		if want := []bool{c.producerClaims, c.producerOther, c.reads, c.read}; !slices.Equal(got, want) {
			t.Errorf("%s: %v, not %v", c.body, got, want)
		}
		if all := into[struct{ Revocations []any }](t, k.must(t, http.MethodGet, "/v1/revocations", "")); len(all.Revocations) != 1 {
			t.Error(all)
		}
		k.must(t, http.MethodDelete, "/v1/revocations/"+first.text("id"), "")
		if !encrypts("claims") || !encrypts("t-x") || !decrypts("claims") || !decrypts("t-x") {
			t.Errorf("%s: taken back, and still in force", c.body)
		}
	}
}

// [CL-OPR-003] A revoked principal is refused every call, that for a certificate too, before the policy is asked.
func TestRevokedPrincipal(t *testing.T) {
	k := startOperated(t)
	k.must(t, http.MethodPost, "/v1/revocations", `{"principal":"spiffe://dev.cipherlane/stranger","reason":"stolen"}`)
	for path, method := range map[string]string{
		"/v1/certificate": http.MethodPost, "/v1/encryption-key": http.MethodPost, "/v1/decryption-keys": http.MethodPost, "/v1/status": http.MethodGet,
		"/v1/nothing": http.MethodGet, "/v1/scopes/claims/rotate": http.MethodPost, "/v1/tokens": http.MethodPost,
	} {
		a := k.call(t, "stranger", method, path, "")
		refuses(t, a, http.StatusForbidden, "not-authorized")
		if !strings.Contains(a.text("detail"), "revoked") {
			t.Errorf("%s: %s", path, a.Body)
		}
	}
	lines := k.auditLines(t)
	if last := lines[len(lines)-1]; last["code"] != "not-authorized" || last["principal"] != "spiffe://dev.cipherlane/stranger" {
		t.Error(last)
	}
	if !slices.ContainsFunc(lines, func(l map[string]any) bool {
		return l["action"] == "revoke" && l["outcome"] == "allowed" && l["subject"] == "spiffe://dev.cipherlane/stranger"
	}) {
		t.Error("the audit log does not say who was revoked")
	}
}

// The list of leases says who has what, and no longer what was revoked.
func TestLeases(t *testing.T) {
	k := startOperated(t)
	for range 3 {
		k.encryptionKey(t, "claims")
	}
	k.encryptionKey(t, "t-x")
	k.encryptionKey(t, "public.x")
	type leases struct {
		Complete bool
		Leases   []struct {
			ID, Principal, Scope, Action, Granted, Renewed, Expires string
			Renewals                                                int
		}
		Next string
	}
	got := into[leases](t, k.must(t, http.MethodGet, "/v1/leases?scope=claims", ""))
	if len(got.Leases) != 1 || !got.Complete || got.Leases[0].Renewals != 2 || got.Leases[0].Action != "encrypt" ||
		got.Leases[0].Principal != "spiffe://dev.cipherlane/producer" || got.Leases[0].Granted >= got.Leases[0].Expires {
		t.Fatalf("%+v", got)
	}
	first := into[leases](t, k.must(t, http.MethodGet, "/v1/leases?limit=1", ""))
	second := into[leases](t, k.must(t, http.MethodGet, "/v1/leases?limit=1&after="+first.Next, ""))
	if len(first.Leases) != 1 || len(second.Leases) != 1 || first.Leases[0].ID >= second.Leases[0].ID || second.Next != "" {
		t.Fatalf("%+v %+v", first, second)
	}
	k.must(t, http.MethodPost, "/v1/revocations", `{"scope":"claims"}`)
	if got := into[leases](t, k.must(t, http.MethodGet, "/v1/leases", "")); len(got.Leases) != 1 || got.Leases[0].Scope != "t-x" {
		t.Errorf("%+v", got)
	}
}
