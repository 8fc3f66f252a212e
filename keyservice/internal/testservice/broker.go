// A Kafka broker as a child process: that of java/broker.

package testservice

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// StartBroker runs a broker with topics ("name:partitions,...") and gives its bootstrap address. Where the jar or Java is missing
// the test fails, unless CIPHERLANE_SKIP_BROKER is set: then it is skipped, loudly.
func StartBroker(t *testing.T, topics string) (bootstrap string) {
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
	var ready struct {
		Bootstrap string `json:"bootstrap"`
	}
	cmd := exec.CommandContext(t.Context(), java, "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-jar", jar, // #nosec G204 -- a test's own
		"--topics", topics, "--until-stdin-closes")
	start(t, cmd, &ready)
	return ready.Bootstrap
}
