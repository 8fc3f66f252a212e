// When and under what condition a grant holds.

package policy

import (
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// granting makes a policy with one grant for p to encrypt, with more members.
func granting(t *testing.T, members ...string) *Policy {
	t.Helper()
	return parse(t, head+tail+"    "+strings.Join(members, "\n    ")+"\n")
}

func instant(t *testing.T, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func encryptAt(p *Policy, at time.Time) (Decision, error) {
	return p.Topic(Asker{Principal: "p", Time: at}, ActionEncrypt, "t")
}

// [CL-POL-010] [CL-POL-011]
func TestDates(t *testing.T) {
	p := granting(t, "not_before: 2026-11-01T08:00:00+01:00", "not_after: \"2026-11-30T18:00:00Z\"")
	for at, lease := range map[string]time.Duration{
		"2026-11-01T06:59:59Z":      0,
		"2026-11-01T07:00:00Z":      5 * time.Minute,
		"2026-11-15T12:00:00+09:00": 5 * time.Minute,
		"2026-11-30T17:55:00Z":      5 * time.Minute,
		"2026-11-30T17:55:01Z":      4*time.Minute + 59*time.Second,
		"2026-11-30T17:59:57.5Z":    2 * time.Second,
		"2026-11-30T17:59:59Z":      time.Second,
		"2026-11-30T17:59:59.5Z":    0, // no lease is shorter than a second
		"2026-11-30T18:00:00Z":      0,
		"2026-12-01T00:00:00Z":      0,
	} {
		got, err := encryptAt(p, instant(t, at))
		if got.Lease.ExpiresIn != lease || (lease == 0) != (codeOf(err) == refusal.NotAuthorized) {
			t.Errorf("%s: %+v, %v", at, got, err)
		}
		if err == nil && (got.Lease.RefreshIn < MinLease || got.Lease.RefreshIn > got.Lease.ExpiresIn) {
			t.Errorf("%s: refresh_in %s of %s", at, got.Lease.RefreshIn, got.Lease.ExpiresIn)
		}
	}
}

const officeHours = `windows: [{days: [mon, tue, wed, thu, fri], from: "08:00", to: "18:00", time_zone: Europe/Berlin}]`

// [CL-POL-010] [CL-POL-011] Also where the clocks change: Berlin is at +02:00 until 25 October 2026, then at +01:00.
func TestWindows(t *testing.T) {
	const night = `windows: [{days: [sat], from: "22:00", to: "03:30", time_zone: Europe/Berlin}]`
	const joined = `windows: [{days: [mon], from: "22:00", to: "24:00", time_zone: UTC}, {days: [tue], from: "00:00", to: "02:00", time_zone: UTC}]`
	const always = `windows: [{days: [mon, tue, wed, thu, fri, sat, sun], from: "00:00", to: "24:00", time_zone: UTC}]`
	for _, c := range []struct {
		window, at string
		left       time.Duration // until the end; 0: closed
	}{
		{officeHours, "2026-11-20T08:00:00+01:00", 10 * time.Hour}, // Friday
		{officeHours, "2026-11-20T07:59:59+01:00", 0},
		{officeHours, "2026-11-20T17:59:59+01:00", time.Second},
		{officeHours, "2026-11-20T18:00:00+01:00", 0},
		{officeHours, "2026-11-21T12:00:00+01:00", 0}, // Saturday
		{officeHours, "2026-11-20T07:30:00Z", 9*time.Hour + 30*time.Minute},
		{officeHours, "2026-10-23T06:00:00Z", 10 * time.Hour}, // summer time
		{officeHours, "2026-10-26T06:30:00Z", 0},              // 07:30, winter time
		{night, "2026-11-21T22:00:00+01:00", 5*time.Hour + 30*time.Minute},
		{night, "2026-11-22T03:29:00+01:00", time.Minute},               // Sunday: it began on Saturday
		{night, "2026-11-22T22:30:00+01:00", 0},                         // Sunday evening
		{night, "2026-11-21T01:00:00+01:00", 0},                         // Friday's night
		{night, "2026-10-25T02:30:00+02:00", 2 * time.Hour},             // an hour comes twice
		{night, "2026-10-25T02:30:00+01:00", time.Hour},                 // the second time
		{night, "2026-03-29T01:30:00+01:00", time.Hour},                 // an hour is left out
		{joined, "2026-11-23T23:00:00Z", 3 * time.Hour},                 // no gap at midnight
		{joined, "2026-11-24T02:00:00Z", 0},                             //
		{always, "2026-11-24T02:00:00Z", 7*24*time.Hour + 22*time.Hour}, // no further than a lease reaches
	} {
		at := instant(t, c.at)
		got, err := encryptAt(granting(t, c.window), at)
		if c.left == 0 {
			if codeOf(err) != refusal.NotAuthorized {
				t.Errorf("%s: open until %s", c.at, got.Ends)
			}
			continue
		}
		if left := got.Ends.Sub(at); err != nil || left != c.left || got.Lease.ExpiresIn != min(5*time.Minute, left) {
			t.Errorf("%s: %v left, lease %v, %v; want %v", c.at, left, got.Lease, err, c.left)
		}
	}
}

// [CL-POL-010] A clock that is one hour off refuses at the edge, and gives no more than the window.
func TestClockOneHourOff(t *testing.T) {
	p := granting(t, officeHours, "not_after: 2026-11-20T16:30:00Z")
	for at, allowed := range map[string]bool{"2026-11-20T06:30:00Z": false, "2026-11-20T07:30:00Z": true, "2026-11-20T15:30:00Z": true, "2026-11-20T17:30:00Z": false} {
		got, err := encryptAt(p, instant(t, at))
		if (err == nil) != allowed || allowed && !got.Ends.Equal(instant(t, "2026-11-20T16:30:00Z")) {
			t.Errorf("%s: %+v %v", at, got, err)
		}
	}
}

// The first grant that holds decides: one that is closed does not stand in the way of the next.
func TestClosedGrantsAreSkipped(t *testing.T) {
	p := parse(t, head+tail+"    not_after: 2026-01-01T00:00:00Z\n    lease: {expires_in: 1s}\n"+
		"  - {principals: [p], actions: [encrypt], topics: [\"*\"], when: \"false\", lease: {expires_in: 2s}}\n"+
		"  - {principals: [p], actions: [encrypt], topics: [\"*\"], lease: {expires_in: 3s}}\n")
	if got, err := encryptAt(p, time.Time{}); err != nil || got.Lease.ExpiresIn != 3*time.Second || !got.Ends.IsZero() {
		t.Error(got, err)
	}
}
