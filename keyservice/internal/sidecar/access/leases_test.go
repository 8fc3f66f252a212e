package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// court decides as the test says, at the time of the test.
type court struct {
	mu    sync.Mutex
	now   time.Duration
	give  Decision
	err   error
	asked int
	short bool // gives one decision too few
}

func (c *court) Access(_ context.Context, _ Subject, checks []Check) ([]Decision, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	all := make([]Decision, len(checks))
	for i := range all {
		all[i] = c.give
	}
	if c.short {
		all = all[1:]
	}
	return all, c.err
}

func (c *court) at(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

func (c *court) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.asked
}

func (c *court) set(d Decision, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.give, c.err = d, err
}

func newHolder(c *court, principal string) *holder {
	l := NewLeases(c, slog.New(slog.DiscardHandler))
	l.now = func() time.Duration {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.now
	}
	return l.take(Subject{Principal: principal})
}

var (
	claim = Check{policy.ActionRead, "claims"}
	yes   = Decision{Allowed: true, Refresh: 5 * time.Second, Expire: 10 * time.Second}
	no    = Decision{Code: "not-authorized", Refresh: 5 * time.Second, Expire: 5 * time.Second}
)

func (h *holder) decide(t *testing.T) answer {
	t.Helper()
	if known := h.look(h.now(), claim); known != unknown {
		return known
	}
	_, _ = h.ask(t.Context(), []Check{claim})
	return h.look(h.now(), claim)
}

// [CL-ACC-012] A lease holds until its end and not longer; without an answer nothing is allowed; a refusal ends too.
func TestLeasesEnd(t *testing.T) {
	c := &court{give: yes}
	h := newHolder(c, "p")
	if h.decide(t) != allowed {
		t.Fatal("not allowed")
	}
	c.set(yes, errors.New("the key service is down"))
	c.at(10*time.Second - 1)
	if h.decide(t) != allowed {
		t.Error("ended early")
	}
	eventually(t, func() bool { return c.count() > 1 }) // it tried to renew
	c.at(10 * time.Second)
	if h.decide(t) != unknown {
		t.Error("a lease outlives its end")
	}
	asked := c.count()
	h.decide(t)
	if c.count() != asked {
		t.Error("it does not pause after a failure")
	}
	c.set(no, nil)
	c.at(20 * time.Second)
	if h.decide(t) != refused || h.codeOf(claim) != "not-authorized" {
		t.Error("not refused")
	}
	c.set(yes, nil)
	c.at(25*time.Second - 1)
	if h.decide(t) != refused {
		t.Error("a refusal ended early")
	}
	c.at(31 * time.Second)
	if h.decide(t) != allowed {
		t.Error("a refusal does not end")
	}
}

func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	for until := time.Now().Add(5 * time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		if holds() {
			return
		}
	}
	t.Fatal("waited in vain")
}

// [CL-ACC-012] What is used is renewed while the old lease goes on; a renewal that is refused ends it at once.
func TestRenewal(t *testing.T) {
	c := &court{give: yes}
	h := newHolder(c, "p")
	h.decide(t)
	c.at(5 * time.Second)
	if h.decide(t) != allowed {
		t.Error("not allowed while it is renewed")
	}
	eventually(t, func() bool { return h.left(claim) == 10*time.Second })
	c.set(no, nil)
	c.at(11 * time.Second)
	h.decide(t)
	eventually(t, func() bool { return h.look(h.now(), claim) == refused })
}

// [CL-ACC-012] Nobody, too few decisions, and a flood of names.
func TestHolderFailsClosed(t *testing.T) {
	if h := newHolder(&court{give: yes}, ""); h.decide(t) != unknown || h.codeOf(claim) != "unauthenticated" {
		t.Error("nobody is allowed, or for another reason:", h.codeOf(claim))
	}
	if h := newHolder(&court{give: yes, short: true}, "p"); h.decide(t) != unknown {
		t.Error("a decision too few")
	}
	h := newHolder(&court{give: yes}, "p")
	for i := range 60 {
		var checks []Check
		for j := range MaxChecks {
			checks = append(checks, Check{policy.ActionRead, fmt.Sprint(i, "-", j)})
		}
		if _, err := h.ask(t.Context(), checks); err != nil {
			t.Fatal(err)
		}
	}
	if len(h.leases) > maxLeases {
		t.Error(len(h.leases))
	}
	if began, _ := h.ask(t.Context(), []Check{claim, claim}); len(began) == 0 || h.decide(t) != allowed {
		t.Error("full")
	}
}

// [CL-AUD-009] What is refused without a decision has the code of what kept the key service from deciding.
func TestWhyThereIsNoDecision(t *testing.T) {
	for code, err := range map[string]error{
		"key-service-unavailable": &refusal.Error{Code: refusal.Unavailable},
		"audit-unavailable":       fmt.Errorf("asked: %w", &refusal.Error{Code: refusal.AuditUnavailable}),
		"not-authorized":          &refusal.Error{Code: refusal.NotAuthorized}, // the sidecar itself
		"key-service-bad-answer":  &refusal.Error{Code: "key-service-bad-answer"},
	} {
		c := &court{}
		c.set(Decision{}, err)
		h := newHolder(c, "p")
		if h.decide(t) != unknown || h.codeOf(claim) != code {
			t.Error(code, "is told as", h.codeOf(claim))
		}
	}
}

// Subjects share leases only when the policy cannot tell them apart.
func TestSubjects(t *testing.T) {
	l := NewLeases(&court{give: yes}, slog.New(slog.DiscardHandler))
	a, b := l.take(Subject{Principal: "p"}), l.take(Subject{Principal: "p"})
	if a != b {
		t.Error("two holders for one subject")
	}
	for _, other := range []Subject{{Principal: "q"}, {Principal: "p", Certificate: []byte{1}}, {Principal: "p", Process: &policy.Process{}}, {Principal: "p", Process: &policy.Process{UID: 1}}} {
		if l.take(other) == a {
			t.Errorf("%+v shares", other)
		}
	}
	a.giveBack()
	if l.take(Subject{Principal: "p"}) != b {
		t.Error("forgotten while in use")
	}
	b.giveBack()
	b.giveBack()
	if l.take(Subject{Principal: "p"}) == b {
		t.Error("not forgotten")
	}
}
