// The harness: the tool as a child process, against a real key service.

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/commandline"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

const runAsProgram = "CIPHERLANE_TEST_RUN_AS_PROGRAM"

// TestMain lets the test binary be the program: a child is then built like the tests, with the race detector.
func TestMain(m *testing.M) {
	if os.Getenv(runAsProgram) != "" {
		os.Exit(run(os.Args[1:], commandline.Standard()))
	}
	code := m.Run()
	testservice.Remove()
	os.Exit(code)
}

// outcome is what a run of the tool left.
type outcome struct {
	code   int
	out    string
	errors string
}

// tool runs the tool to its end, with nothing of this machine's settings.
func tool(t *testing.T, args ...string) outcome {
	t.Helper()
	return toolWith(t, "", nil, args...)
}

func toolWith(t *testing.T, input string, environment []string, args ...string) outcome {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, args...)
	cmd.Env = append([]string{runAsProgram + "=1", "HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH")}, environment...)
	cmd.Stdin = strings.NewReader(input)
	var out, problems bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &problems
	timer := time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() })
	defer timer.Stop()
	err = cmd.Run()
	exit, ended := errors.AsType[*exec.ExitError](err)
	if err != nil && !ended {
		t.Fatal(err)
	}
	code := 0
	if ended {
		code = exit.ExitCode()
	}
	return outcome{code, out.String(), problems.String()}
}

// ok sees that a run succeeded and gives what it printed.
func (o outcome) ok(t *testing.T) string {
	t.Helper()
	if o.code != 0 || strings.Contains(o.errors, "DATA RACE") {
		t.Fatalf("exit code %d\n%s%s", o.code, o.out, o.errors)
	}
	return o.out
}

// fails sees that a run ended with a code and said something on standard error.
func (o outcome) fails(t *testing.T, code int, says ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit code %d, want %d\n%s%s", o.code, code, o.out, o.errors)
	}
	for _, text := range says {
		if !strings.Contains(o.errors, text) {
			t.Errorf("%q does not say %q", o.errors, text)
		}
	}
}

func (o outcome) json(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(o.ok(t)), v); err != nil {
		t.Fatalf("%v in %s", err, o.out)
	}
}
