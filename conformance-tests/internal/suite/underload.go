package suite

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/report"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
)

// The course of a fault: all is well, the fault, all is well again. Leases are short, so that the fault outlives them.
const (
	loadWell     = 2 * time.Second
	loadFault    = 4 * time.Second
	loadRecovery = 5 * time.Second // within this time of the fault's end, the last refusal
	loadMost     = 5 * time.Minute
	loadRate     = 100 // records a second
	loadRefresh  = 1   // seconds
	loadExpires  = 2   // seconds
	loadOutlives = 300 // seconds: a lease that outlives its fault
	// From the moment a driver is told to write until its clock begins.
	loadSlack = 500 * time.Millisecond
	// The patience of the clients: no longer than a fault that outlives a lease.
	loadTimeout  = "1000"
	loadDeadline = "1300"
)

// underLoad is one fault, with all drivers at once.
type underLoad struct {
	*Run

	disturbance

	key      dataKey
	broker   *environment.Broker
	replicas *environment.Replicas // of a real fault
	canary   []byte
	warmed   map[bool]bool // by real: whose clients are past their first request
	ahead    time.Duration // the clocks of clients
}

// runFaults needs minutes, so it runs only when it is asked for.
func runFaults(r *Run) error {
	broker, err := r.Environment.Broker()
	if err != nil {
		return err
	}
	key, err := newDataKey(r.random("faults"))
	if err != nil {
		return err
	}
	canary := randomBytes(r.random("faults canary"), 16)
	disturbances, missing, err := r.disturbances(key)
	if err != nil {
		return err
	}
	for name, why := range missing {
		r.skip("faults", name, why)
	}
	warmed := map[bool]bool{}
	for _, f := range disturbances {
		if !r.wanted(f.name) {
			continue
		}
		r.Progress("faults: %s", f.name)
		u := &underLoad{Run: r, disturbance: f, key: key, broker: broker, canary: canary, warmed: warmed}
		if f.clocks {
			u.Run = r.withClocks(f.name)
		}
		if err := u.run(); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	return r.searchAfterFaults(broker, canary)
}

// skip says of a case, for each driver, why it did not run.
func (r *Run) skip(suite, name string, why error) {
	if !r.wanted(name) {
		return
	}
	for _, d := range r.Drivers {
		r.skipOne(suite, name, d, why)
	}
}

func (r *Run) skipOne(suite, name string, d *Driver, why error) {
	r.Results.Add(report.Result{Suite: suite, Case: name, Driver: d.Label, Status: report.Skipped, Message: why.Error()})
}

// searchAfterFaults looks for what was written wherever it must not be.
func (r *Run) searchAfterFaults(broker *environment.Broker, canary []byte) error {
	for _, d := range r.Drivers {
		t := &leakTest{Run: r, d: d, broker: broker, topic: "faults-" + d.Label, canaries: [][]byte{canary}}
		r.check("faults", "broker-segments", d, nil, func() error { return t.searchFolder(broker.LogDir) })
		r.check("faults", "broker-memory", d, nil, func() error { return t.searchMemory(broker.PIDs()) })
		r.check("faults", "client-log", d, nil, func() error { return t.searchFile(d.Log) })
		if r.Environment.HasReplicas() {
			r.check("faults", "key-services", d, nil, func() error { return t.searchKeyServices() })
		}
	}
	return nil
}

// searchKeyServices searches their files, the audit logs among them, what they print, and their memory.
func (t *leakTest) searchKeyServices() error {
	replicas, err := t.Environment.Replicas()
	if err != nil {
		return err
	}
	folders, logs := replicas.Folders()
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*"))
		if err != nil {
			return err
		}
		logs = append(logs, files...)
	}
	for _, file := range logs {
		if info, err := os.Stat(file); err != nil || info.IsDir() {
			return errors.Join(err, fmt.Errorf("%s is no file", file))
		}
		if err := t.searchFile(file); err != nil {
			return err
		}
	}
	return t.searchMemory(replicas.PIDs())
}

type loaded struct {
	results []driver.Outcome
	err     error
}

