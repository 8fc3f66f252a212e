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
	"strconv"
	"strings"
	"time"

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
	s := &server{cmd: cmd, stdin: must(cmd.StdinPipe())}
	stdout := must(cmd.StdoutPipe())
	check(cmd.Start())
	b.Cleanup(s.stop)
	line, err := bufio.NewReader(stdout).ReadBytes('\n')
	if err != nil {
		panic(failure{fmt.Errorf("%s did not start: %w", name, err)})
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
	check(json.Unmarshal(line, &at))
	s.url, s.tls = at.URL, clientTLS(at)
	return s
}

func clientTLS(at dev.Running) map[string]*tls.Config {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(must(os.ReadFile(at.CA)))
	configs := map[string]*tls.Config{}
	for name, p := range at.Principals {
		pair := must(tls.LoadX509KeyPair(p.Certificate, p.Key))
		configs[name] = &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS13}
	}
	return configs
}

func (s *server) cpu() time.Duration { return cpuOf(s.cmd.Process.Pid) }

// cpuOf gives the CPU time of a process so far, user and system, in ticks of 10 ms.
func cpuOf(pid int) time.Duration {
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid)))
	_, rest, _ := strings.Cut(string(text), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	const userField, ticks = 11, 10 * time.Millisecond
	if len(fields) < userField+2 {
		panic(failure{fmt.Errorf("/proc/%d/stat is cut short", pid)})
	}
	return time.Duration(must(strconv.Atoi(fields[userField]))+must(strconv.Atoi(fields[userField+1]))) * ticks
}

// memory gives what a process holds in RAM, in MiB: all of it, and the part that is no file (the store is mapped).
func (s *server) memory() (all, anonymous float64) {
	text := must(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)))
	for line := range strings.Lines(string(text)) {
		name, value, _ := strings.Cut(line, ":")
		kilobytes, _ := strconv.ParseFloat(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 64)
		switch name {
		case "VmRSS":
			all = kilobytes / 1024
		case "RssAnon":
			anonymous = kilobytes / 1024
		}
	}
	return round(all), round(anonymous)
}

func self() string { return must(os.Executable()) }
