// The handler of the sidecar's chain: it asks the table, the leases and the journal.

package access

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/process"
)

// maxLooks bounds how often a request is looked at: that more must be asked for is found a few times only.
const maxLooks = 8

// Handler implements flow.Handler, flow.Opener and flow.Closer. Make it with New; it is safe for concurrent use.
type Handler struct {
	leases  *Leases
	journal *Journal
	local   *process.Finder // nil: clients are who their certificate says
}

// New makes one. local finds who the clients of plaintext listeners are, or is nil.
func New(leases *Leases, journal *Journal, local *process.Finder) *Handler {
	return &Handler{leases, journal, local}
}

type connKey struct{}

// conn is what is kept of a connection.
type conn struct {
	*trail

	holder *holder
	topics flow.Topics
}

// Wants implements flow.Handler: everything but what is harmless is looked into.
func (*Handler) Wants(key, _ int16) flow.Want {
	r := rules[kmsg.Key(key)]
	switch {
	case kmsg.Key(key) == kmsg.ApiVersions:
		return flow.Want{Response: flow.Body}
	case r.harmless:
		return flow.Want{}
	case r.refuses():
		return flow.Want{Request: flow.Head}
	}
	return flow.Want{Request: flow.Body, Response: flow.Body}
}

// Open implements flow.Opener: it finds out who the client is. Who is nobody may connect, and is refused everything.
func (h *Handler) Open(ctx context.Context, c *flow.Conn) error {
	subject := Subject{Principal: c.Principal, Remote: addressOf(c.Client)}
	if c.TLS != nil && len(c.TLS.PeerCertificates) > 0 {
		subject.Certificate = c.TLS.PeerCertificates[0].Raw
	}
	if h.local != nil && c.TLS == nil {
		found, err := h.local.Find(c.Client, c.Local)
		if err != nil {
			h.leases.log.Warn("it is not known who has connected, so everything is refused", "remote", c.Client.String(), "error", err)
		}
		subject.Principal, c.Principal = found.Principal, found.Principal
		if found.Process != nil {
			subject.Process = found.Policy()
		}
		c.Keep(processKey{}, found.Process)
	}
	t, err := h.journal.begin(ctx, c, subject)
	if err != nil {
		return err
	}
	made := &conn{t, h.leases.take(subject), c.Topics}
	h.journal.open(made)
	c.Keep(connKey{}, made)
	return nil
}

type processKey struct{}

func addressOf(a net.Addr) netip.Addr {
	if tcp, ok := a.(*net.TCPAddr); ok {
		return tcp.AddrPort().Addr().Unmap().WithZone("")
	}
	return netip.Addr{}
}

// Closed implements flow.Closer.
func (h *Handler) Closed(c *flow.Conn) {
	if kept, ok := c.Kept(connKey{}).(*conn); ok {
		h.journal.end(kept)
		kept.holder.giveBack()
	}
}

var (
	errRefused  = errors.New("requests of this kind are never let through")
	errUnopened = errors.New("the connection was not opened")

	errUnanswered = errors.New("records were refused, and with acks=0 only the end of the connection can say so")
)

type verdictKey struct{}

// Request implements flow.Handler.
func (h *Handler) Request(ctx context.Context, x *flow.Exchange) error {
	c, ok := x.Conn.Kept(connKey{}).(*conn)
	if !ok {
		return errUnopened
	}
	r := rules[kmsg.Key(x.Key)]
	if r.judge == nil {
		return fmt.Errorf("%s: %w", kmsg.NameForKey(x.Key), errRefused)
	}
	c.named(x.ClientID)
	var v verdict
	if err := h.settle(ctx, x, c, func(p *pass) { v = r.judge(p, x.Request) }); err != nil {
		return err
	}
	switch {
	case x.NoResponse && (v.answer != nil || v.merge != nil): // [CL-SDC-112]
		return errUnanswered
	case v.answer != nil:
		x.Answer(v.answer)
	case v.request != nil:
		x.Request = v.request
		x.ChangeRequest()
	}
	if v.answer == nil {
		c.sent(x.Request)
	}
	if v.merge != nil || v.deliver != nil {
		x.Keep(verdictKey{}, v)
	}
	return nil
}

