// What the key service answers to operators: the members of spec/operator.md that the tool shows.

package operator

import (
	"context"
	"net/url"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// Scope is one scope with its current key.
type Scope struct {
	Scope    string    `json:"scope"`
	Kid      string    `json:"kid"`
	Created  time.Time `json:"created"`
	Records  int64     `json:"records"`
	Bytes    int64     `json:"bytes"`
	Rotation Rotation  `json:"rotation"`
}

// Rotation says when a scope gets a new key by itself. Every is in seconds.
type Rotation struct {
	Every   int64 `json:"every"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

// Part is something that the service depends on.
type Part struct {
	Backend string `json:"backend,omitzero"`
	Ready   bool   `json:"ready"`
	Detail  string `json:"detail,omitzero"`
}

// Status is how a replica is.
type Status struct {
	Version  string    `json:"version"`
	Instance string    `json:"instance"`
	Started  time.Time `json:"started"`
	Ready    bool      `json:"ready"`
	Detail   string    `json:"detail,omitzero"`
	Store    Part      `json:"store"`
	Audit    Part      `json:"audit"`
	Policy   struct {
		Digest string    `json:"digest"`
		Loaded time.Time `json:"loaded"`
	} `json:"policy"`
	Revocations struct {
		Count int   `json:"count"`
		Age   int64 `json:"age"` // seconds since they were read
	} `json:"revocations"`
	Leases int `json:"leases"`
}

// Policy is the one in force.
type Policy struct {
	Digest string    `json:"digest"`
	Loaded time.Time `json:"loaded"`
	Topics int       `json:"topics"`
	Grants int       `json:"grants"`
	Text   string    `json:"text"`
}

// Key is what is known of a data key; never the key.
type Key struct {
	Kid       string    `json:"kid"`
	Created   time.Time `json:"created"`
	State     string    `json:"state"`
	Destroyed time.Time `json:"destroyed,omitzero"`
	Records   int64     `json:"records"`
	Bytes     int64     `json:"bytes"`
}

// Lease is who may use keys of a scope.
type Lease struct {
	ID        string    `json:"id"`
	Principal string    `json:"principal"`
	Scope     string    `json:"scope"`
	Action    string    `json:"action"`
	Granted   time.Time `json:"granted"`
	Renewed   time.Time `json:"renewed"`
	Expires   time.Time `json:"expires"`
	Renewals  int64     `json:"renewals"`
}

// Leases are those that one replica gave.
type Leases struct {
	Instance string  `json:"instance"`
	Complete bool    `json:"complete"`
	Leases   []Lease `json:"leases"`
}

// View is what goes on: what sidecars reported to one replica, and the leases of data keys that it gave.
type View struct {
	Instance string         `json:"instance"`
	Sidecars []view.Sidecar `json:"sidecars"`
	Leases   []Lease        `json:"leases"`
}

// Revocation is one that was made.
type Revocation struct {
	ID        string    `json:"id,omitzero"`
	Principal string    `json:"principal,omitzero"`
	Scope     string    `json:"scope,omitzero"`
	Action    string    `json:"action,omitzero"`
	Created   time.Time `json:"created,omitzero"`
	By        string    `json:"by,omitzero"`
	Reason    string    `json:"reason,omitzero"`
}

// Doomed is what a destruction would make unreadable. Confirm is needed to do it, within ExpiresIn seconds.
type Doomed struct {
	Scope     string    `json:"scope"`
	Count     int64     `json:"count"`
	Records   int64     `json:"records"`
	Bytes     int64     `json:"bytes"`
	Oldest    time.Time `json:"oldest,omitzero"`
	Newest    time.Time `json:"newest,omitzero"`
	Topics    []string  `json:"topics"`
	Keys      []Key     `json:"keys"`
	Confirm   string    `json:"confirm"`
	ExpiresIn int64     `json:"expires_in"`
}

// Destroyed is the answer to the second step.
type Destroyed struct {
	Scope     string `json:"scope"`
	Destroyed int64  `json:"destroyed"`
	Current   string `json:"current"`
}

// Rewrap is how far a change of the KEKs is.
type Rewrap struct {
	State    string    `json:"state"`
	Started  time.Time `json:"started,omitzero"`
	Finished time.Time `json:"finished,omitzero"`
	By       string    `json:"by,omitzero"`
	Instance string    `json:"instance,omitzero"`
	KEKs     int64     `json:"keks"`
	KEKsDone int64     `json:"keks_done"`
	KeysDone int64     `json:"keys_done"`
	Error    string    `json:"error,omitzero"`
}

// Rotated is the answer to a rotation.
type Rotated struct {
	Scope string `json:"scope"`
	Kid   string `json:"kid"`
}

const pageSize = "1000"

// Scopes gives all of them.
func (c *Client) Scopes(ctx context.Context) ([]Scope, error) {
	all := []Scope{}
	err := pages(func(query url.Values) (string, error) {
		var page struct {
			Scopes []Scope `json:"scopes"`
			Next   string  `json:"next"`
		}
		err := c.Get(ctx, "/v1/scopes", query, &page)
		all = append(all, page.Scopes...)
		return page.Next, err
	})
	return all, err
}

// Keys gives all keys of a scope, in the order in which they were made.
func (c *Client) Keys(ctx context.Context, scope string) ([]Key, error) {
	all := []Key{}
	err := pages(func(query url.Values) (string, error) {
		var page struct {
			Keys []Key  `json:"keys"`
			Next string `json:"next"`
		}
		err := c.Get(ctx, ScopePath(scope, "keys"), query, &page)
		all = append(all, page.Keys...)
		return page.Next, err
	})
	return all, err
}

// Leases gives those of one replica; principal and scope may be empty, for all.
func (c *Client) Leases(ctx context.Context, principal, scope string) (Leases, error) {
	all := Leases{Leases: []Lease{}}
	err := pages(func(query url.Values) (string, error) {
		for name, value := range map[string]string{"principal": principal, "scope": scope} {
			if value != "" {
				query.Set(name, value)
			}
		}
		var page struct {
			Leases
			Next string `json:"next"`
		}
		err := c.Get(ctx, "/v1/leases", query, &page)
		all.Instance, all.Complete, all.Leases = page.Instance, page.Complete, append(all.Leases, page.Leases.Leases...)
		return page.Next, err
	})
	return all, err
}

// Revocations gives all of them.
func (c *Client) Revocations(ctx context.Context) ([]Revocation, error) {
	all := []Revocation{}
	err := pages(func(query url.Values) (string, error) {
		var page struct {
			Revocations []Revocation `json:"revocations"`
			Next        string       `json:"next"`
		}
		err := c.Get(ctx, "/v1/revocations", query, &page)
		all = append(all, page.Revocations...)
		return page.Next, err
	})
	return all, err
}

// pages asks until there is no next page.
func pages(ask func(query url.Values) (next string, err error)) error {
	for query := (url.Values{"limit": {pageSize}}); ; {
		next, err := ask(query)
		if err != nil || next == "" {
			return err
		}
		query.Set("after", next)
	}
}

// ScopePath is the path of a call about a scope.
func ScopePath(scope, call string) string { return "/v1/scopes/" + url.PathEscape(scope) + "/" + call }

// Token is a bootstrap token that was made.
type Token struct {
	Token     string `json:"token"`
	Principal string `json:"principal"`
	ExpiresIn int    `json:"expires_in"` // seconds
}

// CAs are those that are trusted, the signing one first.
type CAs struct {
	PEM string `json:"ca"`
}
