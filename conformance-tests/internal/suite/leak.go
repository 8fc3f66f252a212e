package suite

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
)

const (
	leakRecords = 3
	// The SDK's patience with the key service in this suite.
	leakTimeout  = "700"
	leakDeadline = "900"
	leakPatience = "10000"
	hang         = 3 * time.Second
)

// fault is a trouble of the key service or of the client's settings. Under each, no value may leave in the clear and none may be
// shown.
type fault struct {
	name     string
	script   scripted.Script   // nil: the key service is well, the settings are not
	settings map[string]string // in place of those of the client
}

func (r *Run) faults(key dataKey) []fault {
	all := []fault{
		{name: "nobody-listens", settings: map[string]string{"cipherlane.keyservice.urls": "https://127.0.0.1:1"}},
		{name: "another-ca", settings: map[string]string{"cipherlane.keyservice.tls.ca": r.Stranger.CA}},
		{name: "another-certificate", settings: map[string]string{
			"cipherlane.keyservice.tls.certificate": r.Stranger.Certificate, "cipherlane.keyservice.tls.key": r.Stranger.Key,
		}},
		{name: "reset", script: always(scripted.Reply{Trouble: scripted.Reset})},
		{name: "hangs", script: always(scripted.Reply{Trouble: func(http.ResponseWriter) { time.Sleep(hang) }})},
		{name: "cut-in-the-middle", script: always(scripted.Reply{Trouble: cutAnswer})},
		{name: "redirect", script: always(scripted.Reply{Trouble: func(w http.ResponseWriter) {
			w.Header().Set("Location", "https://127.0.0.1:1/")
			w.WriteHeader(http.StatusTemporaryRedirect)
		}})},
		{name: "no-body", script: always(scripted.Reply{Status: 200, ContentType: jsonType})},
		{name: "null", script: always(scripted.Reply{Status: 200, ContentType: jsonType, Body: "null"})},
		{name: "array", script: always(scripted.Reply{Status: 200, ContentType: jsonType, Body: "[]"})},
		{name: "empty-object", script: always(scripted.JSON(map[string]any{}))},
		{name: "garbage", script: always(scripted.Reply{Status: 200, ContentType: jsonType, Body: "\x00\xff{"})},
		{name: "html", script: always(scripted.Reply{Status: 200, ContentType: "text/html", Body: "<html>welcome</html>"})},
		{name: "no-content", script: always(scripted.Reply{Trouble: func(w http.ResponseWriter) { w.WriteHeader(http.StatusNoContent) }})},
		{name: "too-long", script: always(scripted.Reply{Status: 200, ContentType: jsonType, Body: "{" + strings.Repeat(" ", 2<<20)})},
		{name: "mode-unknown", script: always(scripted.Mode("plain"))},
		{name: "mode-forbid", script: modes("forbid")},
		{name: "key-id-mismatch", script: keyed(dataKey{bytes.Repeat([]byte{1}, 32), key.kid})},
	}
	for _, refusal := range []struct {
		status int
		code   string
	}{
		{400, "request-invalid"},
		{400, "topic-invalid"},
		{401, "unauthenticated"},
		{403, "not-authorized"},
		{403, "topic-unknown"},
		{403, "topic-forbidden"},
		{403, "never-heard-of"},
		{404, "not-found"},
		{405, "not-found"},
		{413, "request-too-large"},
		{415, "request-invalid"},
		{429, "key-service-unavailable"},
		{500, "internal"},
		{502, "bad-gateway"},
		{503, "audit-unavailable"},
		{503, "key-service-unavailable"},
	} {
		all = append(all, fault{name: fmt.Sprintf("%d-%s", refusal.status, refusal.code), script: always(scripted.Problem(refusal.status, refusal.code))})
	}
	for _, size := range []int{0, 16, 31, 33} {
		all = append(all, fault{name: fmt.Sprintf("key-of-%d-bytes", size), script: keyed(dataKey{make([]byte, size), key.kid})})
	}
	return all
}

func always(reply scripted.Reply) scripted.Script {
	return func(scripted.Call) scripted.Reply { return reply }
}

func modes(mode string) scripted.Script {
	return func(call scripted.Call) scripted.Reply {
		if strings.HasSuffix(call.Path, "/decryption-keys") {
			return scripted.Problem(403, "topic-forbidden")
		}
		return scripted.Mode(mode)
	}
}

// keyed is a key service that is well, but for what its one key is.
func keyed(key dataKey) scripted.Script {
	read := holder(leakScope, key)
	return func(call scripted.Call) scripted.Reply {
		if strings.HasSuffix(call.Path, "/decryption-keys") {
			return read(call)
		}
		return scripted.EncryptionKey(leakScope, key.kid, key.key)
	}
}

const (
	leakScope = "leak"
	jsonType  = "application/json"
)

func cutAnswer(w http.ResponseWriter) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "200")
	_, _ = w.Write([]byte(`{"mode": "clear", `))
	panic(http.ErrAbortHandler)
}

// leakTest is the suite on one driver.
type leakTest struct {
	*Run

	d        *Driver
	broker   *environment.Broker
	topic    string
	canaries [][]byte
}

func runLeak(r *Run) error {
	broker, err := r.Environment.Broker()
	if err != nil {
		return err
	}
	key, err := newDataKey(r.random("leak"))
	if err != nil {
		return err
	}
	for _, d := range r.Drivers {
		r.Progress("leak: %s", d.Label)
		t := &leakTest{Run: r, d: d, broker: broker, topic: fmt.Sprintf("leak-%s-%d", d.Label, r.Seed%1_000_000)}
		if err := t.run(key); err != nil {
			return err
		}
	}
	return nil
}

