// The live view of this sidecar, as it is reported to the key service.

package access

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// maxReport keeps a report within the body that the key service takes, in bytes: each entry takes what its texts and numbers do.
const (
	maxReport  = 60 << 10
	entrySize  = 220
	connection = 260
)

type shownKey struct {
	principal string
	check     Check
}

// connections gives those that are open.
func (j *Journal) connections() []*conn {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Keys(j.trails))
}

// snapshot copies what was counted.
func (t *trail) snapshot() map[Check]use {
	t.mu.Lock()
	defer t.mu.Unlock()
	copied := make(map[Check]use, len(t.uses))
	for c, u := range t.uses {
		copied[c] = *u
	}
	return copied
}

// Report gives the view of now: the busiest and latest first, as much as fits.
func (j *Journal) Report() view.Report {
	now := time.Now()
	r := view.Report{Host: view.Plain(j.host), Connections: []view.Connection{}, Uses: []view.Use{}, Denials: []view.Denial{}}
	uses := map[shownKey]*view.Use{}
	for _, c := range j.connections() {
		r.Connections = append(r.Connections, c.view(now))
		for check, u := range c.snapshot() {
			add(uses, shownKey{c.subject.Principal, check}, u, c.holder.left(check), now)
		}
	}
	j.perSecond(uses, now)
	for _, u := range uses {
		r.Uses = append(r.Uses, *u)
	}
	r.Denials = j.lately(now)
	slices.SortFunc(r.Uses, func(a, b view.Use) int {
		return cmp.Or(cmp.Compare(b.PerSecond, a.PerSecond), cmp.Compare(a.Last, b.Last), cmp.Compare(a.Principal+a.Action+a.Name, b.Principal+b.Action+b.Name))
	})
	slices.SortFunc(r.Denials, func(a, b view.Denial) int { return cmp.Compare(a.Last, b.Last) })
	slices.SortFunc(r.Connections, func(a, b view.Connection) int { return cmp.Compare(a.Since, b.Since) })
	fit(&r)
	return r
}

func (c *conn) view(now time.Time) view.Connection {
	c.mu.Lock()
	client := c.client
	c.mu.Unlock()
	v := view.Connection{Principal: view.Plain(c.subject.Principal), Remote: view.Plain(c.remote), Client: view.Plain(client), Since: max(0, now.Sub(c.started).Seconds())}
	if p := c.process; p != nil {
		v.Process = view.Plain(fmt.Sprintf("%s (pid %d, uid %d)", p.Executable, p.PID, p.UID))
	}
	if !c.ends.IsZero() {
		v.Certificate = max(0, c.ends.Sub(now).Seconds())
	}
	return v
}

func add(uses map[shownKey]*view.Use, k shownKey, u use, left time.Duration, now time.Time) {
	shown := uses[k]
	ago := max(0, now.Sub(u.last).Seconds())
	if shown == nil {
		shown = &view.Use{Principal: view.Plain(k.principal), Action: string(k.check.Action), Name: view.Plain(k.check.Name), Last: ago}
		uses[k] = shown
	}
	shown.Requests += float64(u.requests)
	shown.Records += float64(u.records)
	shown.Bytes += float64(u.bytes)
	shown.Last, shown.ExpiresIn = min(shown.Last, ago), left.Seconds()
}

// perSecond fills in how many records went through since the last report.
func (j *Journal) perSecond(uses map[shownKey]*view.Use, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	past := now.Sub(j.at).Seconds()
	shown := make(map[shownKey]int64, len(uses))
	for k, u := range uses {
		shown[k] = int64(u.Records)
		if before, there := j.shown[k]; there && past > 0 && u.Records >= float64(before) {
			u.PerSecond = (u.Records - float64(before)) / past
		}
	}
	j.shown, j.at = shown, now
}

func (j *Journal) lately(now time.Time) []view.Denial {
	j.mu.Lock()
	defer j.mu.Unlock()
	all := make([]view.Denial, 0, len(j.denials))
	for k, d := range j.denials {
		all = append(all, view.Denial{
			Principal: view.Plain(k.principal), Action: string(k.check.Action), Name: view.Plain(k.check.Name), Code: d.code,
			Count: float64(d.count), Last: max(0, now.Sub(d.last).Seconds()),
		})
	}
	return all
}

// fit leaves out what does not fit: of each list the end.
func fit(r *view.Report) {
	left := maxReport
	r.Uses = within(r, r.Uses, view.MaxUses, &left, func(u view.Use) int { return entrySize + 2*len(u.Principal+u.Name) })
	r.Denials = within(r, r.Denials, view.MaxDenials, &left, func(d view.Denial) int { return entrySize + 2*len(d.Principal+d.Name) })
	r.Connections = within(r, r.Connections, view.MaxConnections, &left, func(c view.Connection) int {
		return connection + 2*len(c.Principal+c.Remote+c.Client+c.Process)
	})
}

func within[T any](r *view.Report, list []T, limit int, left *int, size func(T) int) []T {
	for i := range list {
		if *left -= size(list[i]); i >= limit || *left < 0 {
			r.Truncated = true
			return list[:i]
		}
	}
	return list
}
