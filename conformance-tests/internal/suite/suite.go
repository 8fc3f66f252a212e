// Package suite holds the tests of the conformance runner: one file for a suite. This one has what they share.
package suite

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path"
	"slices"
	"strconv"
	"time"

	"github.com/cipherlane/cipherlane/conformance-tests/internal/driver"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/environment"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/report"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/scripted"
	"github.com/cipherlane/cipherlane/conformance-tests/internal/vectors"
)

// Driver is a running driver and how to start it anew.
type Driver struct {
	*driver.Process

	Label string
	Log   string // path of its standard error

	// Clock can be set; nil where the run has no library for that.
	Clock *driver.Clock

	// Another starts another one.
	Another func() (*Driver, error)
}

// Files are the paths of a client's CA, certificate and key.
type Files struct{ CA, Certificate, Key string }

// Codes of errors.md that several suites expect.
const (
	plaintextRejected    = "plaintext-rejected"
	authenticationFailed = "authentication-failed"
	envelopeTooShort     = "envelope-too-short"
	unsupportedVersion   = "unsupported-version"
)

// Run is what suites work with. Used by one goroutine.
type Run struct {
	Drivers     []*Driver
	Vectors     []vectors.Vector
	Service     *scripted.Service
	Environment *environment.Environment
	Client      map[string]string // cipherlane.… settings of the scripted service's client
	Stranger    Files             // of another CA, which the scripted service does not know
	Seed        uint64
	Records     int
	FuzzTime    time.Duration
	Soak        time.Duration
	Case        string // glob over case names, or empty
	Results     *report.Results

	ResultsFolder string

	Progress func(format string, args ...any)
}

// Suite is a named test over the drivers that know the operations which all of its cases need.
type Suite struct {
	Name  string
	About string

	// OnDemand suites need minutes and run only when they are named.
	OnDemand bool

	needs []string
	run   func(*Run) error
}

// Run runs the suite on the drivers that can; that the others cannot is a result too.
func (s Suite) Run(r *Run) error {
	able := *r
	able.Drivers = nil
	for _, d := range r.Drivers {
		if d.Knows(s.needs...) {
			able.Drivers = append(able.Drivers, d)
		} else {
			r.Results.Add(report.Result{Suite: s.Name, Case: "all", Driver: d.Label, Status: report.Skipped, Message: fmt.Sprintf("the driver has not all of %v", s.needs)})
		}
	}
	return s.run(&able)
}

var (
	onDecryptAll = []string{driver.OpOpen, driver.OpDecryptAll}
	onPrimitives = []string{driver.OpPrimitive}
	onLifecycle  = []string{driver.OpOpen, driver.OpEncrypt, driver.OpDecrypt, driver.OpRotate}
	onLoad       = []string{driver.OpLoad, driver.OpConsume}
	onSoak       = []string{driver.OpSoakWrite, driver.OpSoakRead}
	onKafka      = []string{driver.OpProduce, driver.OpConsume}
)

// All is every suite, in the order in which they run.
var All = []Suite{
	{Name: "vectors", About: "every vector of spec/vectors through every driver", needs: []string{driver.OpOpen}, run: runVectors},
	{Name: "primitives", About: "Wycheproof for AES-GCM, HKDF and CMAC, and the accumulated vectors of XAES-256-GCM", needs: onPrimitives, run: runPrimitives},
	{Name: "tampering", About: "every bit flipped, every cut, moved, doubled, and ciphertexts that are valid under two keys", needs: onDecryptAll, run: runTampering},
	{Name: "fuzz", About: "one mutated input, all drivers, the same verdict", needs: onDecryptAll, run: runFuzz},
	{Name: "matrix", About: "every producer's records through every consumer, on a real broker and key service", needs: onKafka, run: runMatrix},
	{Name: "actions", About: "records that are never readable among good ones: put aside, left out, marked or met, as a failure action says", needs: onKafka, run: runActions},
	{Name: "lifecycle", About: "rotation, destroying, revoking and the end of a lease, with a real key service", needs: onLifecycle, run: runLifecycle},
	{Name: "leak", About: "canaries through every fault of the key service: none on the broker's disk, none in a log", needs: onKafka, run: runLeak},
	{Name: "faults", About: "the key service and the broker in trouble while producers run: nothing acknowledged is lost, nothing else is there", OnDemand: true, needs: onLoad, run: runFaults},
	{Name: "soak", About: "writing and reading for long while data keys live two seconds: nothing lost or wrong, no memory or descriptor lost", OnDemand: true, needs: onSoak, run: runSoak},
}

