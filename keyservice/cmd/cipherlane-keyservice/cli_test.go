// The command line, and everything that keeps the service from starting.

package main

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// execute runs the program to its end.
func execute(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	cmd := program(t, args...)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	timer := time.AfterFunc(20*time.Second, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err := cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !ended {
		t.Fatal(err)
	}
	if ended {
		code = exit.ExitCode()
	}
	return code, out.String(), problems.String()
}

func TestCommandLine(t *testing.T) {
	for _, c := range []struct {
		args     []string
		code     int
		out, err string
	}{
		{[]string{"--help"}, 0, "cipherlane-keyservice dev", ""},
		{[]string{"serve", "--help"}, 0, "--config", ""},
		{[]string{"dev", "--help"}, 0, "--until-stdin-closes", ""},
		{[]string{"version"}, 0, "cipherlane-keyservice ", ""},
		{[]string{}, 2, "", "expected one of"},
		{[]string{"server"}, 2, "", "unexpected argument server"},
		{[]string{"serve"}, 2, "", "missing flags: --config"},
		{[]string{"serve", "--config", "x", "--nonsense"}, 2, "", "unknown flag --nonsense"},
		{[]string{"serve", "--config", "x", "--log-level", "loud"}, 2, "", "log-level"},
		{[]string{"serve", "--config", "/does/not/exist"}, 1, "", "/does/not/exist: no such file"},
		{[]string{"dev", "--dir", t.TempDir(), "--principal", "../x"}, 1, "", "../x"},
		{[]string{"dev", "--dir", t.TempDir(), "--principal", "server"}, 1, "", "neither ca nor server"},
		{[]string{"dev", "--dir", t.TempDir(), "--policy", "/does/not/exist"}, 1, "", "no such file"},
		{[]string{"dev", "--dir", t.TempDir(), "--listen", "nowhere"}, 1, "", "listen on nowhere"},
	} {
		code, out, problems := execute(t, c.args...)
		if code != c.code || !strings.Contains(out, c.out) || !strings.Contains(problems, c.err) {
			t.Errorf("%v: %d\n%s\n%s", c.args, code, out, problems)
		}
	}
}

// stopped makes a complete folder that nothing serves.
func stopped(t *testing.T) (dir, config string) {
	t.Helper()
	k := start(t)
	k.encryptionKey(t, "claims")
	k.stop(t)
	return k.Dir, filepath.Join(k.Dir, "keyservice.yaml")
}

// [CL-API-018] Each of these keeps the service from starting, with a word on what to do.
func TestDoesNotStart(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(dir string) error
		want  string
	}{
		"store missing":         {func(dir string) error { return os.Remove(filepath.Join(dir, "keys.db")) }, "cipherlane-keyservice init"},
		"KEK missing":           {func(dir string) error { return os.Remove(filepath.Join(dir, "kek.json")) }, "cipherlane-keyservice init"},
		"store loose":           {chmod("keys.db", 0o640), "chmod 600"},
		"KEK loose":             {chmod("kek.json", 0o604), "chmod 600"},
		"audit log loose":       {chmod("audit.jsonl", 0o644), "chmod 600"},
		"TLS key loose":         {chmod("server-key.pem", 0o644), "chmod 600"},
		"folder loose":          {chmod(".", 0o777), "chmod 700"},
		"policy loose":          {chmod("policy.yaml", 0o666), "chmod o-w"},
		"configuration loose":   {chmod("keyservice.yaml", 0o666), "chmod o-w"},
		"store cut":             {func(dir string) error { return os.Truncate(filepath.Join(dir, "keys.db"), 10_000) }, "restore"},
		"store empty":           {func(dir string) error { return os.Truncate(filepath.Join(dir, "keys.db"), 0) }, "restore"},
		"KEK cut":               {func(dir string) error { return os.Truncate(filepath.Join(dir, "kek.json"), 50) }, "restore"},
		"policy invalid":        {overwrite("policy.yaml", "version: 1\ntopics: 7\n"), "policy.yaml:2: expected a list"},
		"configuration invalid": {overwrite("keyservice.yaml", "listen: 127.0.0.1:0\nlisten_too: x\n"), "keyservice.yaml:2: unknown member"},
		"configuration short":   {overwrite("keyservice.yaml", "listen: 127.0.0.1:0\n"), "is missing"},
		"client CA empty":       {overwrite("ca.pem", ""), "holds no certificate"},
		"client CA is a client": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "producer.pem"), filepath.Join(dir, "ca.pem"))
		}, "not a CA certificate"},
		"certificate of others": {func(dir string) error {
			return os.Rename(filepath.Join(dir, "producer.pem"), filepath.Join(dir, "server.pem"))
		}, "server certificate"},
		"audit log is no log": {overwrite("audit.jsonl", strings.Repeat("x", 20_000)), "not an audit log"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, config := stopped(t)
			if err := c.spoil(dir); err != nil {
				t.Fatal(err)
			}
			code, out, problems := execute(t, "serve", "--config", config, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0")
			if code != 1 || out != "" || !strings.Contains(problems, c.want) || strings.Contains(problems, "goroutine ") {
				t.Errorf("%d %s %s; want %q", code, out, problems, c.want)
			}
		})
	}
}

func chmod(name string, mode os.FileMode) func(string) error {
	return func(dir string) error { return os.Chmod(filepath.Join(dir, name), mode) }
}

func overwrite(name, content string) func(string) error {
	return func(dir string) error { return os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600) }
}

// The way of production: init once, then serve; and init again does no harm.
func TestInitAndServe(t *testing.T) {
	dir, config := stopped(t)
	if code, _, problems := execute(t, "init", "--config", config); code != 1 || !strings.Contains(problems, "exists") {
		t.Fatalf("init over a store: %d %s", code, problems)
	}
	for _, name := range []string{"keys.db", "kek.json"} {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	code, out, problems := execute(t, "init", "--config", config)
	if code != 0 || !strings.Contains(out, "Back both up") {
		t.Fatalf("%d %s", code, problems)
	}
	cmd := program(t, "serve", "--config", config, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0", "--log-format", "json")
	stderr := &buffer{}
	cmd.Stderr = stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "serving", func() bool { return strings.Contains(stderr.String(), `"msg":"serving"`) })
	if code, _, problems := execute(t, "serve", "--config", config, "--listen", "127.0.0.1:0", "--admin-listen", "127.0.0.1:0"); code != 1 || !strings.Contains(problems, "in use by another process") {
		t.Errorf("a second service on the same store: %d %s", code, problems)
	}
	if err := errors.Join(cmd.Process.Signal(os.Interrupt), cmd.Wait()); err != nil {
		t.Errorf("%v %s", err, stderr)
	}
}

// What the dev command prints for people names files that exist.
func TestDevText(t *testing.T) {
	cmd := program(t, "dev", "--dir", filepath.Join(t.TempDir(), "d"), "--until-stdin-closes")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout := &buffer{}
	cmd.Stdout = stdout
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the text", func() bool { return strings.Contains(stdout.String(), "Ctrl-C") })
	if err := errors.Join(stdin.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	found := 0
	for line := range strings.Lines(stdout.String()) {
		line = strings.Trim(strings.TrimSpace(line), `",`)
		at := strings.IndexByte(line, '/')
		if at < 0 || !strings.HasSuffix(line, ".pem") && !strings.HasSuffix(line, ".yaml") {
			continue
		}
		found++
		if _, err := os.Stat(line[at:]); err != nil {
			t.Error(err)
		}
	}
	if found != 7 {
		t.Errorf("%d files are named:\n%s", found, stdout)
	}
}
