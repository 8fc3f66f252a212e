// Clients: Kafka's own in Java for one connection, franz-go for many.

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

func newClient(s *rig.Scope, r *row, connections int) client {
	if connections == 1 {
		return startJava(s, r)
	}
	return startLoad(s, r, connections)
}

// child is a process that is driven line by line.
type child struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(s *rig.Scope, name string, arguments ...string) *child {
	cmd := exec.CommandContext(s.Context(), name, arguments...) // #nosec G204 -- our own programs
	cmd.Stderr = os.Stderr
	if name == "java" {
		cmd.Stderr = nil // where Kafka's tools complain that no logger is there
	}
	c := &child{cmd: cmd, in: rig.Must(cmd.StdinPipe()), out: bufio.NewReader(rig.Must(cmd.StdoutPipe()))}
	rig.Check(cmd.Start())
	s.Cleanup(func() {
		_ = c.in.Close()
		_ = cmd.Wait()
	})
	return c
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) say(format string, args ...any) {
	_, err := fmt.Fprintf(c.in, format, args...)
	rig.Check(err)
}

func (c *child) line() string { return rig.Must(c.out.ReadString('\n')) }

// java runs ProducerPerformance in a machine that lives for all runs, so that compilation is over when it counts.
type java struct {
	*child

	topic, settings, dir string
}

func startJava(s *rig.Scope, r *row) client {
	dir := s.TempDir()
	text := fmt.Sprintf("bootstrap.servers=%s\nacks=1\n", r.at) + r.java
	settings := filepath.Join(dir, "client.properties")
	rig.Check(os.WriteFile(settings, []byte(text), 0o600))
	c := startChild(s, "java", "-Xms256m", "-Xmx256m", "-XX:+UseG1GC", "-cp", javaLib, "dev.cipherlane.benchmarks.ClientMain")
	return &java{c, r.topic, settings, dir}
}

// performance is the last line that ProducerPerformance prints.
var performance = regexp.MustCompile(`, ([\d.]+) records/sec .* ([\d.]+) ms 50th, ([\d.]+) ms 95th, ([\d.]+) ms 99th`)

func (j *java) run(records, size, _ int) outcome {
	payload := filepath.Join(j.dir, fmt.Sprintf("payload-%d", size))
	if _, err := os.Stat(payload); err != nil {
		var lines strings.Builder
		for range 1000 {
			lines.Write(letters(size))
			lines.WriteByte('\n')
		}
		rig.Check(os.WriteFile(payload, []byte(lines.String()), 0o600))
	}
	j.say("produce %s %d %s %s\n", j.topic, records, j.settings, payload)
	var o outcome
	for line := j.line(); !strings.HasPrefix(line, "-- done"); line = j.line() { // figures of the client's own follow
		if found := performance.FindStringSubmatch(line); found != nil {
			o = outcome{float64(records) / number(found[1]), number(found[2]), number(found[4])}
		}
	}
	if o.Seconds == 0 {
		rig.Check(fmt.Errorf("the producer at %s has failed", j.topic))
	}
	return o
}

func number(text string) float64 { return rig.Must(strconv.ParseFloat(text, 64)) }

func letters(size int) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = "ABCDEFGHIJKLMNOP"[rand.IntN(16)] // #nosec G404 -- no secret
	}
	return text
}

// load is this program, with franz-go clients.
type load struct{ *child }

func startLoad(s *rig.Scope, r *row, connections int) client {
	arguments := []string{"load", "-at", r.at, "-topic", r.topic, "-clients", strconv.Itoa(connections)}
	if r.secure != nil {
		arguments = append(arguments, "-ca", r.ca, "-certificate", r.secure.Certificate, "-key", r.secure.Key)
	}
	c := startChild(s, rig.Must(os.Executable()), arguments...)
	if said := c.line(); said != "ready\n" {
		rig.Check(fmt.Errorf("the clients of %s: %s", r.name, said))
	}
	return load{c}
}

func (l load) run(records, size, perSecond int) (o outcome) {
	l.say("%d %d %d\n", records, size, perSecond)
	rig.Check(json.Unmarshal([]byte(l.line()), &o))
	return o
}