// random gives a generator of its own for each name, so that a suite run alone draws what it draws among others.
func (r *Run) random(name string) *rand.Rand {
	var h uint64 = 14695981039346656037 // FNV-1a
	for _, c := range []byte(name) {
		h = (h ^ uint64(c)) * 1099511628211
	}
	return rand.New(rand.NewPCG(r.Seed, h))
}

func randomBytes(random *rand.Rand, size int) []byte {
	out := make([]byte, size)
	for i := range out {
		out[i] = byte(random.Uint32())
	}
	return out
}

// wanted says whether a case was asked for.
func (r *Run) wanted(name string) bool {
	if r.Case == "" {
		return true
	}
	match, err := path.Match(r.Case, name)
	return err == nil && match
}

// check runs a case on a driver, unless its name is not asked for or the driver does not know what it needs.
func (r *Run) check(suite, name string, d *Driver, needs []string, test func() error) {
	if !r.wanted(name) {
		return
	}
	begun := time.Now()
	result := report.Result{Suite: suite, Case: name, Driver: d.Label, Status: report.Passed}
	if !d.Knows(needs...) {
		result.Status, result.Message = report.Skipped, fmt.Sprintf("the driver has no %v", needs)
	} else if err := test(); err != nil {
		result.Status, result.Message = statusOf(err), err.Error()
	}
	result.Duration = time.Since(begun)
	r.Results.Add(result)
}

// statusOf tells what a driver does not reach from what fails.
func statusOf(err error) string {
	var known *driver.Error
	if errors.As(err, &known) && known.Code == driver.CodeUnsupportedOperation {
		return report.Unreached
	}
	return report.Failed
}

// settings are those of the scripted service's client and more.
func (r *Run) settings(more ...string) map[string]string {
	settings := maps.Clone(r.Client)
	for i := 0; i+1 < len(more); i += 2 {
		settings[more[i]] = more[i+1]
	}
	return settings
}

func (r *Run) open(d *Driver, more ...string) error { return d.openWith(r.settings(more...)) }

func (d *Driver) openWith(settings map[string]string) error {
	return d.Call(driver.Request{Op: driver.OpOpen, Settings: settings}, nil)
}

func encrypt(d *Driver, topic string, value []byte) ([]byte, error) {
	var out driver.Outcome
	err := d.Call(driver.Request{Op: driver.OpEncrypt, Topic: topic, Value: raw(value)}, &out)
	return out.Value, err
}

func decrypt(d *Driver, topic string, value []byte, key *driver.RecordKey) ([]byte, error) {
	request := driver.Request{Op: driver.OpDecrypt, Topic: topic, Value: raw(value)}
	if key != nil {
		request.RecordKey = raw(key.Bytes)
	}
	var out driver.Outcome
	err := d.Call(request, &out)
	return out.Value, err
}

func decryptAll(d *Driver, topic string, values [][]byte) ([]driver.Outcome, error) {
	request := driver.Request{Op: driver.OpDecryptAll, Topic: topic}
	for _, value := range values {
		request.Values = append(request.Values, value)
	}
	var out struct {
		Results []driver.Outcome `json:"results"`
	}
	if err := d.Call(request, &out); err != nil {
		return nil, err
	}
	if len(out.Results) != len(values) {
		return nil, fmt.Errorf("%d results for %d values", len(out.Results), len(values))
	}
	return out.Results, nil
}

func raw(value []byte) json.RawMessage {
	encoded, err := driver.Bytes(value).MarshalJSON()
	if err != nil {
		panic(err) // hexadecimal digits
	}
	return encoded
}

// codeOf is the code of an SDK's error, "ok" for none; other errors are returned as they are.
func codeOf(err error) (string, error) {
	var known *driver.Error
	switch {
	case err == nil:
		return "ok", nil
	case errors.As(err, &known) && known.Code != driver.CodeDriver && known.Code != driver.CodeUnsupportedOperation:
		return known.Code, nil
	}
	return "", err
}

// verdict compares what happened with what must.
func verdict(wantCode string, want []byte, compare bool, got []byte, err error) error {
	code, broken := codeOf(err)
	switch {
	case broken != nil:
		return broken
	case code != wantCode:
		return fmt.Errorf("expected %s, got %s", wantCode, describe(code, got, err))
	case code == "ok" && compare && (!slices.Equal(got, want) || (got == nil) != (want == nil)):
		return fmt.Errorf("expected %s, got %s", short(want), short(got))
	}
	return nil
}

func describe(code string, got []byte, err error) string {
	if err != nil {
		return err.Error()
	}
	return code + " " + short(got)
}

// short shows bytes on one line.
func short(value []byte) string {
	const most = 96
	if value == nil {
		return "null"
	}
	if len(value) > most {
		return fmt.Sprintf("%x… (%d bytes)", value[:most], len(value))
	}
	return strconv.Quote(hex.EncodeToString(value))
}
