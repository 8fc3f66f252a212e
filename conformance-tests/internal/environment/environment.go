// Package environment runs what suites test against: a real broker and a real key service, as child processes that end with
// the runner.
package environment

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const (
	startTimeout = 90 * time.Second
	stopTimeout  = 20 * time.Second
)

// Paths say where the programs are.
type Paths struct {
	BrokerJar  string
	KeyService string
	Folder     string // for everything that the run writes
}

// Environment starts its parts when they are first asked for. Used by one goroutine.
type Environment struct {
	Paths      Paths
	Facts      map[string]string
	Policy     string
	Principals []string // of the key service, beside producer, consumer and operator

	broker  *Broker
	service *KeyService
}

// Broker is a KRaft broker that runs.
type Broker struct {
	Bootstrap string `json:"bootstrap"`
	LogDir    string `json:"log_dir"`

	process *child
}

// KeyService is a key service that runs, with the files of its principals.
type KeyService struct {
	URL        string `json:"url"`
	CA         string `json:"ca"`
	Principals map[string]struct {
		Certificate string `json:"certificate"`
		Key         string `json:"key"`
	} `json:"principals"`
	Dir string `json:"-"`

	process *child
}

// Broker starts the broker, once.
func (e *Environment) Broker() (*Broker, error) {
	if e.broker != nil {
		return e.broker, nil
	}
	b := &Broker{}
	process, err := start(e.log("broker"), b, "java", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-jar", e.Paths.BrokerJar, "--until-stdin-closes")
	if err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	b.process = process
	e.broker = b
	e.Facts["broker"] = "real, one process, KRaft (kafka_2.13)"
	return b, nil
}

// KeyService starts the key service, once, with the policy of the run and certificates for the principals that it names.
func (e *Environment) KeyService() (*KeyService, error) {
	if e.service != nil {
		return e.service, nil
	}
	s := &KeyService{Dir: filepath.Join(e.Paths.Folder, "keyservice")}
	if err := os.Mkdir(s.Dir, 0o700); err != nil {
		return nil, err
	}
	file := filepath.Join(s.Dir, "policy-of-the-run.yaml")
	if err := os.WriteFile(file, []byte(e.Policy), 0o600); err != nil {
		return nil, err
	}
	args := []string{"dev", "--json", "--until-stdin-closes", "--dir", s.Dir, "--policy", file, "--log-level", "info"}
	for _, principal := range e.Principals {
		args = append(args, "--principal", principal)
	}
	process, err := start(e.log("keyservice"), s, e.Paths.KeyService, args...)
	if err != nil {
		return nil, fmt.Errorf("key service: %w", err)
	}
	s.process = process
	e.service = s
	e.Facts["key service"] = "real, embedded store"
	return s, nil
}

// Settings are the cipherlane.… settings of a principal.
func (s *KeyService) Settings(principal string) map[string]string {
	files := s.Principals[principal]
	return map[string]string{
		"cipherlane.keyservice.urls": s.URL, "cipherlane.keyservice.tls.ca": s.CA,
		"cipherlane.keyservice.tls.certificate": files.Certificate, "cipherlane.keyservice.tls.key": files.Key,
	}
}

// CreateTopic makes a topic that is ready for use.
func (b *Broker) CreateTopic(name string, partitions int32) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(b.Bootstrap))
	if err != nil {
		return err
	}
	defer client.Close()
	limit := "8388608"
	created, err := kadm.NewClient(client).CreateTopic(context.Background(), partitions, 1, map[string]*string{"max.message.bytes": &limit}, name)
	return errors.Join(err, created.Err)
}

func (e *Environment) log(name string) string { return filepath.Join(e.Paths.Folder, name+".log") }

// Close stops what was started.
func (e *Environment) Close() {
	if e.broker != nil {
		e.broker.process.stop()
	}
	if e.service != nil {
		e.service.process.stop()
	}
}

type child struct {
	command *exec.Cmd
	stdin   io.Closer
}

// start starts a program that says in one line of JSON when it is ready.
func start(log string, ready any, name string, args ...string) (*child, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	cmd := exec.Command(name, args...)
	cmd.Stderr = file
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd, stdin}
	line, err := firstLine(stdout)
	if err == nil {
		err = json.Unmarshal([]byte(line), ready)
	}
	if err != nil {
		c.stop()
		return nil, fmt.Errorf("%s did not get ready: %w; see %s", name, err, log)
	}
	go func() { _, _ = io.Copy(io.Discard, stdout) }()
	return c, nil
}

func firstLine(out io.Reader) (string, error) {
	lines, failures := make(chan string, 1), make(chan error, 1)
	go func() {
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			failures <- err
			return
		}
		lines <- strings.TrimSpace(line)
	}()
	select {
	case line := <-lines:
		return line, nil
	case err := <-failures:
		return "", err
	case <-time.After(startTimeout):
		return "", errors.New("time is over")
	}
}

func (c *child) stop() {
	_ = c.stdin.Close()
	timer := time.AfterFunc(stopTimeout, func() { _ = c.command.Process.Kill() })
	_ = c.command.Wait()
	timer.Stop()
}
