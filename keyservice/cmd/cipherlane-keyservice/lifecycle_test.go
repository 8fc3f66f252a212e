// Starting, reloading, stopping, dying.

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// [CL-API-017] What was handed out survives the death of the process, under load.
func TestKill(t *testing.T) {
	k := start(t)
	var mu sync.Mutex
	handedOut := map[string]string{} // kid to key
	var stop atomic.Bool
	var wait sync.WaitGroup
	for worker := range 4 {
		c := client(t, k.tlsConfig(t, "producer"))
		wait.Go(func() {
			for i := 0; !stop.Load(); i++ {
				topic := fmt.Sprintf("t-%d-%d", worker, i)
				request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+"/v1/encryption-key", strings.NewReader(`{"topic":"`+topic+`"}`))
				if err != nil {
					t.Error(err)
					return
				}
				request.Header.Set("Content-Type", "application/json")
				response, err := c.Do(request)
				if err != nil {
					return // killed
				}
				a := answer{Status: response.StatusCode, Header: response.Header}
				a.Body, err = io.ReadAll(response.Body)
				_ = response.Body.Close()
				if err != nil {
					return
				}
				checkAgainstSpec(t, "/v1/encryption-key", &a)
				mu.Lock()
				handedOut[topic+" "+a.text("kid")] = a.text("key")
				mu.Unlock()
			}
		})
	}
	waitFor(t, "a hundred keys", func() bool { mu.Lock(); defer mu.Unlock(); return len(handedOut) >= 100 })
	k.signal(t, syscall.SIGKILL)
	<-k.done
	stop.Store(true)
	wait.Wait()

	again := startIn(t, k.Dir)
	for name, key := range handedOut {
		topic, kid, _ := strings.Cut(name, " ")
		if _, entries := again.decrypt(t, topic, kid); entries[kid]["key"] != key {
			t.Fatalf("key %s of %s is gone", kid, topic)
		}
	}
	for _, r := range again.auditLog(t) { // every line is whole, and each release is there
		for _, kid := range r.Kids {
			delete(handedOut, r.Topic+" "+kid)
		}
	}
	if len(handedOut) > 0 {
		t.Errorf("%d releases are not in the audit log", len(handedOut))
	}
}

// [CL-API-019]
func TestSIGTERMAnswersWhatHasBegun(t *testing.T) {
	k := start(t)
	conn := k.dial(t)
	const body = `{"topic":"claims"}`
	send(t, conn, requestHead+fmt.Sprintf("Content-Length: %d\r\n\r\n", len(body))+body[:5])
	waitFor(t, "the call to begin", func() bool { return strings.Contains(k.get(t, "/metrics"), "cipherlane_keyservice_in_flight 1\n") })
	k.signal(t, syscall.SIGTERM)
	waitFor(t, "the port to close", func() bool {
		probe, err := net.Dial("tcp", strings.TrimPrefix(k.URL, "https://"))
		if err == nil {
			_ = probe.Close()
		}
		return err != nil
	})
	if status, body := k.admin(t, "/readyz"); status != 503 || !strings.Contains(body, "stopping") {
		t.Errorf("ready while stopping: %d %s", status, body)
	}
	send(t, conn, body[5:])
	response, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || !strings.Contains(string(text), `"key"`) {
		t.Fatalf("%s %s %v", response.Status, text, err)
	}
	select {
	case <-k.done:
	case <-time.After(3 * time.Second):
		t.Fatal("still running after the last call was answered")
	}
	if k.err != nil {
		t.Errorf("exit: %v, %s", k.err, k.stderr)
	}
}

