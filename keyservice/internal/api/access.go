// The calls of sidecars: what those whom they serve may do, and what goes on.

package api

import (
	"context"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"net/http"
	"net/netip"
	"regexp"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/api/ui"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

// Limits of spec/limits.md.
const (
	maxChecks      = 256
	maxCertificate = 16 << 10
	maxExecutable  = 4096
	maxLabels      = 16
)

// routeSidecars has the calls of the live view.
func (a *api) routeSidecars(mux *http.ServeMux) {
	mux.Handle("/v1/sidecars", a.resource(map[string]endpoint{
		http.MethodGet:  {"sidecars", policy.ActionAdmin, a.recorded(policy.ActionAdmin, a.sidecars)},
		http.MethodPost: {"report", policy.ActionAccess, a.recorded(policy.ActionAccess, a.report)},
	}))
	mux.Handle("/ui", a.resource(map[string]endpoint{http.MethodGet: {"ui", policy.ActionAdmin, a.recorded(policy.ActionAdmin, a.page)}}))
}

type accessRequest struct {
	Principal   *string         `json:"principal"`
	Remote      *string         `json:"remote"`
	Certificate *string         `json:"certificate"`
	Process     *processRequest `json:"process"`
	Checks      *[]checkRequest `json:"checks"`
}

type processRequest struct {
	UID        *wholeNumber      `json:"uid"`
	Executable *string           `json:"executable"`
	SHA256     *string           `json:"sha256"`
	Labels     map[string]string `json:"labels"`
}

type checkRequest struct {
	Action *string `json:"action"`
	Name   *string `json:"name"`
}

type accessAnswer struct {
	Decisions []decisionAnswer `json:"decisions"`
}

type decisionAnswer struct {
	Allowed bool         `json:"allowed"`
	Code    refusal.Code `json:"code,omitzero"`
	leaseTimes
}

func (a *api) access(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	record := call.Record(policy.ActionAccess)
	var request accessRequest
	if err := read(w, r, &request); err != nil {
		return nil, a.service.Refuse(ctx, record, err)
	}
	subject, checks, err := request.check()
	record.Subject = subject.Principal
	if err != nil {
		return nil, a.service.Refuse(ctx, record, err)
	}
	if wait, ok := a.payForMany(call, len(checks)); !ok {
		x := &exchange{name: "access", action: policy.ActionAccess, call: call, w: w, r: r}
		return nil, a.tooMany(ctx, x, errRate, wait, "this principal asks for too much")
	}
	decisions, err := a.service.Access(ctx, call, subject, checks)
	return answered(decisions, err, newAccessAnswer)
}

func newAccessAnswer(decisions []service.AccessDecision) any {
	return accessAnswer{each(decisions, func(d service.AccessDecision) decisionAnswer {
		if d.Refusal != nil {
			return decisionAnswer{Code: d.Refusal.Code, leaseTimes: leaseOf(d.Lease)}
		}
		return decisionAnswer{Allowed: true, leaseTimes: leaseOf(d.Lease)}
	})}
}

func (r *accessRequest) check() (subject service.Subject, checks []service.AccessCheck, err error) {
	if r.Principal == nil || r.Checks == nil {
		return subject, nil, invalid("principal or checks is missing")
	}
	subject.Principal = *r.Principal
	if err := checkPrincipal(subject.Principal); err != nil {
		return subject, nil, err
	}
	if err := r.describe(&subject); err != nil {
		return subject, nil, err
	}
	if n := len(*r.Checks); n == 0 || n > maxChecks {
		return subject, nil, invalid("%d checks are not 1 to %d: ask in several calls", n, maxChecks)
	}
	for i, one := range *r.Checks {
		check, err := one.check()
		if err != nil {
			return subject, nil, invalid("checks[%d]: %v", i, err)
		}
		checks = append(checks, check)
	}
	return subject, checks, nil
}

func (r checkRequest) check() (c service.AccessCheck, err error) {
	if r.Action == nil {
		return c, errors.New("action is missing")
	}
	c.Action = policy.Action(*r.Action)
	if c.Action == policy.ActionCluster && r.Name != nil {
		return c, errors.New("cluster takes no name")
	}
	if r.Name != nil {
		c.Name = *r.Name
	}
	return c, checkAccess(c)
}

// describe fills in what conditions look at.
func (r *accessRequest) describe(subject *service.Subject) (err error) {
	if r.Remote != nil {
		if subject.Remote, err = netip.ParseAddr(*r.Remote); err != nil {
			return invalid("remote is not an address")
		}
	}
	if r.Certificate != nil {
		if subject.Certificate, err = readCertificate(*r.Certificate, subject.Principal); err != nil {
			return err
		}
	}
	if r.Process != nil {
		subject.Process, err = r.Process.check()
	}
	return err
}

// readCertificate takes one that says who the subject is: a sidecar cannot lend somebody's attributes to somebody else.
func readCertificate(text, principal string) (*x509.Certificate, error) {
	der, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || len(der) > maxCertificate {
		return nil, invalid("certificate is not base64 of at most %d bytes", maxCertificate)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, invalid("certificate is not an X.509 certificate in DER")
	}
	if name, err := identity.FromCertificate(leaf, time.Now()); err != nil || name != principal {
		return nil, invalid("certificate is not one of the principal that is valid now")
	}
	return leaf, nil
}

var digestForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

func shortTexts(labels map[string]string) bool {
	for name, value := range labels {
		if names.CheckPrincipal(name) != nil || len(value) > names.MaxPrincipal {
			return false
		}
	}
	return true
}

func (p *processRequest) check() (*policy.Process, error) {
	if p.UID == nil || p.Executable == nil || p.SHA256 == nil {
		return nil, invalid("process needs uid, executable and sha256")
	}
	switch {
	case *p.UID < 0 || *p.UID >= 1<<32:
		return nil, invalid("process.uid is 0 to 2^32 - 1")
	case *p.Executable == "" || len(*p.Executable) > maxExecutable:
		return nil, invalid("process.executable is a path of 1 to %d bytes", maxExecutable)
	case !digestForm.MatchString(*p.SHA256):
		return nil, invalid("process.sha256 is 64 lowercase hexadecimal digits")
	case len(p.Labels) > maxLabels || !shortTexts(p.Labels):
		return nil, invalid("process.labels are at most %d texts of up to %d bytes, with a name", maxLabels, names.MaxPrincipal)
	}
	return &policy.Process{UID: int64(*p.UID), Executable: *p.Executable, SHA256: *p.SHA256, Labels: p.Labels}, nil
}

func checkAccess(c service.AccessCheck) error {
	switch {
	case !c.Action.InKafka():
		return invalid("%q is not an action that sidecars ask for", c.Action)
	case c.Action.OnTopic():
		return names.CheckTopic(c.Name)
	case c.Action.On() != policy.Nothing:
		return names.CheckPrincipal(c.Name)
	}
	return nil
}

type reportAnswer struct {
	NextIn int64 `json:"next_in"`
}

// report takes what a sidecar tells of itself.
func (a *api) report(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	var report view.Report
	if err := readOnly(w, r, &report); err != nil {
		return nil, malformedError{err}
	}
	if err := report.Check(); err != nil {
		return nil, malformedError{invalid("%v", err)}
	}
	err := a.service.Report(ctx, call, report)
	return answered(view.Interval, err, func(d time.Duration) any { return reportAnswer{int64(d / time.Second)} })
}

type viewAnswer struct {
	Instance string         `json:"instance"`
	Sidecars []view.Sidecar `json:"sidecars"`
	Leases   []leaseInfo    `json:"leases"`
}

func (a *api) sidecars(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, malformedError{err}
	}
	v, err := a.service.Look(ctx, call)
	return answered(v, err, func(v service.View) any { return viewAnswer{v.Instance, v.Sidecars, each(v.Leases, newLeaseInfo)} })
}

// page is an answer for a browser.
type page []byte

func (a *api) page(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, malformedError{err}
	}
	v, err := a.service.Look(ctx, call)
	if err != nil {
		return nil, err
	}
	text, err := ui.Page(ui.View{Instance: v.Instance, Sidecars: v.Sidecars, Leases: each(v.Leases, func(l lease.Lease) ui.Lease {
		return ui.Lease{Principal: l.Principal, Action: l.Action, Scope: l.Scope, Renewals: l.Renewals, Left: max(0, time.Until(l.Expires).Seconds())}
	})})
	return page(text), err
}

// writePage lets the browser ask again by itself.
func writePage(w http.ResponseWriter, p page) error {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", ui.SecurityPolicy())
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Refresh", "5")
	_, err := w.Write(p)
	return err
}

func newLeaseInfo(l lease.Lease) leaseInfo {
	return leaseInfo{l.ID(), l.Principal, l.Scope, l.Action, momentOf(l.Granted), momentOf(l.Renewed), momentOf(l.Expires), l.Renewals}
}
