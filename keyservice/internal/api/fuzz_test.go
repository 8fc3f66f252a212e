package api

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
	"github.com/cipherlane/cipherlane/keyservice/internal/vectors"
)

// requestSeeds are the topics of the vectors and what stands at the limits.
func requestSeeds(f *testing.F) {
	f.Helper()
	for _, v := range vectors.Read(f, "topic") {
		f.Add("application/json", append(append([]byte(`{"topic":`), v.Input...), '}'))
	}
	kid := strings.Repeat("0", 32)
	for _, body := range []string{
		`{"topic":"claims"}`, `{"topic":"claims","usage":{"kid":"` + kid + `","records":7,"bytes":7.0}}`,
		`{"topic":"claims","kids":[]}`, `{"topic":"claims","kids":["` + kid + `"]}`, `{"topic":"claims","kids":["` + kid + `","` + kid + `"]}`,
		`{"kids":["` + kid + `"]}`, `{"all":true}`, `{"all":false}`, `{"all":true,"confirm":"AAAAAAAAAAAAAAAAAAAAAAAAAA"}`, `{"principal":"p","expires_in":60}`,
		`{"principal":"p","expires_in":6e1}`, `{"scope":"claims","principal":"p","action":"encrypt","reason":"x"}`, `{}`, `null`, `[[[[[[[[[]]]]]]]]]`, `{"a":1,"a":1}`, `{"topic":"\ud800"}`, "{\"topic\":\"\xff\"}", ``, ` `, `{`, `{}{}`, `1e400`, `"`,
	} {
		f.Add("application/json; charset=utf-8", []byte(body))
	}
	f.Add("text/plain", []byte(`{}`))
	f.Add("application/json;;", []byte(`{}`))
}

// Whatever the body and its content type: what is accepted is within the limits, and what is refused is refused with a code of the
// caller's and a text that can be shown [CL-API-015].
func FuzzRequests(f *testing.F) {
	requestSeeds(f)
	f.Fuzz(func(t *testing.T, contentType string, body []byte) {
		var encrypt encryptionKeyRequest
		if checkRead(t, contentType, body, &encrypt) {
			topic, usage, err := encrypt.check()
			if checkRefusal(t, err) && (names.CheckTopic(topic) != nil || usage != nil && (usage.Records < 0 || usage.Records > maxUsage || usage.Bytes < 0)) {
				t.Fatalf("accepted %q %+v", topic, usage)
			}
		}
		var decrypt decryptionKeysRequest
		if checkRead(t, contentType, body, &decrypt) {
			topic, kids, err := decrypt.check()
			if checkRefusal(t, err) && (names.CheckTopic(topic) != nil || !distinct(kids)) {
				t.Fatalf("accepted %q %v", topic, kids)
			}
		}
		checkOperators(t, contentType, body)
	})
}

func checkOperators(t *testing.T, contentType string, body []byte) {
	t.Helper()
	var destroy destroyRequest
	if checkRead(t, contentType, body, &destroy) {
		target, err := destroy.check("claims")
		if checkRefusal(t, err) && (target.All == (len(target.Kids) > 0) || !distinct(target.Kids)) {
			t.Fatalf("accepted %+v", target)
		}
	}
	var revoke revokeRequest
	if checkRead(t, contentType, body, &revoke) {
		who, reason, err := revoke.check()
		if checkRefusal(t, err) && (who.Principal == "" && who.Scope == "" || len(reason) > 256) {
			t.Fatalf("accepted %+v %q", who, reason)
		}
	}
	var newToken tokenRequest
	if checkRead(t, contentType, body, &newToken) {
		_, life, err := newToken.check()
		if checkRefusal(t, err) && (life < token.MinLife || life > token.MaxLife) {
			t.Fatalf("accepted %s", life)
		}
	}
}

func distinct(kids []datakey.ID) bool {
	seen := map[datakey.ID]bool{}
	for _, kid := range kids {
		seen[kid] = true
	}
	return len(seen) == len(kids) && len(kids) <= maxKids
}

// checkRead tells whether a body was taken. What was taken, the standard library takes too.
func checkRead(t *testing.T, contentType string, body []byte, into any) bool {
	t.Helper()
	r := httptest.NewRequest(http.MethodPost, "/v1/encryption-key", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", contentType)
	taken := checkRefusal(t, read(httptest.NewRecorder(), r, into))
	if taken && (!json.Valid(body) || len(body) > maxBody) {
		t.Fatalf("accepted %q", body)
	}
	return taken
}

// checkRefusal tells whether there is none.
func checkRefusal(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return true
	}
	refused, ok := errors.AsType[*refusal.Error](err)
	if !ok || !utf8.ValidString(refused.Detail) || len(refused.Detail) > 2048 {
		t.Fatalf("not a refusal that can be shown: %q", err)
	}
	if status := statusOf(refused); status < 400 || status >= 500 {
		t.Fatalf("the caller's mistake is answered with %d", status)
	}
	return false
}
