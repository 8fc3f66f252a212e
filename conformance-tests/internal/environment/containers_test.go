package environment

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// needEngine: what is refused without one, the tests of the command line show.
func needEngine(t *testing.T) {
	t.Helper()
	if err := Engine(); err != nil {
		t.Skip(err)
	}
}

func TestContainedBroker(t *testing.T) {
	needEngine(t)
	folder := filepath.Join(t.TempDir(), "kafka")
	broker, err := startContainedBroker(folder)
	if err != nil {
		t.Fatal(err)
	}
	defer broker.close()
	if err := broker.CreateTopic("contained", 1); err != nil {
		t.Fatal(err)
	}
	segments, err := filepath.Glob(filepath.Join(broker.LogDir, "contained-0", "*.log"))
	if err != nil || len(segments) != 1 {
		t.Errorf("segments on the disk of the host: %v, %v", segments, err)
	}
	command, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", broker.PIDs()[0]))
	if err != nil || filepath.Base(command) != "java" {
		t.Errorf("the process whose memory is searched: %q, %v", command, err)
	}
}

func TestContainedVault(t *testing.T) {
	needEngine(t)
	vault, err := startContainedVault()
	if err != nil {
		t.Fatal(err)
	}
	defer vault.close()
	var mounts map[string]any
	if err := vault.call(vault.nodes[0], http.MethodGet, "sys/mounts", nil, &mounts); err != nil || mounts["cipherlane-transit/"] == nil || mounts["cipherlane/"] == nil {
		t.Errorf("%v, %v", mounts, err)
	}
}

func TestContainerThatEnds(t *testing.T) {
	needEngine(t)
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	c, err := runContainer(kafkaImage, port, nil, "", "sh", "-c", "echo its last words; exit 3")
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	never := errors.New("never")
	if err := c.await(func() error { return never }); !errors.Is(err, never) || !strings.Contains(err.Error(), "its last words") {
		t.Error(err)
	}
}