// Response implements flow.Handler.
func (h *Handler) Response(ctx context.Context, x *flow.Exchange) error {
	if r, ok := x.Response.(*kmsg.ApiVersionsResponse); ok {
		hideRefused(x, r)
		return nil
	}
	c, ok := x.Conn.Kept(connKey{}).(*conn)
	if !ok {
		return errUnopened
	}
	v, _ := x.Kept(verdictKey{}).(verdict)
	if v.deliver != nil {
		var cut func()
		if err := h.settle(ctx, x, c, func(p *pass) { cut = v.deliver(p, x.Response) }); err != nil {
			return err
		}
		if cut != nil {
			cut()
			x.ChangeResponse()
		}
	}
	c.received(x.Response)
	if v.merge != nil {
		v.merge(x.Response)
		x.ChangeResponse()
	}
	return nil
}

// hideRefused takes out of ApiVersions what is always refused, so that no client sends it.
func hideRefused(x *flow.Exchange, r *kmsg.ApiVersionsResponse) {
	cut := keep(&r.ApiKeys, func(k *kmsg.ApiVersionsResponseApiKey) bool { return !rules[kmsg.Key(k.ApiKey)].refuses() })
	if cut != nil {
		cut()
		x.ChangeResponse()
	}
}

// settle looks until everything is known, and sees that what is new is in the audit log before it is let through. What the key service
// does not say is refused, and so is what cannot be recorded [CL-AUD-008]. A connection that has lost all its rights ends, after the answer that says so.
func (h *Handler) settle(ctx context.Context, x *flow.Exchange, c *conn, look func(*pass)) error {
	k := knowledge{conn: c, later: later(kmsg.Key(x.Key)), asked: map[Check]answer{}, names: map[topicID]string{}}
	for range maxLooks {
		p := k.newPass()
		look(p)
		if !p.complete() {
			k.learn(ctx, p)
			continue
		}
		if err := h.journal.record(ctx, c, k.began, p, x.Key); err != nil {
			h.leases.log.Error("the audit log cannot be written, so this is refused", "request", kmsg.NameForKey(x.Key), "error", err)
			k.closed = true
			look(k.newPass())
		}
		if c.lost(p.denied) {
			x.Conn.Drain("lease")
		}
		return nil
	}
	return fmt.Errorf("%s: after %d looks it is not known what is allowed", kmsg.NameForKey(x.Key), maxLooks)
}

// lost tells whether something was refused that was used on this connection before, and nothing that was used holds any more.
func (c *conn) lost(denied []Check) bool {
	if len(denied) == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.ContainsFunc(denied, func(check Check) bool { return c.uses[check] != nil }) {
		return false
	}
	for check := range c.uses {
		if c.holder.holds(check) {
			return false
		}
	}
	return true
}

// knowledge is what was learnt for one request.
type knowledge struct {
	*conn

	later  int16              // the code for what is unsaid
	asked  map[Check]answer   // of the key service, for this request: what holds when it did not say
	names  map[topicID]string // of the cluster; empty for an id that no topic has
	began  []Check            // leases that began
	closed bool               // everything is refused
}

func (k *knowledge) newPass() *pass {
	now := k.holder.now()
	return &pass{
		later: k.later,
		look: func(c Check) answer {
			if k.closed {
				return unsaid
			}
			known := k.holder.look(now, c)
			if known == unknown {
				return k.asked[c]
			}
			return known
		},
		topicOf: func(id topicID) (string, bool) {
			if name, asked := k.names[id]; asked {
				return name, true
			}
			return k.topics.Name(id)
		},
	}
}

func (k *knowledge) learn(ctx context.Context, p *pass) {
	if len(p.missing) > 0 {
		began, err := k.holder.ask(ctx, p.missing) // it has logged why it does not know
		k.began = append(k.began, began...)
		otherwise := refused
		if passesOff(err) {
			otherwise = unsaid
		}
		for _, c := range p.missing {
			k.asked[c] = otherwise
		}
	}
	if len(p.unresolved) > 0 {
		names, err := k.topics.Resolve(ctx, p.unresolved)
		if err != nil {
			k.holder.log.Warn("the cluster does not say which topics ids are of, so they are refused", "error", err)
		}
		for _, id := range p.unresolved {
			k.names[id] = names[id]
		}
	}
}
