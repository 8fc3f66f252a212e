// Decisions of the key service, kept until their leases end.

package access

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/keys"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

const (
	// MaxChecks are asked for in one call (spec/limits.md).
	MaxChecks = 256
	// maxLeases are kept for one subject; when there are more, those that have ended go, and then any.
	maxLeases = 10_000
	// askTimeout bounds how long a request waits for the key service.
	askTimeout = 5 * time.Second
	// pause is how long a subject's questions are not asked again after a failure, with jitter.
	pause = time.Second
)

// Subject is one whom the sidecar serves, as it sees him.
type Subject struct {
	Principal   string
	Remote      netip.Addr
	Certificate []byte          // DER; nil: none was shown
	Process     *policy.Process // nil: not known
}

// id tells subjects apart for whom the policy may decide differently.
func (s Subject) id() [sha256.Size]byte {
	p := policy.Process{UID: -1}
	if s.Process != nil {
		p = *s.Process
	}
	return sha256.Sum256(fmt.Appendf(nil, "%q %s %x %d %q %q %q", s.Principal, s.Remote, s.Certificate, p.UID, p.Executable, p.SHA256, p.Labels))
}

// Decision is the key service's answer to a check.
type Decision struct {
	Allowed         bool
	Code            string // why not
	Refresh, Expire time.Duration
}

// Authority decides; in a sidecar it is the key service. It is safe for concurrent use.
type Authority interface {
	// Access gives a decision for each of at most MaxChecks checks, in their order.
	Access(ctx context.Context, subject Subject, checks []Check) ([]Decision, error)
}

// lease is a decision that was given. Times are those of keys.Now.
type lease struct {
	Decision
	refresh, expires time.Duration
	used             bool // since it was given or renewed
}

// Leases keeps the decisions for all subjects. Safe for concurrent use.
type Leases struct {
	authority Authority
	log       *slog.Logger
	now       func() time.Duration

	mu  sync.Mutex
	all map[[sha256.Size]byte]*holder
}

// NewLeases makes one that knows nothing yet.
func NewLeases(authority Authority, log *slog.Logger) *Leases {
	return &Leases{authority: authority, log: log, now: keys.Now, all: map[[sha256.Size]byte]*holder{}}
}

// holder has the leases of one subject. All its connections share it.
type holder struct {
	*Leases

	subject Subject
	id      [sha256.Size]byte
	users   int // connections; under Leases.mu

	mu     sync.RWMutex
	leases map[Check]*lease
	why    string // the code of spec/errors.md for what has no lease

	asking  sync.Mutex // one question at a time: who waits finds the answer
	failed  error      // of the last question; under asking
	silent  time.Duration
	renewal sync.Mutex
}

// take gives the holder of a subject. Give it back.
func (l *Leases) take(s Subject) *holder {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := s.id()
	h := l.all[id]
	if h == nil {
		h = &holder{Leases: l, subject: s, id: id, leases: map[Check]*lease{}, why: string(refusal.Unavailable)}
		if s.Principal == "" {
			h.why = string(refusal.Unauthenticated)
		}
		l.all[id] = h
	}
	h.users++
	return h
}

func (h *holder) giveBack() {
	h.Leases.mu.Lock()
	defer h.Leases.mu.Unlock()
	h.users--
	if h.users == 0 {
		delete(h.all, h.id)
	}
}

// look tells what is known of a check, and renews leases that are due.
func (h *holder) look(now time.Duration, c Check) answer {
	h.mu.RLock()
	l := h.leases[c]
	var known answer
	due := false
	if l != nil && now < l.expires {
		known = refused
		if l.Allowed {
			known = allowed
		}
		due = now >= l.refresh
	}
	used := l == nil || l.used
	h.mu.RUnlock()
	if !used {
		h.mu.Lock()
		l.used = true
		h.mu.Unlock()
	}
	if due && h.renewal.TryLock() {
		go func() {
			defer h.renewal.Unlock()
			h.renew()
		}()
	}
	return known
}

