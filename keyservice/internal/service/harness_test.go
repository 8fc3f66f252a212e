// A service on a real store, policy and audit log, without HTTP.

package service

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/metrics"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

const testPolicy = `version: 1
topics:
  - topics: ["claims", "claims.*"]
    mode: encrypt
    scope: claims
  - topics: ["clear"]
    mode: clear
  - topics: ["t-*"]
    mode: encrypt
grants:
  - principals: ["producer"]
    actions: [encrypt]
    topics: ["*"]
  - principals: ["consumer"]
    actions: [decrypt]
    topics: ["*"]
  - principals: ["soon"]
    actions: [encrypt, decrypt]
    topics: ["*"]
    not_after: %s
  - principals: ["operator"]
    actions: [rotate, destroy, revoke, admin]
    scopes: ["*"]
rotation:
  - {scopes: ["t-*"], records: 10}
`

// soon is how long the grant of the principal "soon" lasts.
const soon = 90 * time.Second

type fixture struct {
	*Service

	auditPath string
	auditLog  audit.Log
}

// newFixture makes a service; wrap may put something between it and its store.
func newFixture(t *testing.T, s store.Store, wrap func(store.Store) store.Store) *fixture {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "policy.yaml")
	text := fmt.Sprintf(testPolicy, time.Now().Add(soon).UTC().Format(time.RFC3339))
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	policies, err := policy.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if wrap != nil {
		s = wrap(s)
	}
	log := quietLog()
	f := &fixture{auditPath: filepath.Join(dir, "audit.jsonl")}
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if f.auditLog, err = audit.Open(audit.Options{Name: "test", File: f.auditPath}, log); err != nil {
		t.Fatal(err)
	}
	state := Begin(t.Context(), s, Info{Instance: "test", Backend: "embedded", Started: time.Now()}, log)
	t.Cleanup(func() {
		state.Close()
		_ = f.auditLog.Close()
	})
	f.Service = &Service{State: state, Policies: policies, Store: s, Audit: f.auditLog, Meter: metrics.New(), Log: log}
	return f
}

func quietLog() *slog.Logger { return slog.New(slog.DiscardHandler) }

func as(principal string) Call {
	return Call{RequestID: "request-of-" + principal, Principal: principal, Remote: "127.0.0.1:1"}
}

func (f *fixture) key(t *testing.T, topic string, report *Usage) datakey.ID {
	t.Helper()
	k, err := f.EncryptionKey(t.Context(), as("producer"), topic, report)
	if err != nil {
		t.Fatal(err)
	}
	k.Key.Wipe()
	return k.Kid
}

// codeOf gives the code of a refusal.
func codeOf(t *testing.T, err error) refusal.Code {
	t.Helper()
	if err == nil {
		return ""
	}
	refused := asRefusal(err)
	if refused.Detail == "" {
		t.Error("a refusal without a detail", err)
	}
	return refused.Code
}

// lines gives what the audit log says, in the form "action outcome code".
func (f *fixture) lines(t *testing.T) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(f.auditPath)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(r.Action, "audit-") {
			lines = append(lines, strings.TrimSpace(r.Action+" "+string(r.Outcome)+" "+r.Code))
		}
	}
	return lines
}

// faulty is a real store of which some calls fail, or say that a key is older than it is.
type faulty struct {
	store.Store

	replace error
	read    error
	destroy error
	older   map[datakey.ID]time.Duration
}

func (f *faulty) Current(ctx context.Context, scope string) (store.Record, error) {
	r, err := f.Store.Current(ctx, scope)
	r.Created = r.Created.Add(-f.older[r.ID])
	return r, err
}

func (f *faulty) Unwrap(ctx context.Context, records []store.Record) ([]*datakey.Key, error) {
	records = slices.Clone(records)
	for i := range records {
		records[i].Created = records[i].Created.Add(f.older[records[i].ID])
	}
	return f.Store.Unwrap(ctx, records)
}

func (f *faulty) Replace(ctx context.Context, scope string, old datakey.ID) (store.Record, error) {
	if f.replace != nil {
		return store.Record{}, f.replace
	}
	return f.Store.Replace(ctx, scope, old)
}

func (f *faulty) Destroy(ctx context.Context, scope string, ids []datakey.ID) error {
	if f.destroy != nil {
		return f.destroy
	}
	return f.Store.Destroy(ctx, scope, ids)
}

func (f *faulty) ReadDocument(ctx context.Context, kind, key string) ([]byte, int, error) {
	if f.read != nil && strings.HasPrefix(kind, "usage-") {
		return nil, 0, f.read
	}
	return f.Store.ReadDocument(ctx, kind, key)
}
