// The calls of sidecars: what those whom they serve may do, and what goes on.

package keyclient

import (
	"context"
	"encoding/base64"
	"errors"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// Subject is one for whom a sidecar asks. What is empty is not told.
type Subject struct {
	Principal   string
	Remote      string // address
	Certificate []byte // DER
	Process     *Process
}

// Process is a program on the sidecar's host.
type Process struct {
	UID        int64             `json:"uid"`
	Executable string            `json:"executable"`
	SHA256     string            `json:"sha256"`
	Labels     map[string]string `json:"labels,omitempty"`
}

// Check is one thing that the subject wants to do.
type Check struct {
	Action string `json:"action"`
	Name   string `json:"name,omitzero"`
}

// Decision is the answer to a check. Code says why not.
type Decision struct {
	Allowed bool
	Code    string
	Lease   Lease
}

type accessRequest struct {
	Principal   string   `json:"principal"`
	Remote      string   `json:"remote,omitzero"`
	Certificate string   `json:"certificate,omitzero"`
	Process     *Process `json:"process,omitzero"`
	Checks      []Check  `json:"checks"`
}

// Access asks what a subject may do; the decisions have the order of the checks.
//
// Errors: *refusal.Error with a code of spec/errors.md.
func (c *Client) Access(ctx context.Context, s Subject, checks []Check) ([]Decision, error) {
	got, err := c.post(ctx, "/v1/access", accessRequest{
		s.Principal, s.Remote, base64.StdEncoding.EncodeToString(s.Certificate), s.Process, checks,
	})
	if err != nil {
		return nil, err
	}
	return got.decisions(len(checks))
}

func (a *answer) decisions(asked int) ([]Decision, error) {
	o, err := a.open()
	if err != nil {
		return nil, err
	}
	var entries []jsontext.Value
	if o.bad || o.members["decisions"].Kind() != '[' || json.Unmarshal(o.members["decisions"], &entries) != nil || len(entries) != asked {
		return nil, errBad
	}
	all := make([]Decision, len(entries))
	for i, entry := range entries {
		o := parse(entry)
		all[i] = Decision{Allowed: o.truth("allowed"), Lease: o.lease()}
		if !o.bad && !all[i].Allowed {
			all[i].Code = o.text("code")
		}
		if o.bad {
			return nil, errBad
		}
	}
	return all, nil
}

func (o *object) truth(name string) bool {
	kind := o.members[name].Kind()
	o.bad = o.bad || kind != 't' && kind != 'f'
	return kind == 't'
}

// Report tells every address what goes through a sidecar, and gives when the next report is wanted.
func (c *Client) Report(ctx context.Context, r view.Report) (next time.Duration, err error) {
	body, err := json.Marshal(r)
	if err != nil {
		return view.Interval, err
	}
	next = view.Interval
	var failures []error
	for _, address := range c.addresses {
		got, err := c.postTo(ctx, address+"/v1/sidecars", body)
		if err != nil {
			failures = append(failures, &refusal.Error{Code: refusal.Unavailable, Detail: address + " cannot be reached", Cause: err})
			continue
		}
		o, err := got.open()
		if err != nil {
			failures = append(failures, err)
			continue
		}
		if wanted := o.seconds("next_in"); !o.bad {
			next = wanted
		}
	}
	return next, errors.Join(failures...)
}
