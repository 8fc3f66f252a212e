package suite

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
)

// The course of a fault: all is well, the fault, all is well again. Leases are short, so that the fault outlives them.
const (
	loadWell     = 2 * time.Second
	loadFault    = 4 * time.Second
	loadRecovery = 5 * time.Second
	loadRate     = 100 // records a second
	loadRefresh  = 1   // seconds
	loadExpires  = 2   // seconds
	// How exactly the driver's clock and the runner's begin together.
	loadSlack = 500 * time.Millisecond
)

// disturbance is a fault that comes and goes while a producer runs.
type disturbance struct {
	name     string
	script   scripted.Script              // what the key service answers meanwhile; nil: as ever
	begin    func(*Run) error             // what else happens
	end      func(*Run) error             //
	harmless bool                         // no record may be refused; else some must be
	settings func(*Run) map[string]string // in place of those of the client
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
	disturbances, err := r.disturbances(key)
	if err != nil {
		return err
	}
	for _, f := range disturbances {
		if !r.wanted(f.name) {
			continue
		}
		r.Progress("faults: %s", f.name)
		if err := (&underLoad{r, f, key, broker, canary}).run(); err != nil {
			return fmt.Errorf("%s: %w", f.name, err)
		}
	}
	for _, d := range r.Drivers {
		t := &leakTest{Run: r, d: d, broker: broker, topic: "faults-", canaries: [][]byte{canary}}
		r.check("faults", "broker-segments", d, nil, func() error { return t.searchFolder(broker.LogDir) })
		r.check("faults", "client-log", d, nil, func() error { return t.searchFile(d.Log) })
	}
	return nil
}

// disturbances are those of the leak suite that a key service can have for a while, and some more.
func (r *Run) disturbances(key dataKey) ([]disturbance, error) {
	var all []disturbance
	for _, f := range r.faults(key) {
		if f.script != nil {
			all = append(all, disturbance{name: f.name, script: f.script})
		}
	}
	next, err := newDataKey(r.random("faults rotated"))
	if err != nil {
		return nil, err
	}
	return append(all,
		disturbance{name: "stopped", begin: func(r *Run) error { r.Service.Stop(); return nil }, end: func(r *Run) error { return r.Service.Restart() }},
		disturbance{name: "expired-certificate", begin: func(r *Run) error { return r.Service.Expire(true) }, end: func(r *Run) error { return r.Service.Expire(false) }},
		disturbance{name: "slow-but-in-time", harmless: true, script: delayed(300*time.Millisecond, keyed(key))},
		disturbance{name: "first-of-two-addresses-down", harmless: true, settings: func(r *Run) map[string]string {
			return map[string]string{"cipherlane.keyservice.urls": "https://127.0.0.1:1," + r.Service.URL}
		}},
		disturbance{name: "key-rotated", harmless: true, script: keyed(next)},
		disturbance{name: "broker-paused", harmless: true, begin: pauseBroker, end: resumeBroker},
	), nil
}

func delayed(by time.Duration, script scripted.Script) scripted.Script {
	return func(call scripted.Call) scripted.Reply {
		time.Sleep(by)
		return script(call)
	}
}

func pauseBroker(r *Run) error {
	broker, err := r.Environment.Broker()
	return errors.Join(err, broker.Pause())
}

func resumeBroker(r *Run) error {
	broker, err := r.Environment.Broker()
	return errors.Join(err, broker.Resume())
}

// underLoad is one fault, with all drivers at once.
type underLoad struct {
	*Run

	disturbance

	key    dataKey
	broker *environment.Broker
	canary []byte
}

type loaded struct {
	results []driver.Outcome
	err     error
}

