// HTTP/1.1 that says one thing and does another, callers who send a little at a time, and more than anyone may ask for.

package main

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// [CL-API-015] A million kids are refused after 64 KiB of them: the rest is neither read nor kept.
func TestAMillionKids(t *testing.T) {
	k := start(t)
	k.encryptionKey(t, "claims")
	before := k.memory(t)
	c := client(t, k.tlsConfig(t, "consumer"))
	body := `{"topic":"claims","kids":[` + kids(1_000_000) + `]}`
	a := k.postWith(t, c, "/v1/decryption-keys", body)
	refuses(t, a, 413, "request-too-large")
	if grown := k.memory(t) - before; grown > 32<<20 {
		t.Errorf("%d MiB for a refusal", grown>>20)
	}
	if !k.audited(t, a.text("request_id"), "request-too-large") {
		t.Error("not in the audit log")
	}
}

// [CL-API-015] HTTP/1.1 that says one thing and does another.
func TestHostileLengths(t *testing.T) {
	k := start(t)
	chunked := requestHead + "Transfer-Encoding: chunked\r\n\r\n"
	for name, text := range map[string]string{
		"a length of 2^63-1":        requestHead + "Content-Length: 9223372036854775807\r\n\r\n{\"topic\":\"claims\"}",
		"a length beyond 2^64":      requestHead + "Content-Length: 99999999999999999999\r\n\r\n{\"topic\":\"claims\"}",
		"a length with a sign":      requestHead + "Content-Length: +18\r\n\r\n{\"topic\":\"claims\"}",
		"a length in hexadecimal":   requestHead + "Content-Length: 0x12\r\n\r\n{\"topic\":\"claims\"}",
		"a chunk beyond 2^64":       chunked + "FFFFFFFFFFFFFFFFF\r\n{}\r\n0\r\n\r\n",
		"a negative chunk":          chunked + "-2\r\n{}\r\n0\r\n\r\n",
		"a chunk without its end":   chunked + "2\r\n{}0\r\n\r\n",
		"an endless extension":      chunked + "2;" + strings.Repeat("x", 1<<20) + "\r\n{}\r\n0\r\n\r\n",
		"a thousand trailers":       chunked + "2\r\n{}\r\n0\r\n" + strings.Repeat("X-A: b\r\n", 10_000) + "\r\n",
		"an unknown coding":         requestHead + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
		"a coding that looks alike": requestHead + "Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n",
		"a NUL in a header":         requestHead + "X-A: b\x00c\r\nContent-Length: 18\r\n\r\n{\"topic\":\"claims\"}",
		"a NUL in the path":         "POST /v1/encryption-key\x00 HTTP/1.1\r\nHost: a\r\n\r\n",
		"two hosts":                 "POST /v1/encryption-key HTTP/1.1\r\nHost: a\r\nHost: b\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{\"topic\":\"claims\"}",
		"an upgrade to h2c":         requestHead + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\nContent-Length: 2\r\n\r\n{}",
		"CONNECT":                   "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\n",
		"another host's URL":        "POST http://169.254.169.254/latest HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			conn := k.dial(t)
			_, _ = io.WriteString(conn, text) // the server may hang up before the end
			if tcp, ok := conn.(*tls.Conn); ok {
				_ = tcp.CloseWrite()
			}
			_ = conn.SetReadDeadline(time.Now().Add(14 * time.Second))
			answers, err := io.ReadAll(conn)
			if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("not closed")
			}
			if bytes.Contains(answers, []byte(`"key":`)) || bytes.Contains(answers, []byte(" 200 ")) || bytes.Contains(answers, []byte(" 101 ")) {
				t.Errorf("accepted: %s", answers)
			}
		})
	}
	k.quiet(t)
	k.encryptionKey(t, "claims")
}

// Slow callers who always send a little more lose their connection all the same.
func TestDripFeeding(t *testing.T) {
	t.Parallel()
	k := startWith(t, "timeouts: {headers: 1s, request: 2s}\n")
	for name, text := range map[string]string{
		"headers": requestHead,
		"body":    requestHead + "Content-Length: 60000\r\n\r\n",
		"chunks":  requestHead + "Transfer-Encoding: chunked\r\n\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			conn, more := k.dial(t), "X-A: b\r\n"
			if name == "chunks" {
				more = "1\r\n \r\n"
			}
			began := time.Now()
			send(t, conn, text)
			go func() {
				for {
					if _, err := io.WriteString(conn, more); err != nil {
						return
					}
					time.Sleep(100 * time.Millisecond)
				}
			}()
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			if _, err := io.Copy(io.Discard, conn); errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("not closed")
			}
			t.Logf("closed after %s", time.Since(began).Round(time.Millisecond))
		})
	}
}
