// Clients: Kafka's own producers in Java, whatever their number.

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
	"strconv"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/benchmarks/rig"
)

const (
	produce = "produce" // as fast as they can
	pace    = "pace"    // so many a second

	// What a line that ends a run begins with; its figures follow.
	done = "-- done"

	logFile = "client.log" // in its folder
)

// client is a Java machine with producers that stay connected from run to run, driven line by line: ClientMain of Java's benchmarks.
type client struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader

	topic, dir string
}

// outcome is what a run took, and what the client says of it.
type outcome struct {
	seconds  float64
	p50, p99 float64 // milliseconds from when a record was sent, or due, to its acknowledgement
}

// startClient opens so many producers, which connect in their first run.
func startClient(s *rig.Scope, r *row, kind string, connections int) *client {
	heap := "256m"
	if connections > 1 {
		heap = "1g"
	}
	// Compilers that end would take their figures along, which are not counted.
	cmd := exec.CommandContext(s.Context(), "java", "-Xms"+heap, "-Xmx"+heap, "-XX:+UseG1GC", "-XX:-UseDynamicNumberOfCompilerThreads", // #nosec G204 -- our own program
		"-cp", javaLib, "dev.cipherlane.benchmarks.ClientMain")
	dir := s.TempDir()
	log := rig.Must(os.Create(filepath.Join(dir, logFile))) // #nosec G304 -- in our own folder
	cmd.Stderr = log
	c := &client{cmd: cmd, in: rig.Must(cmd.StdinPipe()), out: bufio.NewReader(rig.Must(cmd.StdoutPipe())), topic: r.topic, dir: dir}
	rig.Check(cmd.Start())
	s.Cleanup(func() {
		_ = c.in.Close()
		_ = cmd.Wait()
		_ = log.Close()
	})
	settings := filepath.Join(c.dir, "client.properties")
	text := fmt.Sprintf("bootstrap.servers=%s\nacks=1\n", r.at) + r.java
	if kind == pace {
		text += "linger.ms=0\n"
	}
	rig.Check(os.WriteFile(settings, []byte(text), 0o600))
	c.say("open %s %d %s", kind, connections, settings)
	return c
}

func (c *client) pid() int { return c.cmd.Process.Pid }

// run sends so many records; a rate only where the client keeps one.
func (c *client) run(records, size int, rate ...int) outcome {
	words := []string{"run", c.topic, strconv.Itoa(records)}
	for _, perSecond := range rate {
		words = append(words, strconv.Itoa(perSecond))
	}
	payload := c.payload(size)
	begin := time.Now()
	figures := c.say("%s %s", strings.Join(words, " "), payload)
	const microsPerMilli = 1000
	return outcome{time.Since(begin).Seconds(), figures["p50"] / microsPerMilli, figures["value"] / microsPerMilli}
}

// say gives the figures with which the client answers.
func (c *client) say(format string, args ...any) (figures map[string]float64) {
	_, err := fmt.Fprintf(c.in, format+"\n", args...)
	rig.Check(err)
	for {
		line, err := c.out.ReadString('\n')
		if err != nil {
			said, _ := os.ReadFile(filepath.Join(c.dir, logFile))
			rig.Check(fmt.Errorf("the client of %s has ended early: %s", c.topic, said))
		}
		if text, found := strings.CutPrefix(line, done); found {
			rig.Check(json.Unmarshal([]byte(text), &figures))
			return figures
		}
	}
}

// payload gives a file of lines, one for a value.
func (c *client) payload(size int) string {
	const lines = 200
	file := filepath.Join(c.dir, fmt.Sprintf("payload-%d", size))
	if _, err := os.Stat(file); err != nil {
		var text []byte
		for range lines {
			text = append(append(text, letters(size)...), '\n')
		}
		rig.Check(os.WriteFile(file, text, 0o600))
	}
	return file
}

func letters(size int) []byte {
	text := make([]byte, size)
	for i := range text {
		text[i] = "ABCDEFGHIJKLMNOP"[rand.IntN(16)] // #nosec G404 -- no secret
	}
	return text
}
