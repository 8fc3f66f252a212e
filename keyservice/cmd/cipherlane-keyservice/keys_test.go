// What callers get: keys, decisions, refusals.

package main

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func hexOf(raw []byte) string { return hex.EncodeToString(raw) }

// decrypt asks for kids as the consumer and gives the entries by kid.
func (k *keyService) decrypt(t *testing.T, topic string, kids ...string) (answer, map[string]map[string]any) {
	t.Helper()
	request, err := json.Marshal(map[string]any{"topic": topic, "kids": append([]string{}, kids...)})
	if err != nil {
		t.Fatal(err)
	}
	a := k.post(t, "consumer", "/v1/decryption-keys", string(request))
	entries := map[string]map[string]any{}
	list, _ := a.Members["keys"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		entries[fmt.Sprint(entry["kid"])] = entry
	}
	if a.Status == http.StatusOK && (len(list) != len(kids) || len(entries) != len(kids)) {
		t.Fatalf("%d entries for %d kids", len(list), len(kids))
	}
	return a, entries
}

// [CL-API-003] [CL-POL-001] [CL-POL-002] [CL-POL-003] [CL-POL-004] [CL-POL-007] [CL-POL-008]
func TestDecisions(t *testing.T) {
	k := start(t)
	for _, c := range []struct {
		principal, call, topic string
		status                 int
		want                   string // mode, plaintext or code
	}{
		{"producer", "encryption-key", "claims", 200, "encrypt"},
		{"producer", "encryption-key", "claims.secret", 200, "encrypt"},
		{"producer", "encryption-key", "public.x", 200, "clear"},
		{"producer", "encryption-key", "a.secret", 200, "forbid"},
		{"producer", "encryption-key", "unheard-of", 403, "topic-unknown"},
		{"consumer", "encryption-key", "claims", 403, "not-authorized"},
		{"operator", "encryption-key", "claims", 403, "not-authorized"},
		{"stranger", "encryption-key", "claims", 403, "not-authorized"},
		{"stranger", "encryption-key", "unheard-of", 403, "not-authorized"},
		{"stranger", "encryption-key", "a.secret", 403, "not-authorized"},
		{"consumer", "decryption-keys", "claims", 200, "reject"},
		{"consumer", "decryption-keys", "old", 200, "accept"},
		{"consumer", "decryption-keys", "public.x", 200, "accept"},
		{"consumer", "decryption-keys", "a.secret", 403, "topic-forbidden"},
		{"consumer", "decryption-keys", "unheard-of", 403, "topic-unknown"},
		{"producer", "decryption-keys", "claims", 403, "not-authorized"},
		{"stranger", "decryption-keys", "a.secret", 403, "not-authorized"},
	} {
		body := `{"topic":"` + c.topic + `"}`
		if c.call == "decryption-keys" {
			body = `{"topic":"` + c.topic + `","kids":[]}`
		}
		a := k.post(t, c.principal, "/v1/"+c.call, body)
		got := a.text("mode") + a.text("plaintext") + a.text("code")
		if a.Status != c.status || got != c.want {
			t.Errorf("%s %s %s: %d %s; want %d %s", c.principal, c.call, c.topic, a.Status, got, c.status, c.want)
		}
		if c.want != "encrypt" && bytes.Contains(a.Body, []byte(`"key":`)) {
			t.Errorf("%s %s %s: a key", c.principal, c.call, c.topic)
		}
	}
}

