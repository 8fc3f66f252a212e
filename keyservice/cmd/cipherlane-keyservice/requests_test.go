// Requests that nobody should send.

package main

import (
	"bufio"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"
)

func kids(count int) string {
	all := make([]string, count)
	for i := range all {
		all[i] = fmt.Sprintf(`"%032x"`, i)
	}
	return strings.Join(all, ",")
}

// [CL-API-015]
func TestHostileBodies(t *testing.T) {
	k := start(t)
	kid := strings.Repeat("0", 32)
	deep := strings.Repeat("[", 9) + strings.Repeat("]", 9)
	padded := func(size int) string {
		const body = `{"topic":"claims"}`
		return body + strings.Repeat(" ", size-len(body))
	}
	const encrypt, decrypt, rotate = "/v1/encryption-key", "/v1/decryption-keys", "/v1/scopes/claims/rotate"
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{encrypt, ``, 415, "request-invalid"}, // no body, and so no content type
		{encrypt, ` `, 400, "request-invalid"},
		{encrypt, `{`, 400, "request-invalid"},
		{encrypt, `null`, 400, "request-invalid"},
		{encrypt, `[]`, 400, "request-invalid"},
		{encrypt, `"claims"`, 400, "request-invalid"},
		{encrypt, `{}`, 400, "request-invalid"},
		{encrypt, `{"topic":null}`, 400, "request-invalid"},
		{encrypt, `{"topic":7}`, 400, "request-invalid"},
		{encrypt, `{"topic":["claims"]}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","topic":"claims"}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","t\u006fpic":"t-1"}`, 400, "request-invalid"},
		{encrypt, `{"Topic":"claims"}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","extra":1}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims"}{}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims"} x`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims",}`, 400, "request-invalid"},
		{encrypt, `{'topic':'claims'}`, 400, "request-invalid"},
		{encrypt, "\ufeff" + `{"topic":"claims"}`, 400, "request-invalid"},
		{encrypt, "{\"topic\":\"cl\xffims\"}", 400, "request-invalid"},
		{encrypt, `{"topic":"\ud800"}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":null}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":[]}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1,"bytes":1,"x":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":-1,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1.5,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1e3,"bytes":7.0}}`, 200, ""},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1e-3,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1e400,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":true,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":[1],"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":9007199254740992.5,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":"1","bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":1,"bytes":9007199254740992}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid + `","records":99999999999999999999,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":"claims","usage":{"kid":"` + kid[1:] + `","records":1,"bytes":1}}`, 400, "request-invalid"},
		{encrypt, `{"topic":""}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"."}`, 400, "topic-invalid"},
		{encrypt, `{"topic":".."}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"a b"}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"a/b"}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"claims\u0000"}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"claims\n"}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"` + strings.Repeat("x", 250) + `"}`, 400, "topic-invalid"},
		{encrypt, `{"topic":"` + strings.Repeat("x", 60_000) + `"}`, 400, "topic-invalid"},
		{encrypt, `{"topic":` + deep + `}`, 400, "request-invalid"},
		{encrypt, strings.Repeat("[", 60_000), 400, "request-invalid"},
		{encrypt, strings.Repeat(`{"a":`, 10_000), 400, "request-invalid"},
		{encrypt, padded(64 << 10), 200, ""},
		{encrypt, padded(64<<10 + 1), 413, "request-too-large"},
		{encrypt, padded(2 << 20), 413, "request-too-large"},
		{encrypt, `{"topic":"t-` + strings.Repeat("x", 247) + `"}`, 200, ""},
		{decrypt, `{"topic":"claims"}`, 400, "request-invalid"},
		{decrypt, `{"kids":[]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":null}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":{}}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":[null]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":[1]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":[["` + kid + `"]]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":["` + kid + `","` + kid + `"]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":["` + kid + `0"]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":["ABCDEF00000000000000000000000000"]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":["g0000000000000000000000000000000"]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":[""]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"claims","kids":[` + kids(1001) + `]}`, 400, "request-invalid"},
		{decrypt, `{"topic":"..","kids":[]}`, 400, "topic-invalid"},
		{rotate, `[]`, 400, "request-invalid"},
		{rotate, `{"scope":"claims"}`, 400, "request-invalid"},
		{rotate, `{}{}`, 400, "request-invalid"},
		{rotate, `null`, 400, "request-invalid"},
		{"/v1/scopes/a%20b/rotate", ``, 400, "request-invalid"},
		{"/v1/scopes/a%2fb/rotate", ``, 400, "request-invalid"},
		{"/v1/scopes/" + strings.Repeat("x", 250) + "/rotate", ``, 400, "request-invalid"},
		{"/v1/scopes//rotate", ``, 404, "not-found"},
		{"/v1/scopes/../rotate", ``, 404, "not-found"},
		{"/v1/encryption-key/", `{"topic":"claims"}`, 404, "not-found"},
		{"//v1/encryption-key", `{"topic":"claims"}`, 404, "not-found"},
		{"/v2/encryption-key", `{"topic":"claims"}`, 404, "not-found"},
		{"/", ``, 404, "not-found"},
		{"/healthz", ``, 404, "not-found"},
		{"/metrics", ``, 404, "not-found"},
	} {
		principal := "producer"
		if c.path == decrypt {
			principal = "consumer"
		}
		if strings.HasSuffix(c.path, "rotate") {
			principal = "operator"
		}
		a := k.post(t, principal, c.path, c.body)
		if a.Status != c.status || a.text("code") != c.code {
			t.Errorf("%s %.60q: %d %.200s; want %d %s", c.path, c.body, a.Status, a.Body, c.status, c.code)
		}
		if c.code != "" && !k.audited(t, a.text("request_id"), c.code) {
			t.Errorf("%s %.60q: the refusal is not in the audit log", c.path, c.body)
		}
	}
}