func (t *leakTest) run(key dataKey) error {
	if err := t.broker.CreateTopic(t.topic, 1); err != nil {
		return err
	}
	random := t.random("leak canaries " + t.d.Label)
	for range leakRecords {
		t.canaries = append(t.canaries, randomBytes(random, 16))
	}
	// Where all is well, a busy machine must not look like trouble.
	well := fault{name: "none", script: keyed(key), settings: map[string]string{
		"cipherlane.keyservice.connect.timeout.ms": leakPatience, "cipherlane.keyservice.request.timeout.ms": leakPatience,
		"cipherlane.keys.deadline.ms": leakPatience,
	}}
	t.check("leak", "well-writes", t.d, nil, func() error { return t.wellWrites(well) })
	for _, f := range t.faults(key) {
		if f.script == nil {
			f.script = keyed(key)
		}
		t.check("leak", "writing/"+f.name, t.d, nil, func() error { return t.writing(f) })
		t.check("leak", "reading/"+f.name, t.d, nil, func() error { return t.reading(f) })
	}
	t.check("leak", "well-reads", t.d, nil, func() error { return t.wellReads(well) })
	t.check("leak", "broker-segments", t.d, nil, func() error { return t.searchFolder(t.broker.LogDir) })
	t.check("leak", "client-log", t.d, nil, func() error { return t.searchFile(t.d.Log) })
	t.check("leak", "broker-memory", t.d, nil, func() error { return t.searchMemory(t.broker.PIDs()) })
	return nil
}

func (t *leakTest) kafka(f fault) map[string]string {
	settings := kafkaSettings(t.broker, t.settings(
		"cipherlane.keyservice.connect.timeout.ms", leakTimeout, "cipherlane.keyservice.request.timeout.ms", leakTimeout,
		"cipherlane.keys.deadline.ms", leakDeadline))
	maps.Copy(settings, f.settings)
	return settings
}

func (t *leakTest) produce(f fault) ([]driver.Outcome, error) {
	t.Service.Play(f.script)
	request := driver.Request{Op: driver.OpProduce, Settings: t.kafka(f), Topic: t.topic}
	for _, canary := range t.canaries {
		request.Records = append(request.Records, driver.Record{Value: bytes.Repeat(canary, 3)})
	}
	var out struct{ Results []driver.Outcome }
	err := t.d.Call(request, &out)
	return out.Results, err
}

func (t *leakTest) wellWrites(f fault) error {
	results, err := t.produce(f)
	if err != nil {
		return err
	}
	for _, result := range results {
		if result.Error != nil {
			return result.Error
		}
	}
	return nil
}

func (t *leakTest) writing(f fault) error {
	results, err := t.produce(f)
	if code, broken := codeOf(err); broken != nil || code != "ok" {
		return broken // refused as a whole: nothing was sent
	}
	if len(results) != leakRecords {
		return fmt.Errorf("%d results", len(results))
	}
	for i, result := range results {
		if result.Error == nil {
			return fmt.Errorf("record %d was sent, at offset %d", i, result.Offset)
		}
		if _, broken := codeOf(result.Error); broken != nil {
			return broken
		}
	}
	return nil
}

func (t *leakTest) reading(f fault) error {
	t.Service.Play(f.script)
	records, err := consume(t.d, t.kafka(f), t.topic, leakRecords)
	if code, broken := codeOf(err); broken != nil || code != "ok" {
		return broken
	}
	for _, record := range records {
		if record.Error == nil {
			return fmt.Errorf("offset %d was shown: %s", record.Offset, short(record.Value))
		}
	}
	if len(records) != leakRecords {
		return fmt.Errorf("%d records, not %d: one was passed over", len(records), leakRecords)
	}
	return nil
}

func (t *leakTest) wellReads(f fault) error {
	t.Service.Play(f.script)
	records, err := consume(t.d, t.kafka(f), t.topic, leakRecords)
	if err != nil {
		return err
	}
	if len(records) != leakRecords {
		return fmt.Errorf("%d records on the broker, not the %d that were sent when all was well", len(records), leakRecords)
	}
	for i, record := range records {
		if record.Error != nil || !slices.Equal(record.Value, bytes.Repeat(t.canaries[i], 3)) {
			return fmt.Errorf("record %d is not what was written; its error: %w", i, errors.Join(asError(record.Error)))
		}
	}
	return nil
}

// searchMemory looks into what a core file of each process would hold. Only of processes that never have a value in the clear:
// a client must.
func (t *leakTest) searchMemory(pids []int) error {
	for _, pid := range pids {
		found, err := environment.SearchMemory(pid, t.canaries)
		if err != nil {
			return err
		}
		if found >= 0 {
			return fmt.Errorf("canary %d stands in the memory of process %d", found, pid)
		}
	}
	return nil
}

// searchFolder fails if there was nothing to search, or a canary.
func (t *leakTest) searchFolder(folder string) error {
	files := 0
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		if strings.Contains(path, t.topic) && strings.HasSuffix(path, ".log") {
			files++
		}
		return t.searchFile(path)
	})
	if err == nil && files == 0 {
		err = errors.New("there is no segment of the topic")
	}
	return err
}

func (t *leakTest) searchFile(path string) error {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // the broker removed it
	}
	if err != nil {
		return err
	}
	for i, canary := range t.canaries {
		for _, form := range [][]byte{canary, []byte(hex.EncodeToString(canary))} {
			if at := bytes.Index(data, form); at >= 0 {
				return fmt.Errorf("canary %d stands in %s at %d", i, filepath.Base(path), at)
			}
		}
	}
	return nil
}
