// Certificates from a real Vault, set up as VAULT.md shows.

package certificate

import (
	"bytes"
	"crypto"
	"log/slog"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
)

// role is that of VAULT.md.
var role = map[string]any{
	"key_type": "any", "allow_any_name": true, "enforce_hostnames": false, "cn_validations": "disabled",
	"allowed_uri_sans": "spiffe://example.org/*", "allow_ip_sans": false, "use_csr_common_name": false, "use_csr_sans": false,
	"server_flag": false, "client_flag": true, "key_usage": "DigitalSignature", "not_before_duration": "5m", "max_ttl": "168h", "no_store": true,
}

const mount = "cipherlane-pki"

func root(name string) map[string]any {
	return map[string]any{"common_name": name, "ttl": "43800h", "not_before_duration": "1h", "key_type": "ec", "key_bits": 256}
}

// onVault gives a store in a Vault that has a PKI engine.
func onVault(t *testing.T, server *testvault.Server) *vault.Store {
	t.Helper()
	place := server.NewPlace(t)
	server.Write(t, "sys/mounts/"+mount, map[string]any{"type": "pki", "config": map[string]any{"max_lease_ttl": "43800h"}})
	server.Write(t, mount+"/root/generate/internal", root("Cipherlane CA"))
	server.Write(t, mount+"/roles/cipherlane", role)
	forServers := maps.Clone(role)
	forServers["server_flag"], forServers["allow_ip_sans"] = true, true
	server.Write(t, mount+"/roles/cipherlane-servers", forServers)
	o := vault.Defaults()
	o.Addresses, o.CA, o.Timeout = []string{server.Address}, server.CA, 2*time.Second
	o.Transit, o.KV, o.Login.Token = place.Transit, place.KV, &vault.TokenLogin{File: place.TokenFile}
	log := slog.New(slog.DiscardHandler)
	if err := vault.Init(t.Context(), o, log); err != nil {
		t.Fatal(err)
	}
	s, err := vault.Open(t.Context(), o, log)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

// lookNow lets the next Reload read the CAs.
func (v *Vault) lookNow() { v.looked.Store(0) }

func TestVaultPKI(t *testing.T) {
	server := testvault.Dev(t, true)
	store := onVault(t, server)
	ca, err := OpenVault(t.Context(), store.PKI(mount, "cipherlane", "cipherlane-servers"))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("good", func(t *testing.T) { testVaultSigns(t, ca) })
	t.Run("roles", func(t *testing.T) { testVaultRoles(t, server, store) })
	t.Run("servers", func(t *testing.T) {
		testVaultServers(t, ca, must(OpenVault(t.Context(), store.PKI(mount, "cipherlane", ""))))
	})
	t.Run("rollover", func(t *testing.T) { testVaultRollover(t, server, ca) })
	t.Run("faults", func(t *testing.T) { testVaultFaults(t, server, store, ca) })
	testvault.Report(t, "vault, PKI: ran")
}

// [CL-IDN-022] [CL-IDN-025]
func testVaultSigns(t *testing.T, ca *Vault) {
	t.Helper()
	for principal, key := range map[string]crypto.Signer{alice: p256(), "spiffe://example.org/bob": ed(), "batch-7": p256(), "Jürgen": ed()} {
		r := must(ParseRequest(csr(key, nil), principal, noServers))
		issued, err := Issue(t.Context(), ca, r, time.Hour)
		if err != nil {
			t.Errorf("%s: %v", principal, err)
			continue
		}
		if left := time.Until(issued.NotAfter); left > time.Hour+time.Second || left < 59*time.Minute || strings.Count(string(issued.CAs), "BEGIN") != 1 {
			t.Errorf("%s: %s left", principal, left)
		}
	}
}

// [CL-IDN-023] What a role adds or changes is not handed on.
func testVaultRoles(t *testing.T, server *testvault.Server, store *vault.Store) {
	t.Helper()
	for name, change := range map[string]map[string]any{
		"servers too":      {"server_flag": true},
		"nobody":           {"client_flag": false},
		"organisation":     {"organization": "Claims"},
		"other SPIFFE ids": {"allowed_uri_sans": "spiffe://example.com/*"},
		"RSA only":         {"key_type": "rsa"},
		"encipherment":     {"key_usage": "CertSign"},
		"code signing":     {"code_signing_flag": true},
	} {
		changed := maps.Clone(role)
		maps.Copy(changed, change)
		server.Write(t, mount+"/roles/cipherlane", changed)
		ca, err := OpenVault(t.Context(), store.PKI(mount, "cipherlane", "cipherlane-servers"))
		if err != nil {
			t.Fatal(err)
		}
		if issued, err := Issue(t.Context(), ca, must(ParseRequest(csr(p256(), nil), alice, noServers)), time.Hour); err == nil {
			t.Errorf("%s: handed on: %s", name, issued.Chain)
		}
	}
	server.Write(t, mount+"/roles/cipherlane", role)
}

// [CL-IDN-024]
func testVaultRollover(t *testing.T, server *testvault.Server, ca *Vault) {
	t.Helper()
	before := issue(t, ca, alice)
	next := server.Write(t, mount+"/root/rotate/internal", root("Cipherlane CA 2"))
	if changed, err := ca.Reload(t.Context()); changed || err != nil {
		t.Fatal("looked too often", err)
	}
	ca.lookNow()
	if changed, err := ca.Reload(t.Context()); !changed || err != nil || len(ca.CAs()) != 2 {
		t.Fatal("the next CA is not known before it signs", err)
	}
	between := issue(t, ca, alice)
	server.Write(t, mount+"/root/replace", map[string]any{"default": next.Data["issuer_id"]})
	after := issue(t, ca, alice)
	if !trusts(ca.CAs(), before) || !trusts(ca.CAs(), between) || !trusts(ca.CAs(), after) || bytes.Equal(before.RawIssuer, after.RawIssuer) {
		t.Error("not both CAs are trusted, or the old one still signs")
	}
}

func testVaultFaults(t *testing.T, server *testvault.Server, store *vault.Store, ca *Vault) {
	t.Helper()
	r := must(ParseRequest(csr(p256(), nil), alice, noServers))
	for _, other := range []*vault.PKI{store.PKI("nowhere", "cipherlane", "cipherlane-servers"), store.PKI("sys", "x", "cipherlane-servers")} {
		if _, err := OpenVault(t.Context(), other); err == nil {
			t.Error("a mount without a CA was opened")
		}
	}
	otherRole := &Vault{pki: store.PKI(mount, "other", "cipherlane-servers")}
	otherRole.cas.Store(ca.cas.Load())
	if _, err := Issue(t.Context(), otherRole, r, time.Hour); err == nil {
		t.Error("a role that is not allowed signed")
	}
	server.Seal(t)
	ca.lookNow()
	if _, err := ca.Reload(t.Context()); err == nil || len(ca.CAs()) != 2 {
		t.Error("a sealed Vault changed the CAs:", err)
	}
	if _, err := Issue(t.Context(), ca, r, time.Hour); err == nil {
		t.Error("a sealed Vault signed")
	}
	server.Unseal(t)
	_ = issue(t, ca, alice)
}
