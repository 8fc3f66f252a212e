// The configurations in examples/deploy are read as the service would read them.

package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
)

const deploy = "../../../examples/deploy"

func TestDeployedConfigurations(t *testing.T) {
	host, err := Read(filepath.Join(deploy, "systemd", "keyservice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if host.Store.Vault != nil || host.Audit.Syslog == nil || host.AdminListen != "127.0.0.1:9443" {
		t.Errorf("%+v", host)
	}
	data, err := os.ReadFile(filepath.Join(deploy, "kubernetes", "keyservice.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var found string
	for document := range strings.SplitSeq(string(data), "\n---\n") {
		var m struct {
			Kind string
			Data map[string]string
		}
		if err := yaml.Unmarshal([]byte(document), &m); err != nil {
			t.Fatal(err)
		}
		if m.Kind == "ConfigMap" {
			found = m.Data["keyservice.yaml"]
		}
	}
	pod, _, err := read(t, found)
	if err != nil {
		t.Fatal(err)
	}
	if pod.Store.Vault == nil || pod.Store.Vault.Login.Kubernetes == nil || !pod.Audit.Stdout || pod.GracePeriod != 20*time.Second || pod.Log.Format != "json" {
		t.Errorf("%+v", pod)
	}
	if err := pod.Store.Vault.Check(); err != nil {
		t.Error(err)
	}
}

func TestDeployedPolicy(t *testing.T) {
	if _, err := policy.Open(filepath.Join(deploy, "policy.yaml")); err != nil {
		t.Error(err)
	}
}
