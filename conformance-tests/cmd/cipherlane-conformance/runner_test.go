// The runner as a program: it passes a sound SDK, and notices each guard that a faulty one lacks.
package main

import (
	"encoding/json"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/reference"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/report"
)

var program string

func TestMain(m *testing.M) {
	folder, err := os.MkdirTemp("", "runner-")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(folder, "cipherlane-conformance")
	if out, err := exec.Command("go", "build", "-o", program, ".").CombinedOutput(); err != nil {
		panic(string(out))
	}
	code := m.Run()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// outcome of one run of the program.
type outcome struct {
	code    int
	output  string
	results report.Results
}

func runProgram(t *testing.T, args ...string) outcome {
	t.Helper()
	folder := t.TempDir()
	all := append([]string{"run", "--vectors", "../../../spec/vectors", "--results", folder}, args...)
	command := exec.Command(program, all...)
	output, err := command.CombinedOutput()
	o := outcome{code: command.ProcessState.ExitCode(), output: string(output)}
	if err != nil && o.code < 0 {
		t.Fatalf("%v: %s", err, output)
	}
	if data, err := os.ReadFile(filepath.Join(folder, "results.json")); err == nil {
		if err := json.Unmarshal(data, &o.results); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"index.html", "TEST-conformance.xml"} {
			if info, err := os.Stat(filepath.Join(folder, name)); err != nil || info.Size() == 0 {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	return o
}

func TestSoundReferencePasses(t *testing.T) {
	t.Parallel()
	o := runProgram(t, "--driver", "go=reference", "--suite", "vectors", "--suite", "tampering")
	if o.code != 0 || o.results.Count(report.Failed) != 0 || o.results.Count(report.Passed) < 600 {
		t.Errorf("code %d: %s", o.code, o.output)
	}
}

// A suite that no fault makes fail tests nothing.
func TestEachGuardIsMissed(t *testing.T) {
	t.Parallel()
	for _, guard := range reference.Guards {
		t.Run(guard, func(t *testing.T) {
			t.Parallel()
			o := runProgram(t, "--driver", "faulty="+program+" reference-driver --without "+guard, "--suite", "vectors", "--suite", "tampering")
			if o.code != 1 || o.results.Count(report.Failed) == 0 {
				t.Errorf("without %s, code %d: %s", guard, o.code, o.output)
			}
		})
	}
}

func TestFuzzFindsWhatDiffers(t *testing.T) {
	t.Parallel()
	o := runProgram(t, "--driver", "go=reference", "--driver", "faulty="+program+" reference-driver --without flags", "--suite", "fuzz",
		"--fuzz-time", "3s", "--seed", "7")
	if o.code != 1 || o.results.Count(report.Failed) == 0 || !strings.Contains(o.output, "input c19e01") {
		t.Errorf("code %d: %.2000s", o.code, o.output)
	}
}

func TestBadDrivers(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"missing": "/nonexistent/driver", "silent": "true", "chatty": "echo hello", "another-protocol": `printf {"id":1,"ok":{"protocol":2}}\n`,
	} {
		o := runProgram(t, "--driver", "bad="+command, "--suite", "vectors")
		if o.code == 0 || !strings.Contains(o.output, "driver bad") {
			t.Errorf("%s: code %d: %s", name, o.code, o.output)
		}
	}
}

// Where there is no engine that can be used, it is refused before anything is started; what DOCKER_HOST holds is not repeated
// unless it is a path.
func TestContainersNeedAnEngine(t *testing.T) {
	folder := t.TempDir()
	for name, c := range map[string]struct{ host, message string }{
		"remote":    {"tcp://user:hunter2@192.0.2.1:2375", "has to be on this machine"},
		"ssh":       {"ssh://hunter2@192.0.2.1", "has to be on this machine"},
		"no-schema": {"hunter2", "has to be on this machine"},
		"control":   {"\x1b]0;hunter2\a", "has to be on this machine"},
		"missing":   {"unix://" + folder + "/missing.sock", "no Docker engine answers"},
		"folder":    {"unix://" + folder, "no Docker engine answers"},
		"no-path":   {"unix://", "no Docker engine answers"},
		"silent":    {serveSocket(t, folder+"/silent", ""), "no Docker engine answers within"},
		"not-http":  {serveSocket(t, folder+"/not-http", "hello\n"), "no Docker engine answers"},
		"refusing":  {serveSocket(t, folder+"/refusing", "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n"), "no Docker engine answers"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", c.host)
			o := runProgram(t, "--driver", "go=reference", "--suite", "matrix", "--environment", "containers")
			advised := strings.Contains(o.output, "--environment containers: ") && strings.Contains(o.output, "or take --environment single")
			if o.code != 1 || !advised || !strings.Contains(o.output, c.message) || strings.Contains(o.output, "hunter2") {
				t.Errorf("code %d: %s", o.code, o.output)
			}
		})
	}
}

// serveSocket says the same to everyone, or nothing.
func serveSocket(t *testing.T, path, answer string) (host string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			connection, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = connection.Close() })
			if answer == "" {
				continue
			}
			_, _ = io.WriteString(connection, answer)
			_ = connection.Close()
		}
	}()
	return "unix://" + path
}

func TestContainersAreNotForSuitesOfProcesses(t *testing.T) {
	t.Parallel()
	for _, suite := range []string{"faults", "soak"} {
		o := runProgram(t, "--driver", "go=reference", "--suite", suite, "--environment", "containers")
		if o.code != 1 || !strings.Contains(o.output, "take single or cluster") {
			t.Errorf("%s: code %d: %s", suite, o.code, o.output)
		}
	}
}

func TestUnknownSuite(t *testing.T) {
	t.Parallel()
	if o := runProgram(t, "--driver", "go=reference", "--suite", "vektors"); o.code == 0 || !strings.Contains(o.output, "unknown suite") {
		t.Errorf("code %d: %s", o.code, o.output)
	}
}

func TestNarrowByCase(t *testing.T) {
	t.Parallel()
	o := runProgram(t, "--driver", "go=reference", "--suite", "vectors", "--case", "decrypt-version-*")
	if n := len(o.results.All); o.code != 0 || n == 0 || n > 20 {
		t.Errorf("code %d, %d results: %s", o.code, n, o.output)
	}
}