// [CL-API-019] A call that does not come to its end does not keep the service from stopping.
func TestGracePeriodEnds(t *testing.T) {
	k := startWith(t, "grace_period: 1s\n")
	conn := k.dial(t)
	send(t, conn, requestHead+"Content-Length: 18\r\n\r\n{")
	waitFor(t, "the call to begin", func() bool { return strings.Contains(k.get(t, "/metrics"), "cipherlane_keyservice_in_flight 1\n") })
	begin := time.Now()
	k.signal(t, syscall.SIGTERM)
	select {
	case <-k.done:
	case <-time.After(5 * time.Second):
		t.Fatal("did not stop")
	}
	if took := time.Since(begin); took < 900*time.Millisecond {
		t.Errorf("stopped after %s", took)
	}
	if k.err == nil || !strings.Contains(k.stderr.String(), "cut off after the grace period") {
		t.Errorf("a cut call was not reported: %v", k.err)
	}
}

func TestStopsWithItsParent(t *testing.T) {
	k := start(t)
	if err := k.stdin.Close(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-k.done:
	case <-time.After(5 * time.Second):
		t.Fatal("still running")
	}
	if k.err != nil {
		t.Error(k.err)
	}
}

// [CL-POL-005]
func TestSIGHUP(t *testing.T) {
	k := start(t)
	k.encryptionKey(t, "claims")
	write := func(text string) {
		t.Helper()
		replacePolicy(t, k, text)
		k.signal(t, syscall.SIGHUP)
	}
	write(strings.Replace(testPolicy, "mode: forbid", "mode: forbidden", 1))
	waitFor(t, "the line of the mistake", func() bool {
		return strings.Contains(k.stderr.String(), "policy.yaml:10: ") && strings.Contains(k.stderr.String(), "the one in force stays")
	})
	k.encryptionKey(t, "claims")
	if !strings.Contains(k.get(t, "/metrics"), `cipherlane_keyservice_policy_reloads_total{result="invalid"} `) {
		t.Error("the invalid policy was not counted")
	}
	write(strings.Replace(testPolicy, `["claims", "claims.*"]`, `["paid"]`, 1))
	waitFor(t, "the new policy", func() bool { return strings.Contains(k.stderr.String(), "policy reloaded") })
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`), 403, "topic-unknown")
	if a := k.encryptionKey(t, "paid"); a.text("scope") != "claims" {
		t.Errorf("%s", a.Body)
	}
}

func replacePolicy(t *testing.T, k *keyService, text string) {
	t.Helper()
	if err := errors.Join(os.WriteFile(k.Policy+".new", []byte(text), 0o600), os.Rename(k.Policy+".new", k.Policy)); err != nil {
		t.Fatal(err)
	}
}

// [CL-POL-014] Without a signal.
func TestChangedPolicyIsTaken(t *testing.T) {
	k := start(t)
	replacePolicy(t, k, testPolicy+"oops: 1\n")
	waitFor(t, "the mistake", func() bool { return strings.Contains(k.stderr.String(), "the one in force stays") })
	k.encryptionKey(t, "claims")
	replacePolicy(t, k, strings.Replace(testPolicy, "actions: [encrypt]", "actions: [decrypt]", 1))
	waitFor(t, "the new policy", func() bool { return strings.Contains(k.stderr.String(), "policy reloaded") })
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`), 403, "not-authorized")
}

func TestFolderIsUsedAgain(t *testing.T) {
	k := start(t)
	first := k.encryptionKey(t, "claims")
	k.stop(t)
	again := startIn(t, k.Dir, "--principal", "alice", "--principal", "bob")
	if second := again.encryptionKey(t, "claims"); second.text("key") != first.text("key") {
		t.Error("another key")
	}
	if again.Principals["alice"].SPIFFEID != "spiffe://dev.cipherlane/alice" || again.Principals["bob"].Certificate == "" {
		t.Errorf("%+v", again.Principals)
	}
	refuses(t, again.post(t, "alice", "/v1/encryption-key", `{"topic":"claims"}`), 403, "not-authorized")
	for _, pattern := range []string{"*-key.pem", "kek.json", "keys.db", "audit.jsonl"} {
		paths, err := filepath.Glob(filepath.Join(k.Dir, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatal(pattern, err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("%s: %v %v", path, info.Mode(), err)
			}
		}
	}
}