// audited tells whether the audit log holds a refusal.
func (k *keyService) audited(t *testing.T, requestID, code string) bool {
	t.Helper()
	log, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `"`+requestID+`"`) && !strings.Contains(line, `"begun"`) {
			return strings.Contains(line, `"refused"`) && strings.Contains(line, `"code":"`+code+`"`)
		}
	}
	return false
}

// [CL-API-015] [CL-ERR-005]
func TestHostileHeaders(t *testing.T) {
	k := start(t)
	c := client(t, k.tlsConfig(t, "producer"))
	for _, headers := range []http.Header{
		{},
		{"Content-Type": {"text/plain"}},
		{"Content-Type": {"application/x-www-form-urlencoded"}},
		{"Content-Type": {"application/json; charset=latin1"}},
		{"Content-Type": {"application/json; boundary=x"}},
		{"Content-Type": {"application/json;;"}},
		{"Content-Type": {"application/problem+json"}},
		{"Content-Type": {"application/json", "text/plain"}},
		{"Content-Type": {"application/json"}, "Content-Encoding": {"gzip"}},
	} {
		request := k.request(t, http.MethodPost, headers)
		refuses(t, do(t, c, request), 415, "request-invalid")
	}
	for _, kind := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		if a := do(t, c, k.request(t, http.MethodPost, http.Header{"Content-Type": {kind}})); a.Status != 200 {
			t.Errorf("%s: %d", kind, a.Status)
		}
	}
	for _, method := range []string{http.MethodGet, http.MethodPut, http.MethodDelete, http.MethodPatch, http.MethodOptions, "BREW"} {
		a := do(t, c, k.request(t, method, http.Header{"Content-Type": {"application/json"}}))
		refuses(t, a, 405, "not-found")
		if a.Header.Get("Allow") != "POST" {
			t.Errorf("%s: Allow: %q", method, a.Header.Get("Allow"))
		}
	}
}

func (k *keyService) request(t *testing.T, method string, headers http.Header) *http.Request {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, k.URL+"/v1/encryption-key", strings.NewReader(`{"topic":"claims"}`))
	if err != nil {
		t.Fatal(err)
	}
	request.Header = headers
	return request
}

func TestHeaderLimit(t *testing.T) {
	k := start(t)
	for _, protocol := range []string{"http/1.1", "h2"} {
		cfg := k.tlsConfig(t, "producer")
		cfg.NextProtos = []string{protocol}
		c := client(t, cfg)
		if protocol == "http/1.1" {
			c.Transport.(*http.Transport).ForceAttemptHTTP2 = false //nolint:forcetypeassert // made so above
		}
		for size, ok := range map[int]bool{10 << 10: true, 17 << 10: false, 900 << 10: false} {
			headers := http.Header{"Content-Type": {"application/json"}, "X-Padding": {strings.Repeat("x", size)}}
			response, err := c.Do(k.request(t, http.MethodPost, headers))
			status := 0
			if err == nil {
				status = response.StatusCode
				_ = response.Body.Close()
			}
			if ok != (status == 200) || !ok && err == nil && status != http.StatusRequestHeaderFieldsTooLarge {
				t.Errorf("%s, %d bytes: %d, %v", protocol, size, status, err)
			}
		}
	}
}

