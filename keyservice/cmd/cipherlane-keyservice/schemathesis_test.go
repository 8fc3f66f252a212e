// Schemathesis: requests made from spec/openapi.yaml, right and wrong ones, and every answer held against it.

package main

import (
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cipherlane/cipherlane/keyservice/internal/testvault"
	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

// everything lets one principal do all that the specification has, on any topic.
const everything = `version: 1
topics:
  - topics: ["*"]
    mode: encrypt
grants:
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [encrypt, decrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [rotate, destroy, revoke, admin]
    scopes: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [certificate, access]
    for: ["*", "spiffe://dev.cipherlane/**"]
`

// examplesOfTest is how many requests are made up for an operation, beside those for its limits; CIPHERLANE_SCHEMATHESIS_EXAMPLES is more.
const examplesOfTest = "8"

// [CL-API-015] [CL-ERR-005]
func TestSchemathesis(t *testing.T) {
	tool := vectors.SpecFile(t, "../keyservice/build/venv/bin/schemathesis")
	if _, err := os.Stat(tool); err != nil {
		testvault.Report(t, "schemathesis: MISSING, it did NOT run: run `make schemathesis`")
		if os.Getenv("CI") != "" {
			t.Fatal("no schemathesis, and CI must have it")
		}
		t.Skip("no schemathesis")
	}
	k := startIn(t, newFolder(t, everything), "--log-level", "error")
	if names := k.unserved(t); len(names) > 0 {
		t.Errorf("the specification has calls that the service does not know: %v", names)
	}
	operator := k.Principals["operator"]
	k.schemathesis(t, tool, "--exclude-tag", "health", "--url", k.URL, "--tls-verify", k.CA,
		"--request-cert", operator.Certificate, "--request-cert-key", operator.Key)
	k.schemathesis(t, tool, "--include-tag", "health", "--url", k.AdminURL)
	k.quiet(t)
}

func (*keyService) schemathesis(t *testing.T, tool string, flags ...string) {
	t.Helper()
	examples := examplesOfTest
	if more := os.Getenv("CIPHERLANE_SCHEMATHESIS_EXAMPLES"); more != "" {
		examples = more
	}
	began := time.Now()
	cmd := exec.CommandContext(t.Context(), tool, append([]string{
		"--config-file", vectors.SpecFile(t, "../keyservice/tools/schemathesis/schemathesis.toml"), "run", vectors.SpecFile(t, "openapi.yaml"), "--workers", "2", "--max-examples", examples, "--no-color", "--continue-on-failure",
	}, flags...)...)
	cmd.Dir = t.TempDir() // it keeps what it found
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	t.Logf("took %s; %s", time.Since(began).Round(time.Second), summary(string(out)))
}

func summary(out string) string {
	var lines []string
	for line := range strings.Lines(out) {
		if strings.Contains(line, "generated") || strings.HasPrefix(line, "Seed") || strings.Contains(line, "Selected") {
			lines = append(lines, strings.TrimSpace(line))
		}
	}
	return strings.Join(lines, "; ")
}

// unserved gives the paths of the specification that the service does not know.
func (k *keyService) unserved(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(vectors.SpecFile(t, "openapi.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var document struct {
		Paths map[string]any
	}
	if err := yaml.Unmarshal(text, &document); err != nil {
		t.Fatal(err)
	}
	var unknown []string
	c := client(t, k.tlsConfig(t, "operator"))
	for path := range document.Paths {
		if strings.HasPrefix(path, "/v1/") && !k.serves(t, c, strings.NewReplacer("{scope}", "claims", "{id}", strings.Repeat("0", 32)).Replace(path)) {
			unknown = append(unknown, path)
		}
	}
	return unknown
}

// serves tells whether there is a path: by a method that none takes.
func (k *keyService) serves(t *testing.T, c *http.Client, path string) bool {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), "BREW", k.URL+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	return do(t, c, request).Status == http.StatusMethodNotAllowed
}
