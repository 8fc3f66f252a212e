// Package environment runs what suites test against: a real broker and a real key service, as child processes that end with
// the runner, or Kafka and Vault as containers.
package environment

import (
	"fmt"
	"os"
	"path/filepath"
)

// Kinds of environment.
const (
	Auto    = "auto"    // Containers where they can be had, else Single
	Single  = "single"  // one broker
	Cluster = "cluster" // three brokers, which can be killed, paused and started again one by one

	Containers = "containers" // one broker, and a Vault under the key service, both in containers
)

const clusterSize = 3

// Paths say where the programs are.
type Paths struct {
	BrokerJar  string
	KeyService string
	Vault      string
	Folder     string // for everything that the run writes
}

// Environment starts its parts when they are first asked for. Used by one goroutine.
type Environment struct {
	Kind       string
	Paths      Paths
	Facts      map[string]string
	Policy     string
	Principals []string // of the key service, beside producer, consumer and operator
	OwnNetwork bool     // whether loopback belongs to this run alone

	broker   *Broker
	service  *KeyService
	vault    *Vault // of the service, in a container
	replicas *Replicas
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
	if e.Kind == Containers {
		return e.containedBroker()
	}
	nodes, fact := 1, "real, one process, KRaft (kafka_2.13)"
	if e.Kind == Cluster {
		nodes, fact = clusterSize, "real, three processes, KRaft (kafka_2.13), three copies of each partition, two of them in sync"
	}
	b, err := startBroker(e.log("broker"), e.Paths.BrokerJar, nodes)
	if err != nil {
		return nil, err
	}
	e.broker = b
	e.Facts["broker"] = fact
	return b, nil
}

func (e *Environment) containedBroker() (_ *Broker, err error) {
	if e.broker, err = startContainedBroker(filepath.Join(e.Paths.Folder, "kafka")); err != nil {
		return nil, fmt.Errorf("broker: %w", err)
	}
	e.Facts["broker"] = "real, one container, KRaft (" + kafkaImage + ")"
	return e.broker, nil
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
	fact := "real, embedded store"
	if e.Kind == Containers {
		fact = "real, on a real Vault in a container (" + vaultImage + ")"
		if err := e.containedStore(s.Dir); err != nil {
			return nil, err
		}
	}
	if err := s.start(e, "127.0.0.1:0"); err != nil {
		return nil, err
	}
	e.service = s
	e.Facts["key service"] = fact
	return s, nil
}

// containedStore starts a Vault for the key service of a folder.
func (e *Environment) containedStore(folder string) (err error) {
	if e.vault, err = startContainedVault(); err != nil {
		return fmt.Errorf("vault: %w", err)
	}
	token := filepath.Join(e.Paths.Folder, "vault-token")
	if err := e.vault.token(token); err != nil {
		return err
	}
	config, err := e.vault.configure(folder, token)
	if err != nil {
		return err
	}
	return e.initialize(config)
}

// start starts it in its folder.
func (s *KeyService) start(e *Environment, listen string) error {
	file := filepath.Join(s.Dir, "policy-of-the-run.yaml")
	if err := os.WriteFile(file, []byte(e.Policy), 0o600); err != nil {
		return err
	}
	args := []string{"dev", "--json", "--until-stdin-closes", "--dir", s.Dir, "--policy", file, "--log-level", "info", "--listen", listen}
	for _, principal := range e.Principals {
		args = append(args, "--principal", principal)
	}
	process, err := start(e.log(filepath.Base(s.Dir)), s, e.Paths.KeyService, args...)
	if err != nil {
		return fmt.Errorf("key service: %w", err)
	}
	s.process = process
	return nil
}

// PID is its process id.
func (s *KeyService) PID() int { return s.process.pid() }

// Settings are the cipherlane.… settings of a principal.
func (s *KeyService) Settings(principal string) map[string]string {
	files := s.Principals[principal]
	return map[string]string{
		"cipherlane.keyservice.urls": s.URL, "cipherlane.keyservice.tls.ca": s.CA,
		"cipherlane.keyservice.tls.certificate": files.Certificate, "cipherlane.keyservice.tls.key": files.Key,
	}
}

func (e *Environment) log(name string) string { return filepath.Join(e.Paths.Folder, name+".log") }

// Close stops what was started.
func (e *Environment) Close() {
	if e.broker != nil {
		e.broker.close()
	}
	if e.service != nil {
		e.service.process.stop()
	}
	if e.vault != nil {
		e.vault.close()
	}
	if e.replicas != nil {
		e.replicas.close()
	}
}
