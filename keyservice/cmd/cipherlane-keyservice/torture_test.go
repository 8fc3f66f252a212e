// Killing the service at random points under load, again and again. `make torture` does it 200 times.

package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	tortureRounds = 12 // in `make test`
	tortureScopes = 6
	// killWithin is from the first answers to the kill; every startKills-th round the service dies on its way up instead.
	killWithin = 400 * time.Millisecond
	startKills = 4
)

// torture is what must survive.
type torture struct {
	dir    string
	source *rand.Rand

	mu       sync.Mutex
	keys     map[string]map[string]string // scope to kid to key, of all that was handed out
	releases map[string]int               // by action and kid: answers that a client had
	recorded map[string]int               // the same, of the audit log
	given    int                          // answers with a key
	read     int64                        // how far the audit log was read
}

// [CL-API-013] [CL-API-017] After each death no key that was handed out is missing or another one, and every answer stands in the audit log.
func TestTorture(t *testing.T) {
	seed, rounds := number(t, "CIPHERLANE_TORTURE_SEED", rand.Uint64()), number(t, "CIPHERLANE_TORTURE_ROUNDS", tortureRounds)
	t.Logf("CIPHERLANE_TORTURE_SEED=%d", seed)
	x := &torture{
		dir: newFolder(t, testPolicy), source: rand.New(rand.NewPCG(seed, 0)),
		keys: map[string]map[string]string{}, releases: map[string]int{}, recorded: map[string]int{},
	}
	for round := range rounds {
		if round%startKills == startKills-1 {
			x.killWhileStarting(t)
		}
		k := startIn(t, x.dir)
		x.verify(t, k)
		x.killUnderLoad(t, k)
		if t.Failed() {
			t.Fatalf("in round %d", round+1)
		}
	}
	x.verify(t, startIn(t, x.dir))
	t.Logf("killed %d times; %d keys and %d releases survived", rounds+rounds/startKills, x.size(), x.given)
	if x.size() < int(rounds) {
		t.Error("hardly any load")
	}
}

func number(t *testing.T, variable string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return otherwise
	}
	value, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return value
}

func (x *torture) size() int {
	size := 0
	for _, keys := range x.keys {
		size += len(keys)
	}
	return size
}

func (x *torture) answers() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.given
}

func (x *torture) killWhileStarting(t *testing.T) {
	t.Helper()
	cmd := program(t, "dev", "--dir", x.dir, "--json", "--until-stdin-closes")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Duration(x.source.Int64N(int64(killWithin / 2))))
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	_ = stdin.Close()
}

func (x *torture) killUnderLoad(t *testing.T, k *keyService) {
	t.Helper()
	var wait sync.WaitGroup
	for _, one := range []struct {
		principal string
		work      func(*http.Client, *rand.Rand) error
	}{{"producer", x.encrypt(k)}, {"producer", x.encrypt(k)}, {"producer", x.encrypt(k)}, {"operator", x.rotate(k)}, {"consumer", x.decryptOne(k)}} {
		source := rand.New(rand.NewPCG(x.source.Uint64(), 0))
		c := client(t, k.tlsConfig(t, one.principal))
		wait.Go(func() {
			for {
				if err := one.work(c, source); errors.Is(err, errWrong) {
					t.Error(err)
					return
				} else if err != nil {
					return // killed
				}
			}
		})
	}
	before := x.answers()
	waitFor(t, "the first answers", func() bool { return x.answers() > before || t.Failed() })
	time.Sleep(time.Duration(x.source.Int64N(int64(killWithin))))
	k.signal(t, syscall.SIGKILL)
	<-k.done
	wait.Wait()
}

// errWrong is in an error that is the service's fault; every other means that it was killed.
var errWrong = errors.New("wrong answer")

