// A Kafka broker as a child process, or a cluster of them: those of java/broker.

package testservice

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// Broker is a broker that runs, or a cluster.
type Broker struct {
	Bootstrap string            `json:"bootstrap"` // of a cluster all, separated by commas
	Listeners map[string]string `json:"listeners"` // the addresses of those that --listener asked for
	LogDir    string            `json:"log_dir"`
	Nodes     []Node            `json:"nodes"` // of a cluster

	child *child
}

// Node is one broker of a cluster.
type Node struct {
	ID        int    `json:"node"`
	Bootstrap string `json:"bootstrap"`
	PID       int    `json:"pid"`
}

// StartBroker runs a broker with topics ("name:partitions,...") and gives its bootstrap address. Where the jar or Java is missing
// the test fails, unless CIPHERLANE_SKIP_BROKER is set: then it is skipped, loudly.
func StartBroker(t *testing.T, topics string) (bootstrap string) {
	t.Helper()
	return RunBroker(t, "--topics", topics).Bootstrap
}

// RunBroker does the same with any options of the broker, such as "--cluster", "3".
func RunBroker(t *testing.T, options ...string) *Broker {
	t.Helper()
	return RunBrokerWith(t, nil, options...)
}

// RunBrokerWith has more jars on its class path, for classes that options name.
func RunBrokerWith(t *testing.T, jars []string, options ...string) *Broker {
	t.Helper()
	jar := filepath.Join(moduleFolder(), "..", "java", "broker", "target", "cipherlane-broker.jar")
	_, noJar := os.Stat(jar)
	java, noJava := exec.LookPath("java")
	if noJar != nil || noJava != nil {
		if os.Getenv("CIPHERLANE_SKIP_BROKER") != "" {
			t.Skip("NO BROKER: the tests against Kafka did not run")
		}
		t.Fatal("the broker is missing: run make -C java broker (or set CIPHERLANE_SKIP_BROKER=1 to go without)")
	}
	path := strings.Join(append([]string{jar}, jars...), string(os.PathListSeparator))
	arguments := append([]string{
		"-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.io.tmpdir=" + os.TempDir(), "-cp", path, "dev.cipherlane.broker.Main", "--until-stdin-closes",
	}, options...)
	broker := &Broker{}
	broker.child = start(t, exec.CommandContext(untilStopped(t), java, arguments...), broker) // #nosec G204 -- a test's own
	return broker
}

// Signal kills (SIGKILL), pauses (SIGSTOP) or resumes (SIGCONT) a node of a cluster as it was started at first.
func (b *Broker) Signal(t *testing.T, id int, signal syscall.Signal) {
	t.Helper()
	if err := syscall.Kill(b.Nodes[id-1].PID, signal); err != nil {
		t.Fatalf("node %d: %v", id, err)
	}
}

// Restart starts a node that was killed again, at its address; it answers some seconds later.
func (b *Broker) Restart(t *testing.T, id int) {
	t.Helper()
	if _, err := io.WriteString(b.child.stdin, "start "+strconv.Itoa(id)+"\n"); err != nil {
		t.Fatal(err)
	}
}
