// The command line: help, wrong arguments, where the connection comes from, completion.

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const policyText = `version: 1
topics:
  - topics: ["*"]
    mode: encrypt
grants:
  - principals: ["spiffe://dev.cipherlane/producer"]
    actions: [encrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/consumer"]
    actions: [decrypt]
    topics: ["*"]
  - principals: ["spiffe://dev.cipherlane/operator"]
    actions: [rotate]
    scopes: ["*"]
`

func TestHelp(t *testing.T) {
	for _, args := range [][]string{{"--help"}, {"rotate", "--help"}, {"scopes", "--help"}, {"completion", "--help"}} {
		if out := tool(t, args...).ok(t); !strings.Contains(out, "Usage: cipherlane") || strings.Contains(out, "${") {
			t.Errorf("%v: %s", args, out)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for _, args := range [][]string{{}, {"no-such"}, {"rotate"}, {"rotate", "a", "b"}, {"version", "--no-such"}} {
		tool(t, args...).fails(t, 2)
	}
}

func TestVersion(t *testing.T) {
	var v struct{ Version, Go string }
	tool(t, "version", "--json").json(t, &v)
	if out := tool(t, "version").ok(t); !strings.Contains(out, v.Version) || v.Version == "" || v.Go == "" {
		t.Errorf("%s %+v", out, v)
	}
}

func TestCompletion(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if out := tool(t, "completion", "-c", shell).ok(t); !strings.Contains(out, "cipherlane") {
			t.Errorf("%s: %s", shell, out)
		}
	}
	for line, want := range map[string]string{"cipherlane ro": "rotate", "cipherlane rotate --ce": "--certificate", "cipherlane no-such-": ""} {
		got := toolWith(t, "", []string{"COMP_LINE=" + line}).ok(t)
		if !strings.Contains(got, want) || want == "" && got != "" {
			t.Errorf("after %q: %q", line, got)
		}
	}
}

// What is missing or wrong is said before anything is sent.
func TestConnectionRefused(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string, mode os.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	none := filepath.Join(dir, "none")
	empty := file("empty.pem", "nothing", 0o600)
	for _, c := range []struct {
		says string
		args []string
	}{
		{"--url is missing", nil},
		{"https://host:port", []string{"--url", "http://127.0.0.1:1", "--ca", empty, "--certificate", empty, "--key", empty}},
		{"https://host:port", []string{"--url", "https://u:p@127.0.0.1:1", "--ca", empty, "--certificate", empty, "--key", empty}},
		{"no such file", []string{"--url", "https://127.0.0.1:1", "--ca", none, "--certificate", empty, "--key", empty}},
		{"holds no certificate", []string{"--url", "https://127.0.0.1:1", "--ca", empty, "--certificate", empty, "--key", empty}},
		{"no such file", []string{"--config", none}},
		{"unknown member", []string{"--config", file("unknown.yaml", "uri: x\n", 0o600)}},
		{"everybody may change it", []string{"--config", func() string {
			path := file("loose.yaml", "url: https://127.0.0.1:1\n", 0o600)
			if err := os.Chmod(path, 0o666); err != nil {
				t.Fatal(err)
			}
			return path
		}()}},
	} {
		tool(t, append([]string{"scopes"}, c.args...)...).fails(t, 1, c.says)
	}
}

func TestConnection(t *testing.T) {
	k := testservice.StartKeyService(t, policyText)
	operator := k.Principals["operator"]
	flags := []string{"--url", k.URL, "--ca", k.CA, "--certificate", operator.Certificate, "--key", operator.Key}
	environment := []string{"CIPHERLANE_URL=" + k.URL, "CIPHERLANE_CA=" + k.CA, "CIPHERLANE_CERTIFICATE=" + operator.Certificate, "CIPHERLANE_KEY=" + operator.Key}
	usual := filepath.Join(t.TempDir(), "cipherlane")
	if err := os.MkdirAll(usual, 0o700); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(k.Operator)
	if err != nil {
		t.Fatal(err)
	}
	absolute := strings.NewReplacer(" ca.pem", " "+k.CA, " operator", " "+k.Dir+"/operator").Replace(string(text))
	if err := os.WriteFile(filepath.Join(usual, "cipherlane.yaml"), []byte(absolute), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, o := range map[string]outcome{
		"flags":          tool(t, append([]string{"rotate", "claims"}, flags...)...),
		"environment":    toolWith(t, "", environment, "rotate", "claims"),
		"file":           tool(t, "--config", k.Operator, "rotate", "claims"),
		"usual place":    toolWith(t, "", []string{"XDG_CONFIG_HOME=" + filepath.Dir(usual)}, "rotate", "claims"),
		"flag over file": tool(t, "--config", k.Operator, "rotate", "claims", "--ca", k.CA),
	} {
		if out := o.ok(t); !strings.Contains(out, "Scope claims has a new current key") {
			t.Errorf("%s: %s", name, out)
		}
	}
	stranger := k.Principals["stranger"]
	tool(t, "--config", k.Operator, "--certificate", stranger.Certificate, "--key", stranger.Key, "rotate", "claims").
		fails(t, 1, "refused: not-authorized", "request ")
	tool(t, "--config", k.Operator, "--certificate", stranger.Certificate, "rotate", "claims").fails(t, 1, "does not match")
	tool(t, "--config", k.Operator, "--ca", operator.Certificate, "rotate", "claims").fails(t, 1, "cannot be reached", "certificate")
	k.Stop(t)
	tool(t, "--config", k.Operator, "rotate", "claims").fails(t, 1, "cannot be reached")
}
