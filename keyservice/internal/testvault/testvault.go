// Package testvault starts real Vault servers for tests: in dev mode with and without TLS, or three nodes with Raft.
// Every server is a child process on loopback, killed by its id when its test ends.
package testvault

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/vault/api"
)

const (
	startTimeout = 60 * time.Second
	pluginName   = "vault-plugin-auth-kubernetes"
)

// Server is a running Vault.
type Server struct {
	Address string // http(s)://127.0.0.1:port
	CA      string // PEM file; empty without TLS
	Root    *api.Client

	unsealKey string
	process   *process
}

// Binary gives the path of Vault or OpenBao: from the PATH, else what `make vault` built. Without one the test is
// skipped, with a loud line; in CI it fails.
func Binary(t testing.TB) string {
	t.Helper()
	for _, name := range []string{"vault", "bao"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	path := filepath.Join(buildFolder(), "vault")
	if _, err := os.Stat(path); err == nil {
		return path
	}
	Report(t, "vault: MISSING, its tests did NOT run: run `make vault`, or put vault or bao on the PATH")
	if os.Getenv("CI") != "" {
		t.Fatal("no Vault server, and CI must have one: run `make vault`")
	}
	t.Skip("no Vault server: run `make vault`")
	return ""
}

func buildFolder() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "..", "build", "bin")
}

var reporting sync.Mutex

// Report says, at the end of `make test`, which backend ran or is missing.
func Report(t testing.TB, line string) {
	t.Helper()
	reporting.Lock()
	defer reporting.Unlock()
	t.Log("backend " + line)
	path := os.Getenv("CIPHERLANE_BACKENDS")
	if path == "" {
		return
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600) // #nosec G304,G703 -- the Makefile names it
	if err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintln(f, "backend "+line)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// Dev starts a server in dev mode: unsealed, in memory.
func Dev(t testing.TB, withTLS bool) *Server {
	t.Helper()
	dir, port := t.TempDir(), FreePort(t)
	s := &Server{Address: fmt.Sprintf("http://127.0.0.1:%d", port)}
	args := []string{
		"server", "-dev", "-dev-no-store-token", fmt.Sprintf("-dev-listen-address=127.0.0.1:%d", port),
	}
	if plugins := filepath.Join(buildFolder(), "vault-plugins"); exists(filepath.Join(plugins, pluginName)) {
		args = append(args, "-dev-plugin-dir="+plugins)
	}
	if withTLS {
		s.Address, s.CA = fmt.Sprintf("https://127.0.0.1:%d", port), filepath.Join(dir, "vault-ca.pem")
		args = append(args, "-dev-tls", "-dev-tls-cert-dir="+dir)
	}
	s.process = startProcess(t, Binary(t), dir, args...)
	s.process.wait(t, "server started!")
	s.unsealKey = s.process.after(t, "Unseal Key: ")
	s.Root = s.client(t, s.process.after(t, "Root Token: "))
	return s
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func (s *Server) client(t testing.TB, token string) *api.Client {
	t.Helper()
	cfg := api.DefaultConfig()
	cfg.Address = s.Address
	if err := cfg.ConfigureTLS(&api.TLSConfig{CACert: s.CA}); err != nil {
		t.Fatal(err)
	}
	c, err := api.NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	c.SetToken(token)
	return c
}

// Seal seals the server; Unseal undoes it.
func (s *Server) Seal(t testing.TB) {
	t.Helper()
	if err := s.Root.Sys().Seal(); err != nil {
		t.Fatal(err)
	}
}

// Unseal unseals a server that Seal sealed.
func (s *Server) Unseal(t testing.TB) {
	t.Helper()
	status, err := s.Root.Sys().Unseal(s.unsealKey)
	if err != nil || status.Sealed {
		t.Fatal("not unsealed", err)
	}
	s.waitActive(t)
}

func (s *Server) waitActive(t testing.TB) {
	t.Helper()
	Eventually(t, "Vault is active", func() bool {
		health, err := s.Root.Sys().Health()
		return err == nil && health.Initialized && !health.Sealed && !health.Standby
	})
}

// Pid gives the id of the process.
func (s *Server) Pid() int { return s.process.cmd.Process.Pid }

// Kill ends the process at once.
func (s *Server) Kill() { s.process.kill() }

// Pause stops the process without ending it: connections hang. Resume lets it go on.
func (s *Server) Pause(t testing.TB) {
	t.Helper()
	s.process.signal(t, syscall.SIGSTOP)
	status := fmt.Sprintf("/proc/%d/stat", s.process.cmd.Process.Pid)
	Eventually(t, "the process has stopped", func() bool {
		text, err := os.ReadFile(status) // #nosec G304 -- of a child
		return err == nil && strings.Contains(string(text), ") T ")
	})
}

// Resume lets a paused process go on.
func (s *Server) Resume(t testing.TB) {
	t.Helper()
	s.process.signal(t, syscall.SIGCONT)
}

// Write writes to a path as root and fails the test if Vault refuses.
func (s *Server) Write(t testing.TB, path string, data map[string]any) *api.Secret {
	t.Helper()
	secret, err := s.Root.Logical().Write(path, data)
	if err != nil {
		t.Fatal(err)
	}
	return secret
}

// Mount makes a transit and a KV v2 engine.
func (s *Server) Mount(t testing.TB, transit, kv string) {
	t.Helper()
	s.Write(t, "sys/mounts/"+transit, map[string]any{"type": "transit"})
	s.Write(t, "sys/mounts/"+kv, map[string]any{"type": "kv", "options": map[string]any{"version": "2"}})
	Eventually(t, "the KV engine is ready", func() bool { // it first upgrades itself to version 2
		_, err := s.Root.Logical().Read(kv + "/data/none")
		return err == nil
	})
}

// Token makes a token with exactly one policy.
func (s *Server) Token(t testing.TB, policy string, ttl time.Duration) string {
	t.Helper()
	renewable := true
	secret, err := s.Root.Auth().Token().Create(&api.TokenCreateRequest{
		Policies: []string{policy}, NoDefaultPolicy: true, TTL: ttl.String(), Renewable: &renewable,
	})
	if err != nil {
		t.Fatal(err)
	}
	return secret.Auth.ClientToken
}

// FreePort gives a port that nobody listens on.
func FreePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // a test helper
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	address, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal("not a TCP address")
	}
	return address.Port
}

// Eventually waits until a condition holds, for a minute at most.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(startTimeout); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatalf("waited in vain until %s", what)
}

// KubernetesPlugin gives the type to mount for logins by Kubernetes: a plug-in beside a Vault that was built without it.
func KubernetesPlugin() string {
	if exists(filepath.Join(buildFolder(), "vault-plugins", pluginName)) {
		return pluginName
	}
	return "kubernetes"
}
