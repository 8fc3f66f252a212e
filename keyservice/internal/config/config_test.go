package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const short = `tls: {certificate: server.pem, key: /etc/key.pem, client_ca: ../ca.pem}
policy: policy.yaml
store: {embedded: {path: keys.db, kek: secrets/kek.json}}
audit: {file: audit.jsonl}
`

func read(t *testing.T, text string) (Config, string, error) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "keyservice.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := Read(path)
	return c, dir, err
}

func TestPathsAreRelativeToTheFile(t *testing.T) {
	c, dir, err := read(t, short)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.TLS = TLS{filepath.Join(dir, "server.pem"), "/etc/key.pem", filepath.Join(filepath.Dir(dir), "ca.pem")}
	want.Policy, want.Audit.File = filepath.Join(dir, "policy.yaml"), filepath.Join(dir, "audit.jsonl")
	want.Store.Embedded = Embedded{filepath.Join(dir, "keys.db"), filepath.Join(dir, "secrets", "kek.json")}
	if c != want {
		t.Fatalf("%+v\n%+v", c, want)
	}
}

func TestEverySetting(t *testing.T) {
	c, _, err := read(t, short+`listen: 0.0.0.0:1
admin_listen: 127.0.0.1:2
grace_period: 3s
timeouts: {headers: 4s, request: 5s, answer: 6s, idle: 7s}
limits: {connections: 8, in_flight: 9, principal: {rate: 10, burst: 11}}
log: {format: json, level: debug}
tracing: {endpoint: "https://logs:4318", ca: /logs.pem, one_in: 7}
`)
	if err != nil {
		t.Fatal(err)
	}
	if c.Listen != "0.0.0.0:1" || c.AdminListen != "127.0.0.1:2" || c.GracePeriod != 3*time.Second ||
		c.Timeouts != (Timeouts{4 * time.Second, 5 * time.Second, 6 * time.Second, 7 * time.Second}) ||
		c.Limits != (Limits{8, 9, 10, 11}) || c.Log != (Log{"json", "debug"}) || c.Tracing != (Tracing{"https://logs:4318", "/logs.pem", 7}) {
		t.Fatalf("%+v", c)
	}
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"":                                                  "the file is empty",
		short + "lisen: x":                                  ":5: unknown member \"lisen\"",
		short + "listen: 8443":                              ":5: expected text",
		short + "grace_period: 0s":                          ":5: 0s is not within",
		short + "grace_period: 11m":                         ":5: 11m is not within",
		short + "timeouts: {answer: 1s}":                    ":5: 1s is not within",
		short + "timeouts: {headers: 5}":                    ":5: expected a duration",
		short + "limits: {in_flight: 0}":                    ":5: 0 is not within",
		short + "limits: {principal: {rate: 0}}":            ":5: 0 is not within",
		short + "tracing: {one_in: 5}":                      ":5: \"endpoint\" is missing",
		short + "tracing: {endpoint: \"http://logs:4318\"}": ":5: \"http://logs:4318\" is not an endpoint",
		short + "tracing: {endpoint: \"https://logs:4318\", one_in: 0}": ":5: 0 is not within",
		short + "limits: {connections: many}":                           ":5: expected a whole number",
		short + "log: {format: xml}":                                    ":5: \"xml\" is not one of: text, json",
		short + "log: {level: trace}":                                   ":5: \"trace\" is not one of",
		short + "policy: other.yaml":                                    ":5: \"policy\" is given twice",
		strings.Replace(short, "key:", "k:", 1):                         ":1: unknown member \"k\"",
		strings.Replace(short, "audit:", "log:", 1):                     ":4: unknown member \"file\"",
		strings.Replace(short, ", kek: secrets/kek.json", "", 1):        ":3: \"kek\" is missing",
		strings.Replace(short, "policy: policy.yaml", "", 1):            ":1: \"policy\" is missing",
		strings.Replace(short, "client_ca: ../ca.pem", "x: *alias", 1):  ":1: ",
	} {
		if _, _, err := read(t, text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}

func TestFileThatEverybodyMayChange(t *testing.T) {
	path := filepath.Join(t.TempDir(), "keyservice.yaml")
	if err := errors.Join(os.WriteFile(path, []byte(short), 0o600), os.Chmod(path, 0o666)); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(path); err == nil || !strings.Contains(err.Error(), "chmod o-w") {
		t.Fatal(err)
	}
}
