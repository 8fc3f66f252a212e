// The whole service on a real Vault.

package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

const vaultConfig = `tls: {certificate: server.pem, key: server-key.pem, client_ca: ca.pem}
policy: policy.yaml
audit: {file: audit.jsonl}
store:
  vault:
    addresses: [%q]
    ca: %q
    transit: %s
    kv: %s
    timeout: 1s
    login: {token: {file: %q}}
`

// folderOnVault is a folder for the dev command whose store is in a Vault with TLS.
func folderOnVault(t *testing.T, server *testvault.Server, place testvault.Place) string {
	t.Helper()
	dir := newFolder(t, testPolicy)
	text := fmt.Sprintf(vaultConfig, server.Address, server.CA, place.Transit, place.KV, place.TokenFile)
	if err := os.WriteFile(filepath.Join(dir, "keyservice.yaml"), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// [CL-API-011] [CL-ERR-003] Two replicas share their keys; a sealed Vault is "not available", and passes.
func TestOnVault(t *testing.T) {
	server := testvault.Dev(t, true)
	place := server.NewPlace(t)
	dir := folderOnVault(t, server, place)
	initialise := program(t, "init", "--config", filepath.Join(dir, "keyservice.yaml"))
	if out, err := initialise.CombinedOutput(); err != nil || !strings.Contains(string(out), "made a key store in Vault") {
		t.Fatal(string(out), err)
	}
	one, two := startIn(t, dir), startIn(t, folderOnVault(t, server, place))
	made := one.encryptionKey(t, "claims")
	if again := two.encryptionKey(t, "claims"); again.text("kid") != made.text("kid") || again.text("key") != made.text("key") {
		t.Fatal("two replicas have two current keys")
	}
	kid := made.text("kid")
	_, keys := two.decrypt(t, "claims", kid, strings.Repeat("0", 32))
	if keys[kid]["key"] != made.text("key") || keys[strings.Repeat("0", 32)]["key"] != nil {
		t.Fatal(keys)
	}
	if a := one.post(t, "operator", "/v1/scopes/claims/rotate", "{}"); a.Status != http.StatusOK || a.text("kid") == kid {
		t.Fatal(a.Status)
	}
	server.Seal(t)
	refuses(t, one.post(t, "producer", "/v1/encryption-key", `{"topic":"t-new"}`), http.StatusServiceUnavailable, "key-service-unavailable")
	server.Unseal(t)
	if a := one.encryptionKey(t, "t-new"); a.text("kid") == "" {
		t.Fatal("not available again")
	}
	waitFor(t, "what was wrong in the log", func() bool { return strings.Contains(one.stderr.String(), "sealed") })
	if strings.Contains(one.stderr.String()+two.stderr.String(), made.text("key")) {
		t.Error("the log has a key")
	}
}

func TestServeNeedsInit(t *testing.T) {
	server := testvault.Dev(t, true)
	dir := folderOnVault(t, server, server.NewPlace(t))
	out, err := program(t, "dev", "--dir", dir).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the key store is missing") || !strings.Contains(string(out), "init --config") {
		t.Fatal(string(out), err)
	}
}
