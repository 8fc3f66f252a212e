// The operator's calls, end to end.

package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// operatorPolicy lets the operator do everything, and rotates the scope "counted" after ten records.
var operatorPolicy = strings.Replace(testPolicy, "actions: [rotate]", "actions: [rotate, destroy, revoke, admin]", 1) + `
rotation:
  - scopes: ["t-counted"]
    records: 10
  - scopes: ["t-bytes"]
    bytes: 1KiB
`

func startOperated(t *testing.T) *keyService {
	t.Helper()
	return startIn(t, newFolder(t, operatorPolicy))
}

// call calls as a principal with any method.
func (k *keyService) call(t *testing.T, principal, method, path, body string) answer {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, k.URL+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	} else {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	return do(t, client(t, k.tlsConfig(t, principal)), request)
}

// must calls as the operator, and expects success.
func (k *keyService) must(t *testing.T, method, path, body string) answer {
	t.Helper()
	a := k.call(t, "operator", method, path, body)
	if a.Status != http.StatusOK {
		t.Fatalf("%s %s: %d %s", method, path, a.Status, a.Body)
	}
	return a
}

func (k *keyService) report(t *testing.T, topic, kid string, records, bytes int) answer {
	t.Helper()
	a := k.post(t, "producer", "/v1/encryption-key", fmt.Sprintf(`{"topic":%q,"usage":{"kid":%q,"records":%d,"bytes":%d}}`, topic, kid, records, bytes))
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	return a
}

