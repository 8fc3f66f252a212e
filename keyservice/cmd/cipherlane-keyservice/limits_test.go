// What happens at the limits of the service as a whole.

package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// startWith starts with lines added to the configuration.
func startWith(t *testing.T, lines string) *keyService {
	t.Helper()
	dir := newFolder(t, testPolicy)
	startIn(t, dir).stop(t)
	f, err := os.OpenFile(filepath.Join(dir, "keyservice.yaml"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString(lines)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	return startIn(t, dir)
}

func TestMoreCallsThanTheServiceTakes(t *testing.T) {
	k := startWith(t, "limits: {in_flight: 1}\n")
	conn := k.dial(t)
	const body = `{"topic":"claims"}`
	send(t, conn, requestHead+fmt.Sprintf("Content-Length: %d\r\n\r\n{", len(body)))
	waitFor(t, "the call to begin", func() bool { return strings.Contains(k.get(t, "/metrics"), "cipherlane_keyservice_in_flight 1\n") })
	a := k.post(t, "producer", "/v1/encryption-key", body)
	refuses(t, a, 429, "key-service-unavailable")
	if !k.audited(t, a.text("request_id"), "key-service-unavailable") {
		t.Error("not in the audit log")
	}
	send(t, conn, body[1:])
	waitFor(t, "the place to be free", func() bool { return k.post(t, "producer", "/v1/encryption-key", body).Status == 200 })
}

func TestMoreConnectionsThanTheServiceTakes(t *testing.T) {
	k := startWith(t, "limits: {connections: 2}\ntimeouts: {headers: 1s}\n")
	for range 2 { // silent ones: they are closed after a second
		conn, err := net.Dial("tcp", strings.TrimPrefix(k.URL, "https://"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	begin := time.Now()
	k.encryptionKey(t, "claims")
	if took := time.Since(begin); took < 500*time.Millisecond || took > 5*time.Second {
		t.Errorf("answered after %s", took)
	}
}

// [CL-API-017] A store that cannot grow gives out no new key, and goes on with those that it has.
func TestFullStoreDisk(t *testing.T) {
	k := start(t)
	kid := k.encryptionKey(t, "claims").text("kid")
	info, err := os.Stat(filepath.Join(k.Dir, "keys.db"))
	if err != nil {
		t.Fatal(err)
	}
	k.limit(t, uint64(info.Size()))
	refused, made := "", map[string]string{}
	for i := 0; refused == "" && i < 50; i++ {
		topic := fmt.Sprint("t-", i, "-", strings.Repeat("x", 200))
		a := k.post(t, "producer", "/v1/encryption-key", `{"topic":"`+topic+`"}`)
		if a.Status == 200 {
			made[topic] = a.text("kid")
			continue
		}
		refuses(t, a, 500, "internal")
		if strings.Contains(string(a.Body), "file too large") || strings.Contains(string(a.Body), k.Dir) {
			t.Errorf("the answer tells of the inside: %s", a.Body)
		}
		// The log reaches this process through a pipe, and may be later than the answer.
		waitFor(t, "the cause in the log", func() bool {
			log := k.stderr.String()
			return strings.Contains(log, a.text("request_id")) && strings.Contains(log, "file too large")
		})
		refused = topic
	}
	if refused == "" {
		t.Fatal("the store never filled")
	}
	if k.encryptionKey(t, "claims").text("kid") != kid {
		t.Error("the keys that are there are not given any more")
	}
	k.limit(t, unix.RLIM_INFINITY)
	made[refused] = k.encryptionKey(t, refused).text("kid")
	k.stop(t)
	again := startIn(t, k.Dir) // which reads all of it
	for topic, want := range made {
		if got := again.encryptionKey(t, topic).text("kid"); got != want {
			t.Errorf("%s: another key", topic)
		}
	}
}

// [CL-AUD-007] Who calls too often is told when to ask again, delays nobody else, and fills neither audit log nor log.
func TestPrincipalCallsTooOften(t *testing.T) {
	k := startWith(t, "limits: {principal: {rate: 1, burst: 30}}\n")
	kid := k.encryptionKey(t, "claims").text("kid")
	c := client(t, k.tlsConfig(t, "producer"))
	refused := 0
	for range 100 {
		a := k.postWith(t, c, "/v1/encryption-key", `{"topic":"claims"}`)
		if a.Status == http.StatusOK {
			continue
		}
		refused++
		refuses(t, a, 429, "key-service-unavailable")
		if seconds, err := strconv.Atoi(a.Header.Get("Retry-After")); err != nil || seconds < 1 || seconds > 2 {
			t.Errorf("Retry-After: %q", a.Header.Get("Retry-After"))
		}
	}
	if refused < 60 {
		t.Errorf("%d of 100 refused", refused)
	}
	k.decrypt(t, "claims", kid)
	if !strings.Contains(k.get(t, "/metrics"), fmt.Sprintf("cipherlane_keyservice_throttled_total{reason=\"principal\"} %d\n", refused)) {
		t.Error("not counted")
	}
	kids := make([]string, 1000) // each is a part of a line in the audit log, so many cost more than one call
	for i := range kids {
		kids[i] = fmt.Sprintf("\"%032x\"", i)
	}
	many := `{"topic":"claims","kids":[` + strings.Join(kids, ",") + `]}`
	if a := k.post(t, "consumer", "/v1/decryption-keys", many); a.Status != http.StatusOK {
		t.Errorf("%d %s", a.Status, a.Body)
	}
	refuses(t, k.post(t, "consumer", "/v1/decryption-keys", many), 429, "key-service-unavailable")
	k.stop(t) // which records what was gathered
	counted := map[string]int{}
	for _, r := range k.auditLog(t) {
		if r.Code == "key-service-unavailable" {
			counted[r.Principal] += max(1, r.Count)
		}
	}
	if counted["spiffe://dev.cipherlane/producer"] != refused || counted["spiffe://dev.cipherlane/consumer"] != 1 {
		t.Errorf("recorded %v of %d", counted, refused)
	}
	if lines := len(k.auditLog(t)); lines > 60 {
		t.Errorf("%d lines", lines)
	}
}

// [CL-AUD-007] Where callers without a certificate are let in, they do not fill the audit log, and delay nobody who is known.
func TestStrangersCallTooOften(t *testing.T) {
	k := startConfigured(t, withTokens+"\nlimits: {principal: {rate: 1, burst: 30}}")
	c := client(t, k.tlsConfig(t, ""))
	counted := map[int]int{}
	for range 100 {
		counted[k.postWith(t, c, "/v1/encryption-key", `{"topic":"claims"}`).Status]++
	}
	if counted[http.StatusUnauthorized] < 30 || counted[http.StatusTooManyRequests] < 60 || len(counted) != 2 {
		t.Errorf("%v", counted)
	}
	k.encryptionKey(t, "claims")
	if lines := len(k.auditLog(t)); lines > 45 {
		t.Errorf("%d lines", lines)
	}
}
