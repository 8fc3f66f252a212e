package main

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/pki"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/report"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/suite"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/vectors"
)

type runCommand struct {
	Driver      map[string]string `required:"" mapsep:"none" placeholder:"NAME=COMMAND" help:"A driver and the command that starts it; words are separated by spaces. May be given again. COMMAND 'reference' is the Go reference."`
	Suite       []string          `placeholder:"NAME" help:"Only these suites."`
	Case        string            `placeholder:"GLOB" help:"Only these cases, such as 'decrypt-*'."`
	Vectors     string            `default:"../spec/vectors" help:"Folder of the vectors (${default})."`
	BrokerJar   string            `default:"../java/broker/target/cipherlane-broker.jar" help:"The broker (${default})."`
	KeyService  string            `default:"../keyservice/build/bin/cipherlane-keyservice" help:"The key service (${default})."`
	Vault       string            `default:"../keyservice/build/bin/vault" help:"Vault, for the suite faults (${default})."`
	Environment string            `default:"auto" enum:"auto,single,cluster,containers" help:"What Kafka is: single, one broker, cluster, three, or containers, Kafka and Vault in containers. auto: containers where a Docker engine answers and the suites can do with them, else single (${default})."`
	OwnNetwork  bool              `help:"Loopback belongs to this run alone, so that it may lose packets there: see make faults."`
	Clock       string            `placeholder:"FILE" help:"The library of clock/skew.c, which lets the runner set the clocks of drivers: see make faults."`
	Known       string            `placeholder:"FILE" help:"Failures that are known; an entry that does not fail any more fails the run."`
	Unreached   string            `placeholder:"FILE" help:"What drivers cannot reach, with the reasons; an entry that meets nothing fails the run."`
	Results     string            `default:"build/test-results" help:"Folder for results.json, TEST-conformance.xml and index.html (${default})."`
	Seed        uint64            `help:"Of everything that is random; printed, so that a run can be repeated. 0 draws one."`
	Records     int               `default:"1000" help:"Records that each driver writes in the matrix (${default})."`
	FuzzTime    time.Duration     `default:"60s" help:"How long the fuzz suite runs (${default})."`
	Soak        time.Duration     `default:"60m" help:"How long the suite soak runs (${default})."`
	Keep        bool              `help:"Keep logs and files of the run, and say where."`
}

// Run carries out `run`.
func (c *runCommand) Run() error {
	if err := c.chooseEnvironment(); err != nil {
		return err
	}
	folder, err := os.MkdirTemp("", "cipherlane-conformance-")
	if err != nil {
		return err
	}
	if c.Keep {
		fmt.Fprintln(os.Stderr, "files of this run:", folder)
	} else {
		defer func() { _ = os.RemoveAll(folder) }()
	}
	run, err := c.prepare(folder)
	if err != nil {
		return err
	}
	defer run.close()
	if err := run.start(c.Driver, folder, c.Clock); err != nil {
		return err
	}
	if err := run.suites(c.Suite); err != nil {
		return err
	}
	return c.finish(run.Results)
}

func (c *runCommand) finish(results *report.Results) error {
	if len(c.Suite) == 0 && c.Case == "" {
		results.Finish()
	}
	if err := errors.Join(results.WriteTable(os.Stdout), results.WriteFiles(c.Results)); err != nil {
		return err
	}
	failed := results.Count(report.Failed, report.Stale)
	fmt.Printf("%d passed, %d failed, %d skipped, %d known; %s\n", results.Count(report.Passed), failed,
		results.Count(report.Skipped), results.Count(report.Known), filepath.Join(c.Results, "index.html"))
	if failed > 0 {
		return fmt.Errorf("%d failed", failed) // not os.Exit: containers would outlive the run
	}
	return nil
}

// running is a run and what has to be closed after it.
type running struct {
	*suite.Run
}

func (c *runCommand) prepare(folder string) (*running, error) {
	if c.Seed == 0 {
		c.Seed = rand.Uint64() >> 1
	}
	fmt.Fprintf(os.Stderr, "seed %d\n", c.Seed)
	results := &report.Results{Facts: report.Facts{Begun: time.Now(), Seed: c.Seed, Environment: map[string]string{}, Drivers: map[string]string{}, Features: map[string][]string{}}}
	if c.Known != "" {
		if err := results.ReadKnown(c.Known); err != nil {
			return nil, err
		}
	}
	if c.Unreached != "" {
		if err := results.ReadUnreached(c.Unreached); err != nil {
			return nil, err
		}
	}
	all, err := vectors.Read(c.Vectors)
	if err != nil {
		return nil, err
	}
	results.Facts.Environment["vectors"] = strconv.Itoa(len(all))
	run := &suite.Run{
		Vectors: all, Seed: c.Seed, Records: c.Records, FuzzTime: c.FuzzTime, Soak: c.Soak, ResultsFolder: c.Results, Case: c.Case, Results: results,
		Progress: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
		Environment: &environment.Environment{
			Kind: c.Environment, Paths: environment.Paths{BrokerJar: c.BrokerJar, KeyService: c.KeyService, Vault: c.Vault, Folder: folder},
			Facts: results.Facts.Environment, Policy: suite.Policy, OwnNetwork: c.OwnNetwork,
		},
	}
	return &running{run}, scriptedService(run, folder)
}