// exchange makes a call. An answer that came back whole is an answer, whatever happened since.
func (k *keyService) exchange(c *http.Client, path, body string, into any) error {
	request, err := http.NewRequest(http.MethodPost, k.URL+path, strings.NewReader(body))
	if err != nil {
		return err
	}
	if body != "" {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode == http.StatusServiceUnavailable || response.StatusCode == http.StatusTooManyRequests {
		return nil // a disk that was slow for a second, or more than a principal may ask: refused, and nothing handed out
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s %s", errWrong, response.Status, text)
	}
	return json.Unmarshal(text, into)
}

type givenKey struct{ Scope, Kid, Key string }

// handedOut notes a key that a client has, and refuses another one under the same kid.
func (x *torture) handedOut(action string, k givenKey) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if k.Kid == "" {
		return nil
	}
	if x.keys[k.Scope] == nil {
		x.keys[k.Scope] = map[string]string{}
	}
	if known := x.keys[k.Scope][k.Kid]; known != "" && known != k.Key {
		return fmt.Errorf("%w: %s is another key than before", errWrong, k.Kid)
	}
	x.keys[k.Scope][k.Kid] = k.Key
	x.releases[action+" "+k.Kid]++
	x.given++
	return nil
}

func (x *torture) encrypt(k *keyService) func(*http.Client, *rand.Rand) error {
	return func(c *http.Client, source *rand.Rand) error {
		var given givenKey
		if err := k.exchange(c, "/v1/encryption-key", fmt.Sprintf(`{"topic":"t-%d"}`, source.IntN(tortureScopes)), &given); err != nil {
			return err
		}
		return x.handedOut("encrypt", given)
	}
}

func (*torture) rotate(k *keyService) func(*http.Client, *rand.Rand) error {
	return func(c *http.Client, source *rand.Rand) error {
		return k.exchange(c, fmt.Sprintf("/v1/scopes/t-%d/rotate", source.IntN(tortureScopes)), "", &struct{}{})
	}
}

// decryptOne asks for one of the keys that were handed out.
func (x *torture) decryptOne(k *keyService) func(*http.Client, *rand.Rand) error {
	return func(c *http.Client, source *rand.Rand) error {
		scope := fmt.Sprint("t-", source.IntN(tortureScopes))
		x.mu.Lock()
		kid := ""
		for kid = range x.keys[scope] {
			break
		}
		x.mu.Unlock()
		if kid == "" {
			return nil
		}
		var answer struct{ Keys []givenKey }
		if err := k.exchange(c, "/v1/decryption-keys", `{"topic":"`+scope+`","kids":["`+kid+`"]}`, &answer); err != nil || len(answer.Keys) == 0 {
			return err
		}
		if answer.Keys[0].Key == "" {
			return fmt.Errorf("%w: %s is not there any more", errWrong, kid)
		}
		return x.handedOut("decrypt", answer.Keys[0])
	}
}

// verify asks the service that has just started for every key that was ever handed out, and reads what its audit log has more.
func (x *torture) verify(t *testing.T, k *keyService) {
	t.Helper()
	for scope, keys := range x.keys {
		kids := make([]string, 0, len(keys))
		for kid := range keys {
			kids = append(kids, kid)
		}
		for part := range slices.Chunk(kids, 1000) {
			_, entries := k.decrypt(t, scope, part...)
			for _, kid := range part {
				x.releases["decrypt "+kid]++
				if entries[kid]["key"] != keys[kid] {
					t.Fatalf("key %s of %s, which was handed out, is gone: %v", kid, scope, entries[kid]["error"])
				}
			}
		}
	}
	x.readAudit(t, k.Audit)
	checkChain(t, k.Audit)
	for release, answers := range x.releases {
		if lines := x.recorded[release]; lines < answers {
			t.Fatalf("%s: %d answers, and %d in the audit log", release, answers, lines)
		}
	}
}

// readAudit counts the releases in the lines that were added since it was last called.
func (x *torture) readAudit(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	if _, err := f.Seek(x.read, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(f)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) && len(line) == 0 {
			return
		}
		var r struct {
			Action, Outcome string
			Kids            []string
		}
		if err := errors.Join(err, json.Unmarshal(line, &r)); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		x.read += int64(len(line))
		for _, kid := range r.Kids {
			if r.Outcome == "allowed" {
				x.recorded[r.Action+" "+kid]++
			}
		}
	}
}