func (u *underLoad) run() error {
	if err := u.prepare(); err != nil {
		return err
	}
	goesOn := filepath.Join(u.Environment.Paths.Folder, "load")
	if err := os.WriteFile(goesOn, nil, 0o600); err != nil {
		return err
	}
	all := make([]loaded, len(u.Drivers))
	begun := time.Now()
	var running sync.WaitGroup
	for i, d := range u.Drivers {
		running.Go(func() { all[i] = u.load(d, goesOn) })
	}
	err := u.disturb()
	over := time.Since(begun)
	time.Sleep(loadRecovery + time.Second)
	err = errors.Join(err, os.Remove(goesOn))
	running.Wait()
	if err != nil {
		return err
	}
	u.Service.Play(u.every)
	for i, d := range u.Drivers {
		u.check("faults", u.name, d, nil, func() error { return u.judge(d, all[i], over) })
	}
	return nil
}

// prepare makes topics and, with the real key service, their keys, so that nobody waits for these under load.
func (u *underLoad) prepare() (err error) {
	for _, d := range u.Drivers {
		if err := u.broker.CreateTopic(u.topicOf(d), 1); err != nil {
			return err
		}
	}
	u.Service.Play(u.leased(keyed(u.key)))
	if u.real {
		if u.replicas, err = u.Environment.Replicas(); err != nil {
			return err
		}
		if err := u.rotateAll(); err != nil {
			return err
		}
	}
	if !u.warmed[u.real] {
		u.warmed[u.real] = true
		return u.warm()
	}
	return nil
}

// warm has each driver write to another topic while nobody counts how long that takes: a process's first request to a key service
// is slow, and these faults are about those that follow. What comes of it does not matter.
func (u *underLoad) warm() error {
	var running sync.WaitGroup
	for _, d := range u.Drivers {
		topic := u.topicOf(d) + "-warm"
		if err := u.broker.CreateTopic(topic, 1); err != nil {
			return err
		}
		settings := kafkaSettings(u.broker, u.reading(d))
		running.Go(func() {
			_ = d.Call(driver.Request{Op: driver.OpProduce, Settings: settings, Topic: topic, Records: []driver.Record{{Value: u.canary}}}, nil)
		})
	}
	running.Wait()
	return nil
}

// every gives both keys, for reading.
func (u *underLoad) every(call scripted.Call) scripted.Reply {
	next, err := newDataKey(u.random("faults rotated"))
	if err != nil {
		return scripted.Problem(http.StatusInternalServerError, "internal")
	}
	return holder(leakScope, u.key, next)(call)
}

func (u *underLoad) topicOf(d *Driver) string {
	return fmt.Sprintf("faults-%s-%s-%d", d.Label, u.name, u.Seed%1_000_000)
}

// disturb returns when the fault is over.
func (u *underLoad) disturb() error {
	time.Sleep(loadWell)
	if u.script != nil {
		u.Service.Play(u.leased(u.script))
	}
	var err error
	if u.begin != nil {
		err = u.begin(u)
	}
	time.Sleep(loadFault)
	if u.end != nil {
		err = errors.Join(err, u.end(u))
	}
	if u.effect != goesOn {
		u.Service.Play(u.leased(keyed(u.key)))
	}
	return err
}

// leased gives every lease the times of this suite.
func (u *underLoad) leased(script scripted.Script) scripted.Script {
	expires := loadExpires
	if u.outlives {
		expires = loadOutlives
	}
	return func(call scripted.Call) scripted.Reply {
		return scripted.WithLease(script(call), loadRefresh, expires)
	}
}

func (u *underLoad) load(d *Driver, goesOn string) loaded {
	settings := kafkaSettings(u.broker, u.settingsOf(d), "acks", "all", "enable.idempotence", "true")
	var out struct{ Results []driver.Outcome }
	err := d.Call(driver.Request{
		Op: driver.OpLoad, Settings: settings, Topic: u.topicOf(d), Value: raw(u.canary), Rate: loadRate,
		TimeoutMillis: int(loadMost.Milliseconds()), While: goesOn,
	}, &out)
	return loaded{out.Results, err}
}

func (u *underLoad) settingsOf(d *Driver) map[string]string {
	settings := u.reading(d)
	maps.Copy(settings, map[string]string{
		"cipherlane.keyservice.connect.timeout.ms": loadTimeout, "cipherlane.keyservice.request.timeout.ms": loadTimeout,
		"cipherlane.keys.deadline.ms": loadDeadline,
	})
	if u.disturbance.settings != nil {
		maps.Copy(settings, u.disturbance.settings(u.Run))
	}
	return settings
}

// reading are the settings of a driver as a client with all the patience in the world.
func (u *underLoad) reading(d *Driver) map[string]string {
	if u.real {
		return u.replicas.Settings(Principal(d.Label))
	}
	return u.Run.settings()
}