// [CL-API-012] [CL-POL-006]
func TestDecryptionKeysByScope(t *testing.T) {
	k := start(t)
	claims, other := k.encryptionKey(t, "claims"), k.encryptionKey(t, "t-other")
	unknown := strings.Repeat("0", 32)
	a, entries := k.decrypt(t, "claims.copy", claims.text("kid"), other.text("kid"), unknown)
	mine := entries[claims.text("kid")]
	if a.Status != 200 || mine["key"] != claims.Members["key"] || mine["scope"] != "claims" || fmt.Sprintf("%v %v", mine["expires_in"], mine["refresh_in"]) != "1 1" {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	for kid, code := range map[string]string{other.text("kid"): "scope-mismatch", unknown: "key-unknown"} {
		problem, _ := entries[kid]["error"].(map[string]any)
		if problem["code"] != code || entries[kid]["key"] != nil {
			t.Errorf("%s: %v, want %s", kid, entries[kid], code)
		}
	}
	if bytes.Contains(a.Body, []byte(other.text("key"))) {
		t.Error("the key of another scope was given")
	}
}

// A thousand kids in one call are answered, each with its own entry, and all stand in the audit log.
func TestAThousandKids(t *testing.T) {
	k := start(t)
	kids := []string{k.encryptionKey(t, "claims").text("kid")}
	for range 20 {
		a := k.post(t, "operator", "/v1/scopes/claims/rotate", "")
		kids = append(kids, a.text("kid"))
	}
	for i := len(kids); i < 1000; i++ {
		kids = append(kids, fmt.Sprintf("%032x", i))
	}
	a, entries := k.decrypt(t, "claims", kids...)
	released := 0
	for _, entry := range entries {
		if entry["key"] != nil {
			released++
		}
	}
	if a.Status != 200 || released != 21 {
		t.Fatalf("%d, %d keys", a.Status, released)
	}
	log, err := os.ReadFile(k.Audit)
	if err != nil {
		t.Fatal(err)
	}
	for _, kid := range kids {
		if !bytes.Contains(log, []byte(kid)) {
			t.Fatalf("%s is not in the audit log", kid)
		}
	}
	for line := range bytes.Lines(log) {
		if len(line) > 16<<10 {
			t.Fatalf("a line of %d bytes", len(line))
		}
	}
}

func TestRotation(t *testing.T) {
	k := start(t)
	before := k.encryptionKey(t, "claims")
	a := k.post(t, "operator", "/v1/scopes/claims/rotate", "{}")
	after := k.encryptionKey(t, "claims.x")
	if a.Status != 200 || a.text("kid") != after.text("kid") || after.text("kid") == before.text("kid") || after.text("key") == before.text("key") {
		t.Fatalf("%s, then %s", a.Body, after.text("kid"))
	}
	_, entries := k.decrypt(t, "claims", before.text("kid"), after.text("kid"))
	if entries[before.text("kid")]["key"] != before.Members["key"] || entries[after.text("kid")]["key"] != after.Members["key"] {
		t.Fatal("not both generations can be read")
	}
	refuses(t, k.post(t, "producer", "/v1/scopes/claims/rotate", ""), 403, "not-authorized")
	refuses(t, k.post(t, "stranger", "/v1/scopes/claims/rotate", ""), 403, "not-authorized")
	refuses(t, k.post(t, "operator", "/v1/scopes/unheard-of/rotate", ""), 403, "topic-unknown")
	refuses(t, k.post(t, "operator", "/v1/scopes/public.x/rotate", ""), 403, "topic-unknown")
	if again := k.encryptionKey(t, "claims"); again.text("kid") != after.text("kid") {
		t.Fatal("a refused rotation rotated")
	}
}

func TestUsage(t *testing.T) {
	k := start(t)
	kid, other := k.encryptionKey(t, "claims").text("kid"), k.encryptionKey(t, "t-other").text("kid")
	usage := func(topic, kid, counts string) answer {
		return k.post(t, "producer", "/v1/encryption-key", `{"topic":"`+topic+`","usage":{"kid":"`+kid+`",`+counts+`}}`)
	}
	for _, counts := range []string{`"records":3,"bytes":700`, `"records":0,"bytes":0`, `"records":4,"bytes":300`} {
		if a := usage("claims.x", kid, counts); a.Status != 200 {
			t.Fatalf("%d %s", a.Status, a.Body)
		}
	}
	for _, foreign := range []string{other, strings.Repeat("0", 32)} {
		if a := usage("claims", foreign, `"records":1,"bytes":1`); a.Status != 200 || a.text("kid") != kid {
			t.Errorf("a foreign report kept the key back: %d %s", a.Status, a.Body)
		}
	}
	metrics := k.get(t, "/metrics")
	for _, want := range []string{
		`cipherlane_keyservice_encrypted_records_total{scope="claims"} 7`,
		`cipherlane_keyservice_encrypted_plaintext_bytes_total{scope="claims"} 1000`,
		`cipherlane_keyservice_keys_released_total{action="encrypt",scope="claims"} 6`,
		`cipherlane_keyservice_current_key_age_seconds{scope="t-other"}`,
	} {
		if !strings.Contains(metrics, want) {
			t.Errorf("no %s", want)
		}
	}
	if strings.Contains(metrics, `encrypted_records_total{scope="t-other"}`) {
		t.Error("a foreign report was counted")
	}
	if usage("claims", kid, `"records":9007199254740991,"bytes":9007199254740991`).Status != 200 {
		t.Error("the largest counts were refused")
	}
}

// [CL-API-011] Five hundred clients, each with a connection of its own, ask at once for the first key. The connections
// are made before, a few at a time: five hundred handshakes of client and server are seconds of work for two cores.
func TestOneFirstKeyForManyClients(t *testing.T) {
	k := start(t)
	const clients = 500
	cfg := k.tlsConfig(t, "producer")
	begin, got, places := make(chan struct{}), make(chan string, clients), make(chan struct{}, 8)
	var wait, connected sync.WaitGroup
	connected.Add(clients)
	for range clients {
		c := client(t, cfg)
		wait.Go(func() {
			places <- struct{}{}
			k.postWith(t, c, "/v1/encryption-key", `{"topic":"public.x"}`)
			<-places
			connected.Done()
			<-begin
			a := k.postWith(t, c, "/v1/encryption-key", `{"topic":"t-first"}`)
			got <- fmt.Sprint(a.Status, a.text("kid"), a.text("key"))
		})
	}
	connected.Wait()
	close(begin)
	wait.Wait()
	close(got)
	want := <-got
	for one := range got {
		if one != want || !strings.HasPrefix(one, "200") {
			t.Fatalf("%.40s and %.40s", one, want)
		}
	}
}

// [CL-API-010] [CL-API-014] [CL-ERR-001] No key shows anywhere but in the answers.
func TestKeysShowNowhere(t *testing.T) {
	k := start(t)
	var forms [][]byte
	for i := range 20 {
		a := k.encryptionKey(t, fmt.Sprint("t-", i))
		forms = append(forms, keyForms(t, a.text("key"))...)
		k.decrypt(t, fmt.Sprint("t-", i), a.text("kid"))
		k.decrypt(t, "claims", a.text("kid"))
		// A client that mixes things up sends keys where they do not belong.
		_ = k.post(t, "producer", "/v1/encryption-key", `{"topic":"t-1","usage":{"kid":"`+a.text("key")+`","records":1,"bytes":1}}`)
	}
	metrics := k.get(t, "/metrics")
	k.signal(t, 15)
	<-k.done
	everything := map[string][]byte{"log": []byte(k.stderr.String()), "metrics": []byte(metrics)}
	for _, pattern := range []string{"*", ".*"} {
		paths, err := filepath.Glob(filepath.Join(k.Dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			if info, err := os.Stat(path); err != nil || info.IsDir() {
				continue
			}
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			everything[path] = content
		}
	}
	if len(everything[k.Audit]) == 0 || len(everything["log"]) == 0 {
		t.Fatal("nothing to look through")
	}
	for name, content := range everything {
		for _, form := range forms {
			if bytes.Contains(content, form) {
				t.Errorf("%s holds a key", name)
			}
		}
	}
}