func (u *underLoad) run() error {
	for _, d := range u.Drivers {
		if err := u.broker.CreateTopic(u.topicOf(d), 1); err != nil {
			return err
		}
	}
	well := keyed(u.key)
	u.Service.Play(brief(well))
	all := make([]loaded, len(u.Drivers))
	var running sync.WaitGroup
	for i, d := range u.Drivers {
		running.Go(func() { all[i] = u.load(d) })
	}
	err := u.disturb(well)
	running.Wait()
	u.Service.Play(func(call scripted.Call) scripted.Reply { return u.every(call) })
	for i, d := range u.Drivers {
		u.check("faults", u.name, d, nil, func() error { return u.judge(d, all[i]) })
	}
	return err
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

func (u *underLoad) disturb(well scripted.Script) error {
	time.Sleep(loadWell)
	if u.script != nil {
		u.Service.Play(brief(u.script))
	}
	var err error
	if u.begin != nil {
		err = u.begin(u.Run)
	}
	time.Sleep(loadFault)
	if u.end != nil {
		err = errors.Join(err, u.end(u.Run))
	}
	if !u.harmless {
		u.Service.Play(brief(well))
	}
	return err
}

// brief gives every lease the times of this suite.
func brief(script scripted.Script) scripted.Script {
	return func(call scripted.Call) scripted.Reply {
		return scripted.WithLease(script(call), loadRefresh, loadExpires)
	}
}

func (u *underLoad) load(d *Driver) loaded {
	settings := kafkaSettings(u.broker, u.settingsOf(), "acks", "all", "enable.idempotence", "true")
	var out struct{ Results []driver.Outcome }
	err := d.Call(driver.Request{
		Op: driver.OpLoad, Settings: settings, Topic: u.topicOf(d), Value: raw(u.canary), Rate: loadRate,
		TimeoutMillis: int((loadWell + loadFault + loadRecovery + time.Second).Milliseconds()),
	}, &out)
	return loaded{out.Results, err}
}

func (u *underLoad) settingsOf() map[string]string {
	settings := u.Run.settings("cipherlane.keyservice.connect.timeout.ms", leakTimeout, "cipherlane.keyservice.request.timeout.ms", leakTimeout,
		"cipherlane.keys.deadline.ms", leakDeadline)
	if u.disturbance.settings != nil {
		maps.Copy(settings, u.disturbance.settings(u.Run))
	}
	return settings
}

// judge is the oracle: what was acknowledged is there, once and right, and nothing else is; the fault was felt, or not; and
// it was over soon.
func (u *underLoad) judge(d *Driver, got loaded) error {
	if got.err != nil {
		return got.err
	}
	acknowledged := map[int64]uint64{}
	refused, last := 0, time.Duration(0)
	for number, result := range got.results {
		if result.Error == nil {
			acknowledged[result.Offset] = uint64(number)
			continue
		}
		if _, broken := codeOf(result.Error); broken != nil {
			return fmt.Errorf("record %d: %w", number, broken)
		}
		refused++
		last = time.Duration(result.Millis) * time.Millisecond
	}
	switch {
	case len(acknowledged)+refused != len(got.results):
		return errors.New("two records have one offset")
	case u.harmless && refused > 0:
		return fmt.Errorf("%d of %d records were refused, the last with %w", refused, len(got.results), lastError(got.results))
	case !u.harmless && refused == 0:
		return errors.New("no record was refused: leases were used beyond their end, or the fault was not felt")
	case last > loadWell+loadFault+loadRecovery+loadSlack:
		return fmt.Errorf("still refused %s after the fault: %w", last-loadWell-loadFault, lastError(got.results))
	}
	return u.compare(d, acknowledged)
}

func lastError(results []driver.Outcome) error {
	for _, result := range slices.Backward(results) {
		if result.Error != nil {
			return result.Error
		}
	}
	return nil
}

func (u *underLoad) compare(d *Driver, acknowledged map[int64]uint64) error {
	end, err := u.broker.EndOffset(context.Background(), u.topicOf(d))
	if err != nil {
		return err
	}
	if end != int64(len(acknowledged)) {
		return fmt.Errorf("%d records acknowledged, %d on the broker", len(acknowledged), end)
	}
	records, err := consume(d, kafkaSettings(u.broker, u.Run.settings()), u.topicOf(d), len(acknowledged))
	if err != nil {
		return err
	}
	if len(records) != len(acknowledged) {
		return fmt.Errorf("%d records acknowledged, %d read", len(acknowledged), len(records))
	}
	for _, record := range records {
		want := binary.BigEndian.AppendUint64(append([]byte{}, u.canary...), acknowledged[record.Offset])
		if err := verdict("ok", want, true, record.Value, asError(record.Error)); err != nil {
			return fmt.Errorf("offset %d: %w", record.Offset, err)
		}
	}
	return nil
}
