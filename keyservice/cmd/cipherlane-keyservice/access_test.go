// What sidecars ask and report, end to end.

package main

import (
	"encoding/base64"
	"encoding/pem"
	"net/http"
	"os"
	"strings"
	"testing"
)

const accessPolicy = testPolicy + `  - principals: ["spiffe://dev.cipherlane/consumer"]
    actions: [read, group]
    topics: ["claims*", "*.secret"]
    groups: ["claims-*"]
    lease: {expires_in: 10s}
  - principals: ["spiffe://dev.cipherlane/producer"]
    actions: [write]
    topics: [claims]
    when: 'process.given && process.uid == 1000 && process.labels.app == "a" && certificate.given && request.remote == "10.1.2.3"'
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [access, admin, revoke]
    for: ["spiffe://dev.cipherlane/*"]
`

const consumer, producer = "spiffe://dev.cipherlane/consumer", "spiffe://dev.cipherlane/producer"

type decision struct {
	allowed bool
	code    string
	expires float64
}

func decisionsOf(t *testing.T, a answer) []decision {
	t.Helper()
	if a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	var all []decision
	list, _ := a.Members["decisions"].([]any)
	for _, one := range list {
		members, _ := one.(map[string]any)
		d := decision{}
		d.allowed, _ = members["allowed"].(bool)
		d.code, _ = members["code"].(string)
		if n, ok := members["expires_in"].(interface{ Float64() (float64, error) }); ok {
			d.expires, _ = n.Float64()
		}
		all = append(all, d)
	}
	return all
}

// [CL-ACC-001] [CL-ACC-002] [CL-ACC-003] [CL-POL-015] [CL-POL-016] [CL-POL-017]
func TestAccess(t *testing.T) {
	k := startIn(t, newFolder(t, accessPolicy))
	const checks = `{"principal":"` + consumer + `","checks":[{"action":"write","name":"claims"},{"action":"read","name":"claims"},
		{"action":"describe","name":"claims.eu"},{"action":"read","name":"a.secret"},{"action":"group","name":"claims-1"},
		{"action":"group","name":"other"},{"action":"transaction","name":"t"},{"action":"cluster"},{"action":"read","name":"claims"}]}`
	a := k.post(t, "operator", "/v1/access", checks)
	want := []decision{
		{false, "not-authorized", 5},
		{true, "", 10},
		{true, "", 10},
		{false, "not-authorized", 5},
		{true, "", 10},
		{false, "not-authorized", 5},
		{false, "not-authorized", 5},
		{false, "not-authorized", 5},
		{true, "", 10},
	}
	want[3].code = "topic-forbidden"
	got := decisionsOf(t, a)
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			t.Errorf("%d: %+v, want %+v", i, got, want[i])
		}
	}
	k.mustHaveAudited(t, `"action":"access","topic":"claims","scope":"claims","subject":"`+consumer+`","outcome":"allowed","right":"read","expires_in":10`,
		`"right":"group","group":"claims-1"`, `"outcome":"refused","code":"not-authorized","right":"transaction","transaction":"t"`)
	for _, who := range []string{"consumer", "stranger"} {
		refuses(t, k.post(t, who, "/v1/access", checks), 403, "not-authorized")
	}
	refuses(t, k.post(t, "operator", "/v1/access", strings.Replace(checks, consumer, "spiffe://other/x", 1)), 403, "not-authorized")
	if a := k.post(t, "operator", "/v1/revocations", `{"principal":"`+consumer+`","reason":"x"}`); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for i, d := range decisionsOf(t, k.post(t, "operator", "/v1/access", checks)) {
		if d.allowed {
			t.Errorf("%d: allowed to who is revoked", i)
		}
	}
}

