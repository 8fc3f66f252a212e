// The journal: what is granted, refused, used for the first time and at its end goes into the audit log (spec/audit.md, "Sidecars"),
// and is kept for the live view.

package access

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/process"
)

const (
	// gather is how long further refusals of the same are only counted.
	gather = 10 * time.Second
	// remember is how long a refusal is shown.
	remember = 10 * time.Minute
	// maxDenials are kept apart; those beyond count as one.
	maxDenials = 1000
)

// Log is where lines go: *audit.Writer.
type Log interface {
	Write(ctx context.Context, records ...audit.Record) error
}

// Journal is safe for concurrent use. Make it with NewJournal.
type Journal struct {
	audit   Log
	log     *slog.Logger
	host    string
	metrics *Metrics

	mu      sync.Mutex
	trails  map[*conn]bool
	denials map[denialKey]*denial
	shown   map[shownKey]int64 // records at the time of the last report
	at      time.Time          // of the last report
}

type denialKey struct {
	principal string
	check     Check
}

type denial struct {
	code        string
	record      audit.Record
	count, more int64     // in all, and since the last line
	since, last time.Time // of the first that is only counted, and of the last one
}

// NewJournal makes one. host is the sidecar's.
func NewJournal(log Log, host string, metrics *Metrics, logger *slog.Logger) *Journal {
	j := &Journal{audit: log, log: logger, host: host, metrics: metrics, trails: map[*conn]bool{}, denials: map[denialKey]*denial{}, shown: map[shownKey]int64{}}
	metrics.watch(j)
	return j
}

// begin records a connection.
func (j *Journal) begin(ctx context.Context, c *flow.Conn, subject Subject) (*trail, error) {
	t := &trail{
		id: strconv.FormatUint(c.ID, 10), subject: subject, remote: c.Client.String(), started: time.Now(),
		topics: c.Topics, metrics: j.metrics, uses: map[Check]*use{},
	}
	t.process, _ = c.Kept(processKey{}).(*process.Process)
	if c.TLS != nil && len(c.TLS.PeerCertificates) > 0 {
		t.ends = c.TLS.PeerCertificates[0].NotAfter
	}
	return t, j.write(ctx, j.line(t, audit.ActionConnect, audit.Allowed))
}

// line begins a line about a connection.
func (j *Journal) line(t *trail, action string, outcome audit.Outcome) audit.Record {
	t.mu.Lock()
	client := t.client
	t.mu.Unlock()
	r := audit.Record{
		Time: time.Now(), Principal: t.subject.Principal, Remote: t.remote, Action: action, Outcome: outcome,
		Host: j.host, Connection: t.id, Client: client,
	}
	if p := t.process; p != nil {
		r.Process = &audit.Process{PID: p.PID, UID: p.UID, Executable: p.Executable, SHA256: p.SHA256, Labels: p.Labels}
	}
	return r
}

// about says what a line is about.
func about(r audit.Record, c Check) audit.Record {
	r.Right = string(c.Action)
	switch c.Action.On() {
	case policy.OnTopic:
		r.Topic = c.Name
	case policy.OnGroup:
		r.Group = c.Name
	case policy.OnTransaction:
		r.Transaction = c.Name
	case policy.OnScope, policy.OnPrincipal, policy.Nothing:
	}
	return r
}

func (j *Journal) write(ctx context.Context, records ...audit.Record) error {
	if len(records) == 0 {
		return nil
	}
	return j.audit.Write(context.WithoutCancel(ctx), records...)
}

// record writes what is new in a look: leases that began and are used, first uses, refusals [CL-AUD-008] [CL-AUD-009]. On an error nothing of
// the request may be let through.
func (j *Journal) record(ctx context.Context, c *conn, began []Check, p *pass, key int16) error {
	var lines []audit.Record
	for _, check := range began {
		if !slices.Contains(p.used, check) {
			continue
		}
		line := about(j.line(c.trail, audit.ActionAccess, audit.Allowed), check)
		line.ExpiresIn = int64(c.holder.left(check) / time.Second)
		lines = append(lines, line)
	}
	for _, check := range c.isNew(p.used) {
		lines = append(lines, about(j.line(c.trail, audit.ActionUse, audit.Allowed), check))
	}
	lines = append(lines, j.denied(c, p.denied)...)
	err := j.write(ctx, lines...)
	if err == nil {
		c.used(p.used, key)
	}
	return err
}

// denied counts refusals, and gives lines for those that are not only counted.
func (j *Journal) denied(c *conn, checks []Check) (lines []audit.Record) {
	now := time.Now()
	for _, check := range checks {
		code := c.holder.codeOf(check)
		line := about(j.line(c.trail, audit.ActionAccess, audit.Refused), check)
		line.Code = code
		j.metrics.denied(c.subject.Principal, check, code)
		if j.count(denialKey{c.subject.Principal, check}, code, line, now) {
			lines = append(lines, line)
		}
	}
	return lines
}

// count tells whether a refusal is to be recorded by itself.
func (j *Journal) count(k denialKey, code string, line audit.Record, now time.Time) bool {
	j.mu.Lock()
	defer j.mu.Unlock()
	d := j.denials[k]
	if d == nil {
		if len(j.denials) >= maxDenials {
			k = denialKey{}
			line.Right, line.Topic, line.Group, line.Transaction = "", "", "", ""
			d = j.denials[k]
		}
		if d == nil {
			d = &denial{}
			j.denials[k] = d
		}
	}
	d.code, d.record, d.last = code, line, now
	d.count++
	if d.since.IsZero() {
		d.since = now
		return true
	}
	d.more++
	return false
}

// Flush writes lines for refusals that were only counted, when they are due or all, and forgets old ones. Call it every few seconds.
func (j *Journal) Flush(ctx context.Context, all bool) {
	now := time.Now()
	var lines []audit.Record
	j.mu.Lock()
	for k, d := range j.denials {
		if !d.since.IsZero() && (all || now.Sub(d.since) >= gather) {
			if d.more > 0 {
				line := d.record
				line.Time, line.Count = now, int(d.more)
				lines = append(lines, line)
			}
			d.since, d.more = time.Time{}, 0
		}
		if now.Sub(d.last) > remember {
			delete(j.denials, k)
		}
	}
	j.mu.Unlock()
	if err := j.write(ctx, lines...); err != nil {
		j.log.Error("refusals that were counted are not in the audit log", "lines", len(lines), "error", err)
	}
}

// open makes a connection seen.
func (j *Journal) open(c *conn) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.trails[c] = true
}

// end records what a connection has done.
func (j *Journal) end(c *conn) {
	j.mu.Lock()
	delete(j.trails, c)
	j.mu.Unlock()
	c.mu.Lock()
	uses := c.uses
	c.uses = map[Check]*use{}
	c.mu.Unlock()
	lines := make([]audit.Record, 0, len(uses)+1)
	for check, u := range uses {
		line := about(j.line(c.trail, audit.ActionEnd, audit.Allowed), check)
		line.Count, line.Records, line.Bytes = int(u.requests), u.records, u.bytes
		lines = append(lines, line)
	}
	lines = append(lines, j.line(c.trail, audit.ActionLeave, audit.Allowed))
	if err := j.write(context.Background(), lines...); err != nil {
		j.log.Error("the end of a connection is not in the audit log", "principal", c.subject.Principal, "error", err)
	}
}