// decode reads an answer into a struct.
func into[T any](t *testing.T, a answer) (v T) {
	t.Helper()
	if err := json.Unmarshal(a.Body, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

type keyEntry struct {
	Kid, State     string
	Records, Bytes int
}

type keysPage struct {
	Keys []keyEntry
	Next string
}

// [CL-OPR-001] [CL-OPR-002] Who has no grant gets nothing, who has one sees no key.
func TestOperatorCalls(t *testing.T) {
	k := startOperated(t)
	made := k.encryptionKey(t, "claims")
	for _, c := range []struct{ method, path, body string }{
		{http.MethodGet, "/v1/status", ""},
		{http.MethodGet, "/v1/policy", ""},
		{http.MethodGet, "/v1/scopes", ""},
		{http.MethodGet, "/v1/scopes?limit=1", ""},
		{http.MethodGet, "/v1/scopes/claims/keys", ""},
		{http.MethodGet, "/v1/leases", ""},
		{http.MethodGet, "/v1/leases?scope=claims&principal=spiffe%3A%2F%2Fdev.cipherlane%2Fproducer&limit=1000", ""},
		{http.MethodGet, "/v1/revocations", ""},
		{http.MethodGet, "/v1/rewrap", ""},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"all":true}`},
		{http.MethodPost, "/v1/revocations", `{"scope":"t-nobody"}`},
		{http.MethodPost, "/v1/rewrap", "{}"},
	} {
		for _, principal := range []string{"producer", "consumer", "stranger"} {
			refuses(t, k.call(t, principal, c.method, c.path, c.body), http.StatusForbidden, "not-authorized")
		}
		a := k.must(t, c.method, c.path, c.body)
		for _, form := range keyForms(t, made.text("key")) {
			if strings.Contains(string(a.Body), string(form)) {
				t.Error(c.path, "shows a key")
			}
		}
	}
	lines := k.auditLines(t)
	for action, want := range map[string]int{"admin": 10, "destroy": 1, "revoke": 1} {
		for _, outcome := range []string{"allowed", "refused"} {
			count := 0
			for _, l := range lines {
				if l["action"] == action && l["outcome"] == outcome {
					count++
				}
			}
			if outcome == "refused" && count != 3*want || outcome == "allowed" && count != want {
				t.Errorf("%d lines of %s %s", count, action, outcome)
			}
		}
	}
}

func (k *keyService) auditLines(t *testing.T) (lines []map[string]any) {
	t.Helper()
	text, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// [CL-OPR-012] [CL-API-015] Malformed requests of every kind are refused, each with what is wrong.
func TestOperatorBadRequests(t *testing.T) {
	k := startOperated(t)
	kid := k.encryptionKey(t, "claims").text("kid")
	many := make([]string, 1001)
	for i := range many {
		many[i] = fmt.Sprintf("%q", fmt.Sprintf("%032x", i))
	}
	for _, c := range []struct {
		method, path, body string
		status             int
		code               string
	}{
		{http.MethodGet, "/v1/scopes?limit=0", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?limit=1001", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?limit=+1", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?limit=1&limit=2", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?limit=", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?Limit=1", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?after=a%2Fb", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes?after=%zz", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes", "{}", 400, "request-invalid"},
		{http.MethodGet, "/v1/status?verbose=1", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/policy?x", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/rewrap?x=1", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes/claims/keys?after=claims", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/scopes/claims/keys?after=" + strings.Repeat("f", 32), "", 404, "not-found"},
		{http.MethodGet, "/v1/scopes/unheard-of/keys", "", 403, "topic-unknown"},
		{http.MethodGet, "/v1/scopes/a%20b/keys", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/leases?scope=..", "", 400, "request-invalid"},
		{http.MethodGet, "/v1/leases?principal=" + strings.Repeat("p", 513), "", 400, "request-invalid"},
		{http.MethodGet, "/v1/leases?after=x", "", 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", ``, 415, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"reason":"none"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"principal":""}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"principal":"a","action":"encrypt"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"principal":"a","scope":"b","action":"rotate"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"principal":"a","unknown":1}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"scope":"a b"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"scope":"a","reason":"` + strings.Repeat("x", 257) + `"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations?x=1", `{"scope":"a"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/revocations", `{"principal":"spiffe://dev.cipherlane/operator"}`, 400, "request-invalid"},
		{http.MethodDelete, "/v1/revocations/" + strings.Repeat("0", 32), "", 404, "not-found"},
		{http.MethodDelete, "/v1/revocations/xyz", "", 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"kids":[]}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"all":false}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"all":true,"kids":["` + kid + `"]}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"all":true,"confirm":"x"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"all":true,"confirm":"` + strings.Repeat("A", 26) + `"}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"kids":["` + kid + `"]}`, 400, "request-invalid"}, // the current one
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"kids":["` + kid + `","` + kid + `"]}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"kids":[` + strings.Join(many, ",") + `]}`, 400, "request-invalid"},
		{http.MethodPost, "/v1/scopes/claims/destroy", `{"kids":["` + strings.Repeat("0", 32) + `"]}`, 404, "not-found"},
		{http.MethodPost, "/v1/scopes/t-other/destroy", `{"all":true}`, 403, "topic-unknown"},
		{http.MethodPost, "/v1/rewrap", `{"now":true}`, 400, "request-invalid"},
		{http.MethodPut, "/v1/revocations", `{}`, 405, "not-found"},
		{http.MethodPost, "/v1/status", `{}`, 405, "not-found"},
		{http.MethodGet, "/v1/scopes/claims/rotate", "", 405, "not-found"},
		{http.MethodDelete, "/v1/rewrap", "", 405, "not-found"},
	} {
		a := k.call(t, "operator", c.method, c.path, c.body)
		if a.Status != c.status || a.text("code") != c.code || a.text("detail") == "" {
			t.Errorf("%s %s %.80s: %d %s", c.method, c.path, c.body, a.Status, a.Body)
		}
		if c.status == http.StatusMethodNotAllowed && a.Header.Get("Allow") == "" {
			t.Error("405 without Allow")
		}
	}
	if got := into[keysPage](t, k.must(t, http.MethodGet, "/v1/scopes/claims/keys", "")); len(got.Keys) != 1 || got.Keys[0].State != "current" {
		t.Error("something changed", got)
	}
}
