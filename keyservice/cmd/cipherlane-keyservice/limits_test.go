// What happens at the limits of the service as a whole.

package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
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
