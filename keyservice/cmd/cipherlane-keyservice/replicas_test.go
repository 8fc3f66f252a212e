// What one replica does, on another; and a replica that cannot read the revocations.

package main

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// [CL-OPR-003] [CL-OPR-010] On two replicas: what one revokes or destroys holds on the other within two seconds.
func TestReplicasAgree(t *testing.T) {
	server := testvault.Dev(t, true)
	place := server.NewPlace(t)
	one, two := operatedOnVault(t, server, place, true), operatedOnVault(t, server, place, false)
	const limit = 2 * time.Second
	old := one.encryptionKey(t, "claims").text("kid")
	one.must(t, http.MethodPost, "/v1/scopes/claims/rotate", "{}")
	if _, keys := two.decrypt(t, "claims", old); keys[old]["key"] == nil {
		t.Fatal(keys)
	}
	within := func(what string, began time.Time, holds func() bool) {
		t.Helper()
		for !holds() {
			if time.Since(began) > limit {
				t.Fatal("after two seconds not yet:", what)
			}
			time.Sleep(20 * time.Millisecond)
		}
		t.Logf("%s on the other replica after %s", what, time.Since(began).Round(time.Millisecond))
	}
	began := time.Now()
	kid := one.must(t, http.MethodPost, "/v1/scopes/claims/rotate", "").text("kid")
	within("rotated", began, func() bool { return strings.Contains(string(two.must(t, http.MethodGet, "/v1/scopes", "").Body), kid) })
	began = time.Now()
	id := one.must(t, http.MethodPost, "/v1/revocations", `{"scope":"claims"}`).text("id")
	within("revoked", began, func() bool { a, _ := two.decrypt(t, "claims", old); return a.text("code") == "not-authorized" })
	began = time.Now()
	two.must(t, http.MethodDelete, "/v1/revocations/"+id, "")
	within("taken back", began, func() bool { a, _ := one.decrypt(t, "claims", old); return a.Status == http.StatusOK })
	body := `{"kids":["` + old + `"]`
	plan := into[planned](t, one.must(t, http.MethodPost, "/v1/scopes/claims/destroy", body+"}"))
	began = time.Now()
	two.must(t, http.MethodPost, "/v1/scopes/claims/destroy", body+`,"confirm":"`+plan.Confirm+`"}`)
	within("destroyed", began, func() bool { _, keys := one.decrypt(t, "claims", old); return keys[old]["key"] == nil })
}

// [CL-OPR-004] A replica that cannot read the revocations refuses after a while, and serves again when it can.
func TestRevocationsNotRead(t *testing.T) {
	server := testvault.Dev(t, true)
	k := operatedOnVault(t, server, server.NewPlace(t), true)
	kid := k.encryptionKey(t, "claims").text("kid")
	served := func() answer { a, _ := k.decrypt(t, "claims", kid); return a }
	if a := served(); a.Status != http.StatusOK { // from now on it is in memory
		t.Fatal(a.Status)
	}
	server.Seal(t)
	began := time.Now()
	if a := served(); a.Status != http.StatusOK {
		t.Fatal("a short failure already refuses", a.Status)
	}
	waitLong(t, "the replica refuses", 20*time.Second, func() bool {
		a := served()
		return a.Status == http.StatusServiceUnavailable && strings.Contains(a.text("detail"), "revocations")
	})
	if took := time.Since(began); took < 7*time.Second || took > 13*time.Second {
		t.Error("refused after", took)
	}
	status := into[struct{ Ready bool }](t, k.must(t, http.MethodGet, "/v1/status", ""))
	if status.Ready {
		t.Error("ready all the same")
	}
	server.Unseal(t)
	waitLong(t, "the replica serves again", 10*time.Second, func() bool { return served().Status == http.StatusOK })
}

func waitLong(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	for deadline := time.Now().Add(limit); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain for: %s", what)
}

// operatedOnVault starts a replica on a place in a Vault, which is made when it is the first.
func operatedOnVault(t *testing.T, server *testvault.Server, place testvault.Place, first bool) *keyService {
	t.Helper()
	dir := folderOnVault(t, server, place)
	if err := os.WriteFile(dir+"/policy.yaml", []byte(operatorPolicy), 0o600); err != nil {
		t.Fatal(err)
	}
	if first {
		if out, err := program(t, "init", "--config", dir+"/keyservice.yaml").CombinedOutput(); err != nil {
			t.Fatal(string(out), err)
		}
	}
	return startIn(t, dir)
}

func startOnNewVault(t *testing.T) *keyService {
	t.Helper()
	server := testvault.Dev(t, true)
	return operatedOnVault(t, server, server.NewPlace(t), true)
}
