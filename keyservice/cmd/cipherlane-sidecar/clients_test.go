// Clients that were not written with sidecars in mind: Kafka's own console tools, and kcat on librdkafka.

package main

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// runProgram runs a client program to its end, within a minute.
func runProgram(t *testing.T, input, program string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(within(t, time.Minute), program, args...)
	cmd.Stdin = strings.NewReader(input)
	var problems strings.Builder
	cmd.Stderr = &problems
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v %s", program, args, err, problems.String())
	}
	return string(out)
}

func lines(prefix string, n int) string {
	var all strings.Builder
	for i := range n {
		fmt.Fprintf(&all, "%s-%d\n", prefix, i)
	}
	return all.String()
}

func checkLines(t *testing.T, got, prefix string, n int) {
	t.Helper()
	seen := map[string]bool{}
	for line := range strings.FieldsSeq(got) {
		seen[line] = true
	}
	for i := range n {
		if line := fmt.Sprintf("%s-%d", prefix, i); !seen[line] {
			t.Fatalf("%s is missing of %d lines", line, len(seen))
		}
	}
}

// kafkaTool gives the arguments for java to run one of Kafka's tools, from the class path of the broker for tests.
func kafkaTool(name string, args ...string) []string {
	jars := filepath.Join("..", "..", "..", "java", "broker", "target")
	path := filepath.Join(jars, "cipherlane-broker.jar") + ":" + filepath.Join(jars, "lib", "*")
	return append([]string{"-Xmx128m", "-XX:TieredStopAtLevel=1", "-cp", path, "org.apache.kafka.tools." + name}, args...)
}

func javaClients(t *testing.T, p pair) {
	t.Helper()
	runProgram(t, lines("java", 200), "java", kafkaTool("ConsoleProducer", "--bootstrap-server", p.bootstrap, "--topic", "java")...)
	for _, protocol := range []string{"classic", "consumer"} {
		got := runProgram(t, "", "java", kafkaTool("consumer.ConsoleConsumer", "--bootstrap-server", p.bootstrap, "--topic", "java", "--from-beginning",
			"--max-messages", "200", "--timeout-ms", "40000", "--group", "java-"+protocol, "--consumer-property", "group.protocol="+protocol)...)
		checkLines(t, got, "java", 200)
	}
}

func kcat(t *testing.T, p pair) {
	t.Helper()
	program := testservice.Installed(t, "kcat")
	runProgram(t, lines("kcat", 500), program, "-b", p.bootstrap, "-P", "-t", "claims")
	got := runProgram(t, "", program, "-b", p.bootstrap, "-C", "-t", "claims", "-o", "beginning", "-e", "-q")
	checkLines(t, got, "kcat", 500)
}