// [CL-ACC-004] What conditions look at comes with the call, and cannot be another's.
func TestAccessConditions(t *testing.T) {
	k := startIn(t, newFolder(t, accessPolicy))
	certificate := func(of string) string {
		text, err := os.ReadFile(k.Principals[of].Certificate)
		if err != nil {
			t.Fatal(err)
		}
		block, _ := pem.Decode(text)
		return base64.StdEncoding.EncodeToString(block.Bytes)
	}
	hash := strings.Repeat("ab", 32)
	ask := func(change ...string) answer {
		body := `{"principal":"` + producer + `","remote":"10.1.2.3","certificate":"` + certificate("producer") +
			`","process":{"uid":1000,"executable":"/usr/bin/kcat","sha256":"` + hash + `","labels":{"app":"a"}},"checks":[{"action":"write","name":"claims"}]}`
		return k.post(t, "operator", "/v1/access", strings.NewReplacer(change...).Replace(body))
	}
	if got := decisionsOf(t, ask()); !got[0].allowed {
		t.Errorf("%+v", got)
	}
	for _, change := range [][]string{{"1000", "1001"}, {`"a"`, `"b"`}, {"10.1.2.3", "10.1.2.4"}, {`"certificate":"` + certificate("producer") + `",`, ""}, {`,"labels":{"app":"a"}`, ""}} {
		if got := decisionsOf(t, ask(change...)); got[0].allowed {
			t.Errorf("allowed with %v", change)
		}
	}
	for _, change := range [][]string{
		{certificate("producer"), certificate("consumer")},
		{certificate("producer"), "AAAA"},
		{certificate("producer"), "*"},
		{"10.1.2.3", "host"},
		{hash, "ab"},
		{hash, strings.ToUpper(hash)},
		{"1000", "-1"},
		{"1000", "4294967296"},
		{"/usr/bin/kcat", ""},
		{`"uid":1000,`, ""},
		{`"name":"claims"`, `"name":"a b"`},
		{`"name":"claims"`, `"name":""`},
		{`,"name":"claims"`, ``},
		{`"write"`, `"encrypt"`},
		{`"write"`, `"access"`},
		{`"write"`, `"cluster"`},
		{`"action":"write",`, ""},
		{`{"action":"write","name":"claims"}`, ""},
		{`"checks":[`, `"more":[`},
		{`{"action":"write","name":"claims"}`, strings.TrimSuffix(strings.Repeat(`{"action":"cluster"},`, 257), ",")},
		{`"principal":"` + producer + `"`, `"principal":""`},
	} {
		refuses(t, ask(change...), 400, "request-invalid")
	}
}

const aReport = `{"host":"h1","listens":["127.0.0.1:9092"],"uptime":3.5,"certificate_expires_in":3000,
	"connections":[{"principal":"` + consumer + `","remote":"10.0.0.1:5","client":"<script>alert(1)</script>","since":2,"certificate_expires_in":99}],
	"uses":[{"principal":"` + consumer + `","action":"read","name":"claims","requests":3,"records":100,"bytes":5000,"records_per_second":20,"last":1,"expires_in":7}],
	"denials":[{"principal":"` + producer + `","action":"read","name":"claims","code":"not-authorized","count":2,"last":1}]}`

// [CL-ACC-005]
func TestReports(t *testing.T) {
	k := startIn(t, newFolder(t, accessPolicy))
	refuses(t, k.post(t, "consumer", "/v1/sidecars", aReport), 403, "not-authorized")
	for _, change := range [][]string{
		{`"h1"`, `""`},
		{`"h1"`, `"a\u001b[2J"`},
		{`"h1"`, `"` + strings.Repeat("h", 513) + `"`},
		{"3.5", "-1"},
		{"3.5", "1e300"},
		{`"uptime"`, `"up"`},
		{"99", "null"},
		{"99", `"99"`},
		{`"uses":[`, `"uses":[` + strings.Repeat(`{},`, 200)},
		{`"denials":[`, `"denials":[` + strings.Repeat(`{},`, 50)},
	} {
		refuses(t, k.post(t, "operator", "/v1/sidecars", strings.Replace(aReport, change[0], change[1], 1)), 400, "request-invalid")
	}
	if a := k.post(t, "operator", "/v1/sidecars", aReport); a.Status != http.StatusOK {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	seen := k.call(t, "operator", http.MethodGet, "/v1/sidecars", "")
	for _, want := range []string{`"host":"h1"`, `"records":100`, `"code":"not-authorized"`, `"principal":"spiffe://dev.cipherlane/operator"`} {
		if !strings.Contains(string(seen.Body), want) {
			t.Errorf("no %s in %s", want, seen.Body)
		}
	}
	refuses(t, k.call(t, "consumer", http.MethodGet, "/v1/sidecars", ""), 403, "not-authorized")
	refuses(t, k.call(t, "operator", http.MethodGet, "/v1/sidecars?x=1", ""), 400, "request-invalid")
}