// scriptedService starts it with a CA of its own, and makes the files of a client and of a stranger.
func scriptedService(run *suite.Run, folder string) error {
	client, authority, err := clientFiles(filepath.Join(folder, "pki"))
	if err != nil {
		return err
	}
	if run.Stranger, _, err = clientFiles(filepath.Join(folder, "stranger")); err != nil {
		return err
	}
	if run.Service, err = scripted.Start(authority); err != nil {
		return err
	}
	run.Client = map[string]string{
		"cipherlane.keyservice.urls": run.Service.URL, "cipherlane.keyservice.tls.ca": client.CA,
		"cipherlane.keyservice.tls.certificate": client.Certificate, "cipherlane.keyservice.tls.key": client.Key,
	}
	return nil
}

func clientFiles(folder string) (suite.Files, *pki.Authority, error) {
	if err := os.Mkdir(folder, 0o700); err != nil {
		return suite.Files{}, nil, err
	}
	authority, err := pki.NewAuthority(folder)
	if err != nil {
		return suite.Files{}, nil, err
	}
	certificate, key, err := authority.Client("client")
	return suite.Files{CA: authority.CAFile(), Certificate: certificate, Key: key}, authority, err
}

// start starts the drivers, in the order of their names; the reference, if it is among them, comes first.
func (r *running) start(commands map[string]string, folder, clock string) error {
	var names []string
	for name := range commands {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		if (commands[a] == "reference") != (commands[b] == "reference") {
			return map[bool]int{true: -1, false: 1}[commands[a] == "reference"]
		}
		return strings.Compare(a, b)
	})
	for _, name := range names {
		d, err := startDriver(name, commands[name], folder, clock)
		if err != nil {
			return fmt.Errorf("driver %s: %w", name, err)
		}
		r.Drivers = append(r.Drivers, d)
		r.Environment.Principals = append(r.Environment.Principals, suite.Principal(name))
		r.Results.Facts.Drivers[name] = d.Name + " " + d.Version
		r.Results.Facts.Features[name] = d.Features
	}
	return nil
}

func (r *running) suites(names []string) error {
	known := 0
	for _, s := range suite.All {
		if wanted := len(names) == 0 && !s.OnDemand || slices.Contains(names, s.Name); !wanted {
			continue
		}
		known++
		if err := s.Run(r.Run); err != nil {
			return fmt.Errorf("suite %s: %w", s.Name, err)
		}
	}
	if known == 0 || (len(names) > 0 && known != len(names)) {
		return fmt.Errorf("unknown suite among %v; see cipherlane-conformance list", names)
	}
	return nil
}

func (r *running) close() {
	for _, d := range r.Drivers {
		d.Close()
	}
	r.Service.Close()
	r.Environment.Close()
}

// ofProcesses are suites that need Kafka as a process of this user: to stop it, or to look into its memory.
var ofProcesses = []string{"leak", "faults", "soak"}

// chooseEnvironment sees to it that what was asked for can be had, and chooses where nothing was.
func (c *runCommand) chooseEnvironment() error {
	switch c.Environment {
	case environment.Containers:
		for _, name := range c.Suite {
			if slices.Contains(ofProcesses[1:], name) {
				return fmt.Errorf("--environment containers: the suite %s stops and watches processes: take single or cluster", name)
			}
		}
		if err := environment.Engine(); err != nil {
			return fmt.Errorf("--environment containers: %w; start Docker on this machine and name its socket in DOCKER_HOST, or take --environment single", err)
		}
	case environment.Auto:
		c.Environment = environment.Single
		needsProcesses := func(name string) bool { return slices.Contains(ofProcesses, name) }
		if len(c.Suite) > 0 && !slices.ContainsFunc(c.Suite, needsProcesses) && environment.Engine() == nil {
			c.Environment = environment.Containers
		}
	}
	return nil
}
