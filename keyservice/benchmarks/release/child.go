// Child processes: the key service, and how much they take.

package main

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
	"github.com/cipherlane/cipherlane/keyservice/internal/dev"
)

// server is a child process that stops when its standard input ends.
type server struct {
	cmd   *exec.Cmd
	stdin io.Closer
	url   string
	tls   map[string]*tls.Config // by principal
}

// startChild gives the process and the first line that it prints.
func (b *bench) startChild(name string, args ...string) (*server, []byte) {
	cmd := exec.CommandContext(context.Background(), name, args...) // #nosec G204 -- our own programs
	cmd.Stderr = os.Stderr
	s := &server{cmd: cmd, stdin: rig.Must(cmd.StdinPipe())}
	stdout := rig.Must(cmd.StdoutPipe())
	rig.Check(cmd.Start())
	b.Cleanup(s.stop)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		panic(rig.Failure{Err: fmt.Errorf("%s did not start: %w", name, err)})
	}
	return s, line
}

func (s *server) stop() {
	_ = s.stdin.Close()
	_ = s.cmd.Wait()
}

// startService serves a folder of the dev command.
func (b *bench) startService(dir string) *server {
	s, line := b.startChild(program, "dev", "--dir", dir, "--json", "--until-stdin-closes", "--log-level", "error")
	return s.ready(line)
}

// ready takes the line that the dev command prints.
func (s *server) ready(line []byte) *server {
	var at dev.Running
	rig.Check(json.Unmarshal(line, &at))
	s.url, s.tls = at.URL, clientTLS(at)
	return s
}

func clientTLS(at dev.Running) map[string]*tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(rig.Must(os.ReadFile(at.CA)))
	configs := map[string]*tls.Config{}
	for name, p := range at.Principals {
		pair := rig.Must(tls.LoadX509KeyPair(p.Certificate, p.Key))
		configs[name] = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	}
	return configs
}

func (s *server) cpu() time.Duration { return rig.CPU(s.cmd.Process.Pid) }

func (s *server) memory() (all, anonymous float64) { return rig.Memory(s.cmd.Process.Pid) }

func self() string { return rig.Must(os.Executable()) }
