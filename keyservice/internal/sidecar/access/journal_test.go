package access

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// noTopics knows no topic's id.
type noTopics struct{}

func (noTopics) Name(topicID) (string, bool) { return "", false }
func (noTopics) Resolve(context.Context, []topicID) (map[topicID]string, error) {
	return nil, errors.New("no cluster")
}

// guard is a handler with a real audit log.
func guard(t *testing.T, c *court) (h *Handler, client *flow.Conn, lines func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	log, err := audit.Open(audit.Options{Name: "test", File: path}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	quiet := slog.New(slog.DiscardHandler)
	h = New(NewLeases(c, quiet), NewJournal(log, "host", NewMetrics(prometheus.NewRegistry()), quiet), nil)
	client = &flow.Conn{ID: 7, Client: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 5}, Local: &net.TCPAddr{}, Principal: "p", Topics: noTopics{}}
	if err := h.Open(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	return h, client, func() string {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

func produceTo(t *testing.T, h *Handler, client *flow.Conn, topic string) *flow.Exchange {
	t.Helper()
	q := kmsg.NewPtrProduceRequest()
	q.SetVersion(9)
	one := kmsg.NewProduceRequestTopic()
	one.Topic = topic
	q.Topics = append(q.Topics, one)
	x := &flow.Exchange{Conn: client, Key: q.Key(), Version: 9, Request: q}
	if err := h.Request(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	return x
}

// [CL-AUD-009] The first refusal is recorded, further ones are counted in a line that follows.
func TestRefusalsAreCounted(t *testing.T) {
	h, client, lines := guard(t, &court{give: no})
	for range 5 {
		if x := produceTo(t, h, client, "claims"); !x.Answered() {
			t.Fatal("passed")
		}
	}
	const refusal = `"outcome":"refused","code":"not-authorized"`
	if got := strings.Count(lines(), refusal); got != 1 {
		t.Errorf("%d lines in\n%s", got, lines())
	}
	h.journal.Flush(t.Context(), true)
	if text := lines(); strings.Count(text, refusal) != 2 || !strings.Contains(text, refusal+`,"count":4,"right":"write"`) {
		t.Error(text)
	}
	if r := h.journal.Report(); len(r.Denials) != 1 || r.Denials[0].Count != 5 || r.Check() != nil {
		t.Errorf("%+v", r)
	}
}

// [CL-AUD-008] What is granted and used first is recorded before it passes, once; the end says what went through.
func TestGrantsAndUsesAreRecorded(t *testing.T) {
	h, client, lines := guard(t, &court{give: yes})
	for range 3 {
		if x := produceTo(t, h, client, "claims"); x.Answered() {
			t.Fatal("refused")
		}
	}
	text := lines()
	for action, want := range map[string]int{"connection": 1, "access": 1, "access-use": 1, "access-end": 0} {
		if got := strings.Count(text, `"action":"`+action+`"`); got != want {
			t.Errorf("%d lines of %s", got, action)
		}
	}
	h.Closed(client)
	if text := lines(); !strings.Contains(text, `"action":"access-end","topic":"claims"`) || !strings.Contains(text, `"count":3`) || !strings.Contains(text, `"action":"connection-end"`) {
		t.Error(text)
	}
}

// [CL-SDC-021] A connection ends with the last lease of the rights that it has used, and not for a right that it never had.
func TestConnectionsEndWithTheirLeases(t *testing.T) {
	for name, after := range map[string]struct {
		give Decision
		err  error
	}{"refused": {give: no}, "unsaid": {err: errors.New("away")}} {
		c := &court{give: yes}
		h, client, _ := guard(t, c)
		h.leases.now = func() time.Duration {
			c.mu.Lock()
			defer c.mu.Unlock()
			return c.now
		}
		produceTo(t, h, client, "first")
		c.at(yes.Expire / 10)
		produceTo(t, h, client, "last")
		c.set(after.give, after.err)
		for _, step := range []struct {
			now   time.Duration
			topic string
			ends  bool
		}{{yes.Expire / 10, "never", false}, {yes.Expire, "first", false}, {yes.Expire, "never", false}, {yes.Expire + yes.Expire/10, "last", true}} {
			c.at(step.now)
			if x := produceTo(t, h, client, step.topic); !x.Answered() {
				t.Fatalf("%s: %s passed at %s", name, step.topic, step.now)
			}
			if at, reason := client.End(); at.IsZero() == step.ends || step.ends && reason != "lease" {
				t.Errorf("%s: %s refused at %s: ends at %s by %q", name, step.topic, step.now, at, reason)
			}
		}
	}
}

// [CL-AUD-008] When the audit log cannot be written nothing passes.
func TestNothingPassesUnrecorded(t *testing.T) {
	h, client, _ := guard(t, &court{give: yes})
	log, ok := h.journal.audit.(*audit.Writer)
	if !ok {
		t.Fatal("no writer")
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if x := produceTo(t, h, client, "claims"); !x.Answered() {
		t.Error("passed without a line in the log")
	}
	if err := h.Open(t.Context(), &flow.Conn{ID: 8, Client: client.Client, Local: client.Local, Principal: "p", Topics: noTopics{}}); err == nil {
		t.Error("a connection without a line in the log")
	}
}

// [CL-ACC-011] Requests that are never let through, and a topic id that nobody knows.
func TestHandlerRefuses(t *testing.T) {
	h, client, _ := guard(t, &court{give: yes})
	for _, key := range []kmsg.Key{kmsg.LeaderAndISR, kmsg.CreateDelegationToken, kmsg.Envelope, 999} {
		if err := h.Request(t.Context(), &flow.Exchange{Conn: client, Key: int16(key)}); !errors.Is(err, errRefused) {
			t.Errorf("%d: %v", key, err)
		}
		if w := h.Wants(int16(key), 0); w.Request == flow.Pass {
			t.Errorf("%d passes", key)
		}
	}
	if err := h.Request(t.Context(), &flow.Exchange{Conn: &flow.Conn{}, Key: 0}); !errors.Is(err, errUnopened) {
		t.Error(err)
	}
	q := fetchOf(t, 13)
	q.Topics[0].Topic = ""
	x := &flow.Exchange{Conn: client, Key: q.Key(), Version: 13, Request: q}
	if err := h.Request(t.Context(), x); err != nil {
		t.Fatal(err)
	}
	if r, ok := x.Response.(*kmsg.FetchResponse); !ok || r.Topics[0].Partitions[0].ErrorCode != topicIDUnknown {
		t.Errorf("%+v", x.Response)
	}
}

// A report stays within what the key service takes, whatever clients call themselves.
func TestReportsFit(t *testing.T) {
	h, client, _ := guard(t, &court{give: yes})
	evil := "\x1b[2J\"" + strings.Repeat("é", 600)
	for i := range 300 {
		produceTo(t, h, client, strings.Repeat("t", 200)+string(rune('a'+i%26))+strings.Repeat("x", i/26))
		more := &flow.Conn{ID: uint64(i), Client: client.Client, Local: client.Local, Principal: strings.Repeat("p", 500), Topics: noTopics{}}
		if err := h.Open(t.Context(), more); err != nil {
			t.Fatal(err)
		}
		kept, ok := more.Kept(connKey{}).(*conn)
		if !ok {
			t.Fatal("not kept")
		}
		kept.named(&evil)
	}
	r := h.journal.Report()
	if err := r.Check(); err != nil || !r.Truncated || len(r.Uses) == 0 {
		t.Errorf("%v %v %d", err, r.Truncated, len(r.Uses))
	}
	h.journal.Flush(t.Context(), true)
}

func TestCountRecords(t *testing.T) {
	batch := make([]byte, 80)
	batch[lengthAt+3], batch[countAt+3] = 80-afterSize, 5
	marker := append([]byte{}, batch...)
	marker[flagsAt] = control
	for name, c := range map[string]struct {
		data []byte
		want int64
	}{
		"none": {nil, 0}, "one": {batch, 5}, "two": {append(append([]byte{}, batch...), batch...), 10}, "a marker": {append(append([]byte{}, batch...), marker...), 5},
		"cut": {append(append([]byte{}, batch...), batch[:70]...), 5}, "too short": {batch[:60], 0}, "no length": {make([]byte, 200), 0},
	} {
		if got := countRecords(c.data); got != c.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	batch[lengthAt], batch[countAt] = 0xFF, 0xFF
	if got := countRecords(batch); got != 0 {
		t.Error(got)
	}
}
