// The bad cases of requests, without a server: what is refused before the service is asked, and with which status.

package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

func post(body io.Reader, header ...string) *http.Request {
	r := httptest.NewRequest(http.MethodPost, "/v1/x", body)
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i+1] == "" {
			r.Header.Del(header[i])
		}
	}
	return r
}

// statusFor gives the status and code of an error of reading a request.
func statusFor(t *testing.T, err error) string {
	t.Helper()
	refused, ok := errors.AsType[*refusal.Error](err)
	if !ok {
		t.Fatal("not a refusal:", err)
	}
	if len(refused.Detail) > 1000 || refused.Detail == "" {
		t.Error("detail:", len(refused.Detail))
	}
	return fmt.Sprint(statusOf(refused), " ", refused.Code)
}

// [CL-API-015] Whatever is not exactly one object of known members is refused.
func TestBadBodies(t *testing.T) {
	type request struct {
		A *int    `json:"a"`
		B *string `json:"b"`
	}
	const invalid = "400 request-invalid"
	for name, body := range map[string]string{
		"empty": "", "space": " ", "null": "null", "list": "[]", "number": "7", "text": `"a"`, "open": `{"a":1`, "two": `{"a":1}{"a":1}`,
		"trailing": `{"a":1} x`, "comment": `{"a":1}//`, "unknown": `{"c":1}`, "case": `{"A":1}`, "twice": `{"a":1,"a":1}`,
		"escaped twice": `{"a":1,"\u0061":1}`, "null member": `{"a":null}`, "fraction": `{"a":1.5}`, "text for number": `{"a":"1"}`,
		"number for text": `{"b":1}`, "large number": `{"a":1e400}`, "NaN": `{"a":NaN}`, "single quotes": `{'a':1}`, "no UTF-8": "{\"b\":\"\xff\"}",
		"half a surrogate": `{"b":"\ud800"}`, "deep": strings.Repeat(`{"a":`, 9) + "1" + strings.Repeat("}", 9),
		"very deep": strings.Repeat("[", 60_000), "comma": `{"a":1,}`, "control character": "{\"b\":\"\x01\"}",
	} {
		var into request
		err := read(httptest.NewRecorder(), post(strings.NewReader(body)), &into)
		if err == nil {
			t.Errorf("%s: taken", name)
		} else if got := statusFor(t, err); got != invalid {
			t.Errorf("%s: %s", name, got)
		}
	}
	var into request
	if err := read(httptest.NewRecorder(), post(strings.NewReader(` {"b":"x","a":1} `)), &into); err != nil || *into.A != 1 || *into.B != "x" {
		t.Error(err)
	}
}

func TestBodySizes(t *testing.T) {
	pad := func(size int) io.Reader { return strings.NewReader(`{}` + strings.Repeat(" ", size-2)) }
	if err := read(httptest.NewRecorder(), post(pad(maxBody)), &struct{}{}); err != nil {
		t.Error("refused at the limit:", err)
	}
	if got := statusFor(t, read(httptest.NewRecorder(), post(pad(maxBody+1)), &struct{}{})); got != "413 request-too-large" {
		t.Error(got)
	}
	broken := io.MultiReader(strings.NewReader(`{"a"`), iotest.ErrReader(errors.New("hung up")))
	if got := statusFor(t, read(httptest.NewRecorder(), post(broken), &struct{}{})); got != "400 request-invalid" {
		t.Error(got)
	}
}

// [CL-API-015] A wrong type is told before anything of the body is believed.
func TestMediaTypes(t *testing.T) {
	for _, good := range []string{"application/json", "Application/JSON", "application/json; charset=utf-8", `application/json;charset="UTF-8"`} {
		if err := read(httptest.NewRecorder(), post(strings.NewReader("{}"), "Content-Type", good), &struct{}{}); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "text/plain", "application/json2", "application/json; charset=latin1", "application/json; q=1", "json", "application/json;;", "a/b, application/json"} {
		if got := statusFor(t, read(httptest.NewRecorder(), post(strings.NewReader("{}"), "Content-Type", bad), &struct{}{})); got != "415 request-invalid" {
			t.Errorf("%q: %s", bad, got)
		}
	}
	for _, encoding := range []string{"gzip", "identity"} {
		if got := statusFor(t, read(httptest.NewRecorder(), post(strings.NewReader("{}"), "Content-Encoding", encoding), &struct{}{})); got != "415 request-invalid" {
			t.Errorf("%q: %s", encoding, got)
		}
	}
	twice := post(strings.NewReader("{}"))
	twice.Header.Add("Content-Type", "application/json")
	if got := statusFor(t, read(httptest.NewRecorder(), twice, &struct{}{})); got != "415 request-invalid" {
		t.Error(got)
	}
}

func decoded[T any](t *testing.T, body string) *T {
	t.Helper()
	request := new(T)
	if err := decode([]byte(body), request); err != nil {
		t.Fatal(body, err)
	}
	return request
}