// dial opens a TLS connection of the producer that speaks HTTP/1.1 by hand.
func (k *keyService) dial(t *testing.T) net.Conn {
	t.Helper()
	cfg := k.tlsConfig(t, "producer")
	conn, err := tls.Dial("tcp", strings.TrimPrefix(k.URL, "https://"), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func send(t *testing.T, conn net.Conn, text string) {
	t.Helper()
	if _, err := io.WriteString(conn, text); err != nil {
		t.Fatal(err)
	}
}

const requestHead = "POST /v1/encryption-key HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"

// Slow callers lose their connection, and do not keep others waiting.
func TestSlowCallers(t *testing.T) {
	k := start(t)
	begin := time.Now()
	closed := map[string]chan time.Duration{}
	for name, text := range map[string]string{
		"silence":        "",
		"half a header":  "POST /v1/encryp",
		"endless header": requestHead + "X-A: b",
		"half a body":    requestHead + "Content-Length: 100\r\n\r\n{",
		"endless chunks": requestHead + "Transfer-Encoding: chunked\r\n\r\n1\r\n{\r\n",
	} {
		conn := k.dial(t)
		send(t, conn, text)
		closed[name] = make(chan time.Duration, 1)
		go func() {
			_, _ = io.Copy(io.Discard, conn)
			closed[name] <- time.Since(begin)
		}()
	}
	raw, err := net.Dial("tcp", strings.TrimPrefix(k.URL, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	closed["no handshake"] = make(chan time.Duration, 1)
	go func() {
		_, _ = io.Copy(io.Discard, raw)
		closed["no handshake"] <- time.Since(begin)
	}()
	if k.encryptionKey(t, "claims").Status != 200 || time.Since(begin) > 4*time.Second {
		t.Error("others had to wait")
	}
	for name, done := range closed {
		limit := 6500 * time.Millisecond // 5 s for the headers
		if strings.Contains(name, "body") || strings.Contains(name, "chunks") {
			limit = 11500 * time.Millisecond // 10 s in all
		}
		select {
		case took := <-done:
			if took > limit {
				t.Errorf("%s: closed after %s", name, took)
			}
		case <-time.After(limit):
			t.Errorf("%s: not closed", name)
		}
	}
}

func TestBrokenHTTP(t *testing.T) {
	k := start(t)
	for name, text := range map[string]string{
		"two lengths":         requestHead + "Content-Length: 18\r\nContent-Length: 19\r\n\r\n{\"topic\":\"claims\"}",
		"negative length":     requestHead + "Content-Length: -1\r\n\r\n",
		"length and chunks":   requestHead + "Content-Length: 18\r\nTransfer-Encoding: chunked, identity\r\n\r\n",
		"space before colon":  "POST /v1/encryption-key HTTP/1.1\r\nHost: a\r\nContent-Type : application/json\r\n\r\n",
		"no host":             "POST /v1/encryption-key HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
		"HTTP/3.0":            "POST /v1/encryption-key HTTP/3.0\r\nHost: a\r\n\r\n",
		"not HTTP":            "\x00\x01\x02\x03\r\n\r\n",
		"length that is cut":  requestHead + "Content-Length: 18\r\nConnection: close\r\n\r\n{\"topic\"",
		"bare line feed body": requestHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n{}\r\n0\r\n\r\n",
	} {
		conn := k.dial(t)
		send(t, conn, text)
		if tcp, ok := conn.(*tls.Conn); ok {
			_ = tcp.CloseWrite()
		}
		_ = conn.SetReadDeadline(time.Now().Add(8 * time.Second))
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("%s: no answer, and not closed", name)
			}
			continue
		}
		_ = response.Body.Close()
		if response.StatusCode < 400 {
			t.Errorf("%s: %s", name, response.Status)
		}
	}
	if k.encryptionKey(t, "claims").Status != 200 {
		t.Error("the service no longer answers")
	}
}
