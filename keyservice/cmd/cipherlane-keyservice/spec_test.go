// Holds answers against spec/openapi.yaml and the rules that it cannot say.

package main

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

var specification = struct {
	sync.Mutex
	compiler *jsonschema.Compiler
}{}

// validate holds a value against a schema of the specification's components.
func validate(t *testing.T, name string, value any) error {
	t.Helper()
	specification.Lock()
	defer specification.Unlock()
	if specification.compiler == nil {
		text, err := os.ReadFile(vectors.SpecFile(t, "openapi.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		var document map[string]any
		if err := yaml.Unmarshal(text, &document); err != nil {
			t.Fatal(err)
		}
		compiler := jsonschema.NewCompiler()
		if err := compiler.AddResource("openapi.yaml", document); err != nil {
			t.Fatal(err)
		}
		specification.compiler = compiler
	}
	compiled, err := specification.compiler.Compile("openapi.yaml#/components/schemas/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(value)
}

// checkAgainstSpec also fills in the members. [CL-API-016] [CL-ERR-001] [CL-ERR-005]
func checkAgainstSpec(t *testing.T, path string, a *answer) {
	t.Helper()
	if got := a.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("Cache-Control: %q", got)
	}
	kind, name := "application/json", answerSchema(path, a.Body)
	if a.Status != http.StatusOK {
		kind, name = "application/problem+json", "Problem"
	}
	if got := a.Header.Get("Content-Type"); got != kind {
		t.Errorf("Content-Type: %q", got)
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(a.Body))
	if err != nil {
		t.Fatalf("%s: %v", a.Body, err)
	}
	if err := validate(t, name, value); err != nil {
		t.Errorf("%s is no %s: %v", a.Body, name, err)
	}
	a.Members, _ = value.(map[string]any)
	if a.Status != http.StatusOK && a.Members["key"] != nil {
		t.Error("a refusal with a key")
	}
}

// answerSchemas are those of the paths that have no variable part.
var answerSchemas = map[string]string{
	"/v1/encryption-key": "EncryptionKeyAnswer", "/v1/decryption-keys": "DecryptionKeysAnswer", "/v1/status": "Status",
	"/v1/policy": "PolicyAnswer", "/v1/scopes": "ScopesAnswer", "/v1/leases": "LeasesAnswer", "/v1/rewrap": "Rewrap",
	"/v1/access": "AccessAnswer", "/v1/sidecars": "View",
	"/v1/certificate": "CertificateAnswer", "/v1/tokens": "TokenAnswer", "/v1/ca/begin": "CAAnswer", "/v1/ca/finish": "CAAnswer",
}

func answerSchema(path string, body []byte) string {
	switch {
	case path == "/v1/sidecars" && bytes.Contains(body, []byte(`"next_in"`)):
		return "ReportAnswer"
	case answerSchemas[path] != "":
		return answerSchemas[path]
	case strings.HasSuffix(path, "/rotate"):
		return "RotateAnswer"
	case strings.HasSuffix(path, "/keys"):
		return "KeysAnswer"
	case strings.HasSuffix(path, "/destroy"):
		return "DestroyAnswer"
	case path == "/v1/revocations" && bytes.Contains(body, []byte(`"revocations"`)):
		return "RevocationsAnswer"
	case strings.HasPrefix(path, "/v1/revocations"):
		return "Revocation"
	}
	return "Problem" // nothing else answers 200
}

// keyForms gives the forms in which a key could show.
func keyForms(t *testing.T, text string) [][]byte {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(raw) != 32 {
		t.Fatalf("not a key: %v", err)
	}
	return [][]byte{
		raw, []byte(text), []byte(strings.TrimRight(text, "=")), []byte(base64.URLEncoding.EncodeToString(raw)), []byte(hexOf(raw)),
		[]byte(strings.ToUpper(hexOf(raw))),
	}
}