// holds tells whether a lease allows something now.
func (h *holder) holds(c Check) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	l := h.leases[c]
	return l != nil && l.Allowed && h.now() < l.expires
}

// left tells for how long a lease holds.
func (h *holder) left(c Check) time.Duration {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if l := h.leases[c]; l != nil {
		return max(0, l.expires-h.now())
	}
	return 0
}

// codeOf tells why a check is refused.
func (h *holder) codeOf(c Check) string {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if l := h.leases[c]; l != nil && !l.Allowed && h.now() < l.expires {
		return l.Code
	}
	return h.why
}

// fail keeps why there is no decision.
func (h *holder) fail(err error) {
	code := refusal.Unavailable
	if known, ok := errors.AsType[*refusal.Error](err); ok {
		code = known.Code
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.why = string(code)
}

var errNobody = errors.New("it is not known who this is")

// ask asks for what is not known, and gives the leases that began with it. After a failure the same is answered for a while.
func (h *holder) ask(ctx context.Context, checks []Check) (began []Check, err error) {
	if h.subject.Principal == "" {
		return nil, errNobody
	}
	h.asking.Lock()
	defer h.asking.Unlock()
	now := h.now()
	wanted := slices.DeleteFunc(slices.Clone(checks), func(c Check) bool { return h.look(now, c) != unknown })
	if len(wanted) > 0 && h.failed != nil && now < h.silent {
		return nil, h.failed
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	for batch := range slices.Chunk(wanted, MaxChecks) {
		given, err := h.question(ctx, batch)
		if err != nil {
			h.failed, h.silent = err, h.now()+jitter(pause)
			h.fail(err)
			h.log.Warn("the key service does not say what is allowed, so it is refused", "principal", h.subject.Principal, "error", err)
			return began, err
		}
		began = append(began, given...)
	}
	h.failed = nil
	return began, nil
}

func jitter(d time.Duration) time.Duration {
	return d/2 + rand.N(d) // #nosec G404 -- no secret
}

// question asks and takes the answer over; leases begin when it was asked. It gives what was not allowed before.
func (h *holder) question(ctx context.Context, checks []Check) (began []Check, err error) {
	asked := h.now()
	decisions, err := h.authority.Access(ctx, h.subject, checks)
	if err != nil {
		return nil, err
	}
	if len(decisions) != len(checks) {
		return nil, fmt.Errorf("%d decisions for %d checks", len(decisions), len(checks))
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range checks {
		d := decisions[i]
		if old := h.leases[c]; d.Allowed && (old == nil || !old.Allowed || old.expires <= asked) {
			began = append(began, c)
		}
		h.leases[c] = &lease{Decision: d, refresh: asked + d.Refresh, expires: asked + d.Expire}
	}
	h.shrink(asked)
	return began, nil
}

// shrink keeps the leases within their bound; what goes is asked for again.
func (h *holder) shrink(now time.Duration) {
	if len(h.leases) <= maxLeases {
		return
	}
	maps.DeleteFunc(h.leases, func(_ Check, l *lease) bool { return l.expires <= now })
	for c := range h.leases {
		if len(h.leases) <= maxLeases {
			return
		}
		delete(h.leases, c)
	}
}

// renew asks again for what was used and is due. When that fails, leases go on to their end.
func (h *holder) renew() {
	now := h.now()
	var due []Check
	h.mu.RLock()
	for c, l := range h.leases {
		if l.used && now >= l.refresh && now < l.expires {
			due = append(due, c)
		}
	}
	h.mu.RUnlock()
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	for batch := range slices.Chunk(due, MaxChecks) {
		if _, err := h.question(ctx, batch); err != nil {
			h.log.Warn("leases are not renewed; they go on to their end", "principal", h.subject.Principal, "error", err)
			h.postpone(batch)
			return
		}
	}
}

// postpone lets a while pass before leases are due again.
func (h *holder) postpone(checks []Check) {
	h.mu.Lock()
	defer h.mu.Unlock()
	next := h.now() + jitter(pause)
	for _, c := range checks {
		if l := h.leases[c]; l != nil {
			l.refresh = next
		}
	}
}
