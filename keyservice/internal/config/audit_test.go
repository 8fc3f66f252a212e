package config

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const withoutAudit = "audit: {file: audit.jsonl}\n"

func TestAudit(t *testing.T) {
	c, dir, err := read(t, strings.Replace(short, withoutAudit, `audit:
  name: ks-0
  file: audit.jsonl
  max_size: 1048576
  max_age: 24h
  stdout: true
  syslog: {address: "tls://logs:6514", ca: logs.pem, certificate: /c.pem, key: k.pem}
  require: [syslog, stdout]
`, 1))
	if err != nil {
		t.Fatal(err)
	}
	want := Audit{
		Name: "ks-0", File: filepath.Join(dir, "audit.jsonl"), MaxSize: 1 << 20, MaxAge: 24 * time.Hour, Stdout: true, Syslog: c.Audit.Syslog,
		RequireStdout: true, RequireSyslog: true,
	}
	if c.Audit != want || *c.Audit.Syslog != (Syslog{"tls://logs:6514", filepath.Join(dir, "logs.pem"), "/c.pem", filepath.Join(dir, "k.pem")}) {
		t.Errorf("%+v %+v", c.Audit, c.Audit.Syslog)
	}
	if c, _, err := read(t, strings.Replace(short, withoutAudit, "audit: {stdout: true}\n", 1)); err != nil || c.Audit.File != "" {
		t.Errorf("%+v %v", c.Audit, err)
	}
}

func TestAuditMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"{}":                                "must go somewhere",
		"{stdout: false}":                   "must go somewhere",
		"{file: a, max_size: 1}":            "not within",
		"{file: a, max_age: 1s}":            "not within",
		"{file: a, require: [stdout]}":      "not switched on",
		"{file: a, require: [syslog]}":      "not configured",
		"{file: a, require: [file]}":        "not one of",
		"{file: a, require: []}":            "empty",
		"{syslog: {}}":                      "address",
		"{syslog: {address: \"logs:514\"}}": "not an address",
		"{syslog: {address: \"tls://l:1\", certificate: c}}": "go together",
		"{file: a, sinks: 3}":                                "unknown member",
	} {
		if _, _, err := read(t, strings.Replace(short, withoutAudit, "audit: "+text+"\n", 1)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
