// A service whose clock is an hour off: the program, built with a standard library whose time.Now is shifted.

package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

const shiftVariable = "CIPHERLANE_TEST_CLOCK"

// shiftedBy is added to time/time.go of the standard library.
const shiftedBy = `
var shiftedBy = func() int64 {
	text, _ := syscall.Getenv("` + shiftVariable + `")
	shift, _ := ParseDuration(text)
	return int64(shift / Second)
}()
`

// buildShifted builds the program with a clock that the environment shifts. Nothing of the product knows of it.
func buildShifted(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	original := filepath.Join(strings.TrimSpace(string(root)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		t.Fatal(err)
	}
	const reads = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	changed := strings.Replace(string(source), reads, reads+"\tsec += shiftedBy\n", 1)
	changed = strings.Replace(changed, "import (\n", "import (\n\t\"syscall\"\n", 1) + shiftedBy
	if !strings.Contains(changed, "sec += shiftedBy") {
		t.Fatal("time.Now of this Go is written otherwise: change this test")
	}
	dir := t.TempDir()
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{original: filepath.Join(dir, "time.go")}})
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"time.go": changed, "overlay.json": string(overlay)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "cipherlane-keyservice")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-overlay", filepath.Join(dir, "overlay.json"), "-o", program, "./cmd/cipherlane-keyservice")
	cmd.Dir, cmd.Env = vectors.SpecFile(t, "../keyservice"), append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}

// Keys, leases and the audit log's chain do not depend on the clock; certificates do, and are refused when they are not valid by the
// service's own. [CL-API-001] [CL-API-017] [CL-AUD-002]
func TestClockAnHourOff(t *testing.T) {
	shifted := buildShifted(t)
	dir := newFolder(t, testPolicy)
	now := time.Now()
	launchShifted(t, shifted, dir, "-3h").stop(t) // makes the CA, which must be older than the clock that is behind
	right := startIn(t, dir)
	old := right.encryptionKey(t, "claims")
	right.stop(t)
	for _, shift := range []string{"1h", "-1h"} {
		t.Run(shift, func(t *testing.T) {
			k := launchShifted(t, shifted, dir, shift)
			long := k.withValidity(t, now.Add(-2*time.Hour), now.Add(2*time.Hour))
			a := k.postWith(t, long, "/v1/encryption-key", `{"topic":"claims"}`)
			if a.Status != http.StatusOK || a.text("kid") != old.text("kid") || a.Members["key"] != old.Members["key"] {
				t.Fatalf("%d %s", a.Status, a.Body)
			}
			if a.number("refresh_in") != 150 || a.number("expires_in") != 300 {
				t.Errorf("the lease follows the clock: %s", a.Body)
			}
			made := k.postWith(t, long, "/v1/encryption-key", `{"topic":"t-`+shift+`"}`)
			if made.Status != http.StatusOK {
				t.Fatalf("%d %s", made.Status, made.Body)
			}
			k.refusesCertificate(t, now.Add(-30*time.Minute), now.Add(30*time.Minute))
			checkChain(t, k.Audit)
			k.stop(t)

			again := startIn(t, dir)
			scope := made.text("scope")
			if _, keys := again.decrypt(t, scope, made.text("kid")); keys[made.text("kid")]["key"] != made.Members["key"] {
				t.Error("a key that was made by the wrong clock is gone")
			}
			if k := again.encryptionKey(t, scope); k.text("kid") != made.text("kid") {
				t.Error("the right clock made another key")
			}
			checkChain(t, again.Audit)
			again.stop(t)
		})
	}
}

func launchShifted(t *testing.T, shifted, dir, shift string) *keyService {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), shifted, "dev", "--dir", dir, "--json", "--until-stdin-closes")
	cmd.Env = append(os.Environ(), shiftVariable+"="+shift)
	return launch(t, cmd)
}

func (a answer) number(member string) int {
	number, _ := a.Members[member].(json.Number)
	value, _ := number.Int64()
	return int(value)
}

// withValidity is a client of the producer's with a certificate of its own.
func (k *keyService) withValidity(t *testing.T, from, to time.Time) *http.Client {
	t.Helper()
	cfg := k.tlsConfig(t, "")
	cfg.Certificates = []tls.Certificate{forge(t, k.Dir, func(c *x509.Certificate) {
		c.URIs, c.NotBefore, c.NotAfter = uris(t, "spiffe://dev.cipherlane/producer"), from, to
	})}
	return client(t, cfg)
}

func (k *keyService) refusesCertificate(t *testing.T, from, to time.Time) {
	t.Helper()
	request := k.request(t, http.MethodPost, http.Header{"Content-Type": {"application/json"}})
	response, err := k.withValidity(t, from, to).Do(request)
	if err == nil {
		_ = response.Body.Close()
		t.Errorf("a certificate that is not valid by the service's clock was answered %s", response.Status)
	}
}
