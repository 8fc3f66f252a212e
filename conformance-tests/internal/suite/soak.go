package suite

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/report"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/soak"
)

const (
	soakKeyLife  = 2 * time.Second // of a data key
	soakSample   = 500 * time.Millisecond
	soakTell     = 15 * time.Second
	soakDrain    = 10 * time.Second // for readers, after the last record
	soakRate     = 3000             // records a second, of all writers together: 10.8 million an hour
	soakWarmUp   = 4                // the first of so many parts of the run, 10 minutes at most
	soakGrowth   = 1.0              // MiB an hour
	soakJudged   = 30 * time.Minute // a shorter run measures how caches and heaps fill, and tells that without a verdict
	soakHandles  = 8                // descriptors that may come and go
	soakLate     = 0.001            // of all records: a busy machine may be late with a key, which an error says that will pass
	soakCache    = "64"             // keys
	soakDeadline = "60000"          // ms
)

// soaking is one driver, twice: a process that writes and one that reads.
type soaking struct {
	writer, reader *Driver
	topic          string
	wrote, read    driver.Numbers
	writing        error
	reading        error
}

// soakTest writes and reads for a long time while every data key lives two seconds, and watches all processes.
type soakTest struct {
	*Run

	broker    *environment.Broker
	service   *environment.KeyService
	pairs     []*soaking
	processes []*soak.Process
	value     []byte
	begun     time.Time
}

func runSoak(r *Run) error {
	s := &soakTest{Run: r, value: randomBytes(r.random("soak"), 16)}
	defer s.close()
	if err := s.prepare(); err != nil {
		return err
	}
	writing, reading := filepath.Join(r.Environment.Paths.Folder, "writing"), filepath.Join(r.Environment.Paths.Folder, "reading")
	if err := errors.Join(os.WriteFile(writing, nil, 0o600), os.WriteFile(reading, nil, 0o600)); err != nil {
		return err
	}
	var writers, readers sync.WaitGroup
	for _, pair := range s.pairs {
		writers.Go(func() { pair.writeAll(s, writing) })
		readers.Go(func() { pair.readAll(s, reading) })
	}
	err := s.watch()
	err = errors.Join(err, os.Remove(writing))
	writers.Wait()
	time.Sleep(soakDrain)
	err = errors.Join(err, os.Remove(reading))
	readers.Wait()
	if err != nil {
		return err
	}
	return s.judge()
}

// prepare starts everything anew that is watched, but for the broker and the key service.
func (s *soakTest) prepare() (err error) {
	if s.broker, err = s.Environment.Broker(); err != nil {
		return err
	}
	if s.service, err = s.Environment.KeyService(); err != nil {
		return err
	}
	s.processes = append(s.processes, soak.Watch("key service", s.service.PID(), true))
	for i, pid := range s.broker.PIDs() {
		s.processes = append(s.processes, soak.Watch(fmt.Sprint("broker ", i+1), pid, false))
	}
	for _, d := range s.Drivers {
		pair := &soaking{writer: d, topic: fmt.Sprintf("soak-%s-%d", d.Label, s.Seed%1_000_000)}
		if pair.reader, err = d.Another(); err != nil {
			return err
		}
		s.pairs = append(s.pairs, pair)
		s.processes = append(s.processes,
			soak.Watch(d.Label+" writes", pair.writer.PID(), true), soak.Watch(d.Label+" reads", pair.reader.PID(), true))
		if err := s.broker.CreateTopic(pair.topic, 1); err != nil {
			return err
		}
	}
	return nil
}

func (s *soakTest) close() {
	for _, pair := range s.pairs {
		if pair.reader != nil {
			pair.reader.Close()
		}
	}
}

// settings has a cache of keys that is full when the warm-up is over, so that what grows is no cache; and a machine that is busy with
// something else is late with a key, which is no fault.
func (s *soakTest) settings(d *Driver) map[string]string {
	return kafkaSettings(s.broker, s.service.Settings(Principal(d.Label)), "acks", "all", "enable.idempotence", "true",
		"cipherlane.keys.cache.max", soakCache, "cipherlane.keys.deadline.ms", soakDeadline)
}

func (p *soaking) writeAll(s *soakTest, file string) {
	request := driver.Request{Op: driver.OpSoakWrite, Settings: s.settings(p.writer), Topic: p.topic, Value: raw(s.value), Rate: soakRate / len(s.pairs), While: file}
	if err := p.writer.CallWithin(request, &p.wrote, s.Soak+time.Hour); err != nil {
		p.writing = fmt.Errorf("writing: %w", err)
	}
}

func (p *soaking) readAll(s *soakTest, file string) {
	settings := s.settings(p.reader)
	delete(settings, "enable.idempotence")
	request := driver.Request{Op: driver.OpSoakRead, Settings: settings, Topic: p.topic, Value: raw(s.value), While: file}
	if err := p.reader.CallWithin(request, &p.read, s.Soak+time.Hour); err != nil {
		p.reading = fmt.Errorf("reading: %w", err)
	}
}

// watch rotates keys and looks at the processes until the time is over.
func (s *soakTest) watch() error {
	s.begun = time.Now()
	look, rotate, tell := time.NewTicker(soakSample), time.NewTicker(soakKeyLife), time.NewTicker(soakTell)
	defer look.Stop()
	defer rotate.Stop()
	defer tell.Stop()
	over := time.After(s.Soak)
	for {
		select {
		case <-over:
			return nil
		case <-look.C:
			for _, process := range s.processes {
				if err := process.Look(time.Since(s.begun)); err != nil {
					return err
				}
			}
		case <-rotate.C:
			for _, pair := range s.pairs {
				if err := s.service.Operate(http.MethodPost, "/v1/scopes/"+pair.topic+"/rotate", nil, nil); err != nil {
					return err
				}
			}
		case <-tell.C:
			s.Progress("soak: %s of %s", time.Since(s.begun).Round(time.Second), s.Soak)
		}
	}
}