func TestBadEncryptionKeyRequests(t *testing.T) {
	const kid = "00000000000000000000000000000001"
	for body, want := range map[string]string{
		`{}`:             "400 request-invalid",
		`{"topic":""}`:   "400 topic-invalid",
		`{"topic":"."}`:  "400 topic-invalid",
		`{"topic":"ä"}`:  "400 topic-invalid",
		`{"topic":"\n"}`: "400 topic-invalid",
		`{"topic":"` + strings.Repeat("t", 250) + `"}`:                                               "400 topic-invalid",
		`{"topic":"t","usage":{}}`:                                                                   "400 request-invalid",
		`{"topic":"t","usage":{"kid":"` + kid + `","records":1}}`:                                    "400 request-invalid",
		`{"topic":"t","usage":{"kid":"` + strings.ToUpper("a"+kid[1:]) + `","records":1,"bytes":1}}`: "400 request-invalid",
		`{"topic":"t","usage":{"kid":"` + kid + `0","records":1,"bytes":1}}`:                         "400 request-invalid",
		`{"topic":"t","usage":{"kid":"` + kid + `","records":-1,"bytes":1}}`:                         "400 request-invalid",
		`{"topic":"t","usage":{"kid":"` + kid + `","records":9007199254740992,"bytes":1}}`:           "400 request-invalid",
		`{"topic":"t","usage":{"kid":"` + kid + `","records":1,"bytes":9223372036854775807}}`:        "400 request-invalid",
	} {
		_, _, err := decoded[encryptionKeyRequest](t, body).check()
		if err == nil {
			t.Errorf("%s: taken", body)
		} else if got := statusFor(t, err); got != want {
			t.Errorf("%.60s: %s", body, got)
		}
	}
	_, usage, err := decoded[encryptionKeyRequest](t, `{"topic":"t","usage":{"kid":"`+kid+`","records":9007199254740991,"bytes":0}}`).check()
	if err != nil || usage.Records != maxUsage || usage.Bytes != 0 {
		t.Error(usage, err)
	}
}

func kids(count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf(`"%032x"`, i)
	}
	return strings.Join(all, ",")
}

func TestBadDecryptionKeysRequests(t *testing.T) {
	for body, want := range map[string]string{
		`{"topic":"t"}`:                                          "400 request-invalid",
		`{"kids":[]}`:                                            "400 request-invalid",
		`{"topic":"a/b","kids":[]}`:                              "400 topic-invalid",
		`{"topic":"t","kids":["0"]}`:                             "400 request-invalid",
		`{"topic":"t","kids":[""]}`:                              "400 request-invalid",
		`{"topic":"t","kids":[` + kids(1001) + `]}`:              "400 request-invalid",
		`{"topic":"t","kids":[` + kids(1) + `,` + kids(1) + `]}`: "400 request-invalid",
	} {
		_, _, err := decoded[decryptionKeysRequest](t, body).check()
		if err == nil {
			t.Errorf("%.60s: taken", body)
		} else if got := statusFor(t, err); got != want {
			t.Errorf("%.60s: %s", body, got)
		}
	}
	for _, count := range []int{0, 1, maxKids} {
		if _, got, err := decoded[decryptionKeysRequest](t, `{"topic":"t","kids":[`+kids(count)+`]}`).check(); err != nil || len(got) != count {
			t.Error(count, err)
		}
	}
}

func TestRevokeRequests(t *testing.T) {
	for body, want := range map[string]lease.Names{
		`{"principal":"p"}`:                                {Principal: "p"},
		`{"scope":"s","reason":"because"}`:                 {Scope: "s"},
		`{"principal":"p","scope":"s"}`:                    {Principal: "p", Scope: "s"},
		`{"principal":"p","scope":"s","action":"decrypt"}`: {Principal: "p", Scope: "s", Action: "decrypt"},
	} {
		if got, _, err := decoded[revokeRequest](t, body).check(); err != nil || got != want {
			t.Error(body, got, err)
		}
	}
	for _, body := range []string{
		`{"reason":"x"}`, `{"action":"encrypt"}`, `{"scope":"s","action":"encrypt"}`, `{"principal":"p","scope":"s","action":""}`,
		`{"principal":"p","scope":"s","action":"admin"}`, `{"principal":"` + strings.Repeat("p", 513) + `"}`, `{"principal":"a\u0000b"}`,
		`{"scope":".."}`, `{"scope":"s","reason":""}`, `{"scope":"s","reason":"a\nb"}`,
	} {
		if _, _, err := decoded[revokeRequest](t, body).check(); err == nil || statusFor(t, err) != "400 request-invalid" {
			t.Errorf("%.60s: %v", body, err)
		}
	}
}

// [CL-OPR-012] Parameters: known ones, once, within their range.
func TestParameters(t *testing.T) {
	get := func(query string) *http.Request {
		return httptest.NewRequest(http.MethodGet, "/v1/x?"+query, http.NoBody)
	}
	for query, want := range map[string]int{"": defaultLimit, "limit=1": 1, "limit=1000": maxLimit, "after=a&limit=7": 7} {
		page, _, err := pageOf(get(query), checkScope)
		if err != nil || page.Limit != want {
			t.Error(query, page, err)
		}
	}
	for _, query := range []string{
		"limit=0", "limit=-1", "limit=1001", "limit=01", "limit=1.0", "limit=", "limit", "limit=1&limit=1", "Limit=1", "after=", "after=a%20b",
		"after=..", "x=1", "limit=99999999999999999999", ";", "%", "after=a;limit=1",
	} {
		if _, _, err := pageOf(get(query), checkScope); err == nil || statusFor(t, err) != "400 request-invalid" {
			t.Errorf("%q: %v", query, err)
		}
	}
	withBody := httptest.NewRequest(http.MethodGet, "/v1/x", bytes.NewReader([]byte("{}")))
	if _, err := query(withBody); err == nil {
		t.Error("a body was taken where none is")
	}
}