func (s *soakTest) judge() error {
	warmUp := min(s.Soak/soakWarmUp, 10*time.Minute)
	total := int64(0)
	for _, pair := range s.pairs {
		total += pair.wrote.Acknowledged
		s.Progress("soak: %s: %d acknowledged, %d refused %v, %d failed; %d read, %d wrong, %d unreadable %v", pair.writer.Label,
			pair.wrote.Acknowledged, pair.wrote.Refused, pair.wrote.Reasons, pair.wrote.Failed,
			pair.read.Read, pair.read.Wrong, pair.read.Unreadable, pair.read.Reasons)
		s.check("soak", "records", pair.writer, nil, pair.judge)
		s.check("soak", "client-log", pair.writer, nil, func() error {
			return (&leakTest{canaries: [][]byte{s.value}}).searchFile(pair.writer.Log)
		})
	}
	s.Results.Facts.Environment["soak"] = fmt.Sprintf("%s, %d records, a data key for %s", s.Soak, total, soakKeyLife)
	for _, process := range s.processes {
		s.judgeGrowth(process, warmUp)
	}
	return s.write()
}

// judge wants every acknowledged record read as it was written. A machine that is busy with something else may be late for a lease of two
// seconds: a few records may be refused, or unreadable with an error that says that it will pass [CL-ERR-004].
func (p *soaking) judge() error {
	wrote, read := p.wrote, p.read
	switch {
	case p.writing != nil || p.reading != nil:
		return errors.Join(p.writing, p.reading)
	case wrote.Acknowledged == 0 || wrote.Failed > 0:
		return fmt.Errorf("%d records acknowledged, %d failed", wrote.Acknowledged, wrote.Failed)
	case read.Wrong > 0 || read.Read+read.Unreadable != wrote.Acknowledged:
		return fmt.Errorf("%d records acknowledged; %d read, %d wrong, %d unreadable", wrote.Acknowledged, read.Read, read.Wrong, read.Unreadable)
	case wrote.Refused > late(wrote.Reasons) || float64(wrote.Refused) > soakLate*float64(wrote.Acknowledged):
		return fmt.Errorf("%d records acknowledged, refused: %v", wrote.Acknowledged, wrote.Reasons)
	case read.Unreadable > late(read.Reasons) || float64(read.Unreadable) > soakLate*float64(read.Read):
		return fmt.Errorf("%d records read, unreadable: %v", read.Read, read.Reasons)
	}
	return nil
}

func late(reasons map[string]int64) int64 {
	return reasons["lease-expired"] + reasons["key-service-unavailable"]
}

// judgeGrowth tells the growth of each process, and judges that of ours.
func (s *soakTest) judgeGrowth(process *soak.Process, warmUp time.Duration) {
	samples := process.After(warmUp)
	slope, enough := soak.Fit(samples)
	if !enough {
		return
	}
	first, last := samples[0], samples[len(samples)-1]
	proof := "not proven: the run is too short, or memory too unsteady"
	if slope.Proven(soakGrowth) {
		proof = "proven"
	}
	s.Progress("soak: %-18s %+8.2f ± %.2f MiB/h (95 %%), now %.0f MiB, %d descriptors; under %.0f MiB/h: %s", process.Name, slope.PerHour,
		slope.Confidence, last.RSS, last.Descriptors, soakGrowth, proof)
	s.Results.Facts.Environment["soak: "+process.Name] = fmt.Sprintf("%+.2f ± %.2f MiB/h, %s", slope.PerHour, slope.Confidence, proof)
	if !process.Ours {
		return
	}
	how := fmt.Sprintf("grows by %.2f ± %.2f MiB/h (95 %%)", slope.PerHour, slope.Confidence)
	if s.Soak < soakJudged {
		s.Results.Add(report.Result{Suite: "soak", Case: "memory", Driver: process.Name, Status: report.Skipped, Message: "too short a run to judge: " + how})
	} else {
		s.verdictOn("memory", process, slope.Grows(soakGrowth), how)
	}
	s.verdictOn("descriptors", process, last.Descriptors > first.Descriptors+soakHandles,
		fmt.Sprintf("%d descriptors after the warm-up, %d at the end", first.Descriptors, last.Descriptors))
}

func (s *soakTest) verdictOn(what string, process *soak.Process, bad bool, how string) {
	s.check("soak", what, &Driver{Process: s.pairs[0].writer.Process, Label: process.Name}, nil, func() error {
		if bad {
			return errors.New(how)
		}
		return nil
	})
}

// write leaves the samples and their picture beside the other results.
func (s *soakTest) write() error {
	if err := os.MkdirAll(s.ResultsFolder, 0o755); err != nil {
		return err
	}
	data, err := json.Marshal(s.processes)
	if err != nil {
		return err
	}
	picture, err := os.Create(filepath.Join(s.ResultsFolder, "soak.svg"))
	if err != nil {
		return err
	}
	return errors.Join(os.WriteFile(filepath.Join(s.ResultsFolder, "soak.json"), data, 0o644), soak.Plot(picture, s.processes), picture.Close())
}
