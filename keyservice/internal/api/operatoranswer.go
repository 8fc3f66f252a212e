// The answers of the operator's calls. None has a place for a data key [CL-OPR-002].

package api

import (
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/rewrap"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

// moment is a time as the answers write it.
type moment string

func momentOf(t time.Time) moment {
	if t.IsZero() {
		return ""
	}
	return moment(t.UTC().Format("2006-01-02T15:04:05.000Z"))
}

type keyInfo struct {
	Kid       string `json:"kid"`
	Created   moment `json:"created"`
	State     string `json:"state"`
	Destroyed moment `json:"destroyed,omitzero"`
	Records   int64  `json:"records"`
	Bytes     int64  `json:"bytes"`
}

type keysAnswer struct {
	Scope string    `json:"scope"`
	Keys  []keyInfo `json:"keys"`
	Next  string    `json:"next,omitzero"`
}

type scopeInfo struct {
	Scope    string       `json:"scope"`
	Kid      string       `json:"kid"`
	Created  moment       `json:"created"`
	Records  int64        `json:"records"`
	Bytes    int64        `json:"bytes"`
	Rotation rotationInfo `json:"rotation"`
}

type rotationInfo struct {
	Every   int64 `json:"every"`
	Records int64 `json:"records"`
	Bytes   int64 `json:"bytes"`
}

type scopesAnswer struct {
	Scopes []scopeInfo `json:"scopes"`
	Next   string      `json:"next,omitzero"`
}

type planAnswer struct {
	Scope     string    `json:"scope"`
	Count     int       `json:"count"`
	Records   int64     `json:"records"`
	Bytes     int64     `json:"bytes"`
	Oldest    moment    `json:"oldest,omitzero"`
	Newest    moment    `json:"newest,omitzero"`
	Topics    []string  `json:"topics"`
	Keys      []keyInfo `json:"keys"`
	Confirm   string    `json:"confirm"`
	ExpiresIn int64     `json:"expires_in"`
}

type destroyedAnswer struct {
	Scope     string `json:"scope"`
	Destroyed int    `json:"destroyed"`
	Current   string `json:"current"`
}

type leaseInfo struct {
	ID        string `json:"id"`
	Principal string `json:"principal"`
	Scope     string `json:"scope"`
	Action    string `json:"action"`
	Granted   moment `json:"granted"`
	Renewed   moment `json:"renewed"`
	Expires   moment `json:"expires"`
	Renewals  int64  `json:"renewals"`
}

type leasesAnswer struct {
	Instance string      `json:"instance"`
	Complete bool        `json:"complete"`
	Leases   []leaseInfo `json:"leases"`
	Next     string      `json:"next,omitzero"`
}

type revocationAnswer struct {
	ID        string `json:"id"`
	Principal string `json:"principal,omitzero"`
	Scope     string `json:"scope,omitzero"`
	Action    string `json:"action,omitzero"`
	Created   moment `json:"created"`
	By        string `json:"by"`
	Reason    string `json:"reason,omitzero"`
}

type revocationsAnswer struct {
	Revocations []revocationAnswer `json:"revocations"`
	Next        string             `json:"next,omitzero"`
}

type rewrapAnswer struct {
	State    rewrap.State `json:"state"`
	Started  moment       `json:"started,omitzero"`
	Finished moment       `json:"finished,omitzero"`
	By       string       `json:"by,omitzero"`
	Instance string       `json:"instance,omitzero"`
	KEKs     int          `json:"keks,omitzero"`
	KEKsDone int          `json:"keks_done"`
	KeysDone int          `json:"keys_done"`
	Error    string       `json:"error,omitzero"`
}

type policyInfo struct {
	Digest string `json:"digest"`
	Loaded moment `json:"loaded"`
}

type policyAnswer struct {
	policyInfo
	Topics int    `json:"topics"`
	Grants int    `json:"grants"`
	Text   string `json:"text"`
}

type part struct {
	Backend string `json:"backend,omitzero"`
	Ready   bool   `json:"ready"`
	Detail  string `json:"detail,omitzero"`
}

type revocationsInfo struct {
	Count int    `json:"count"`
	Age   *int64 `json:"age,omitzero"`
}

type statusAnswer struct {
	Version     string          `json:"version"`
	Instance    string          `json:"instance"`
	Started     moment          `json:"started"`
	Ready       bool            `json:"ready"`
	Store       part            `json:"store"`
	Audit       part            `json:"audit"`
	Policy      policyInfo      `json:"policy"`
	Revocations revocationsInfo `json:"revocations"`
	Leases      int             `json:"leases"`
}

func newKeyInfo(k service.Key) keyInfo {
	state := "readable"
	switch {
	case k.IsDestroyed():
		state = "destroyed"
	case k.Current:
		state = "current"
	}
	return keyInfo{k.ID.String(), momentOf(k.Created), state, momentOf(k.Destroyed), k.Records, k.Bytes}
}

func each[T, U any](all []T, form func(T) U) []U {
	formed := make([]U, len(all))
	for i, one := range all {
		formed[i] = form(one)
	}
	return formed
}

func newKeysAnswer(scope string, keys []service.Key, more bool) keysAnswer {
	answer := keysAnswer{Scope: scope, Keys: each(keys, newKeyInfo)}
	if more {
		answer.Next = keys[len(keys)-1].ID.String()
	}
	return answer
}

func newScopesAnswer(scopes []service.Scope, next string) scopesAnswer {
	return scopesAnswer{each(scopes, func(s service.Scope) scopeInfo {
		limits := rotationInfo{int64(s.Rotation.Every / time.Second), s.Rotation.Records, s.Rotation.Bytes}
		return scopeInfo{s.Scope, s.ID.String(), momentOf(s.Created), s.Records, s.Bytes, limits}
	}), next}
}

func newPlanAnswer(p service.Plan) any {
	return planAnswer{
		p.Scope, p.Count, p.Total.Records, p.Total.Bytes, momentOf(p.Oldest), momentOf(p.Newest), p.Topics,
		each(p.Keys, newKeyInfo), p.Confirm, int64(service.ConfirmWithin / time.Second),
	}
}

func newLeasesAnswer(l service.Leases) any {
	return leasesAnswer{l.Instance, l.Complete, each(l.Leases, newLeaseInfo), l.Next}
}

func newRevocationAnswer(r lease.Revocation) any { return formRevocation(r) }

func formRevocation(r lease.Revocation) revocationAnswer {
	return revocationAnswer{r.ID(), r.Principal, r.Scope, r.Action, momentOf(r.Created), r.By, r.Reason}
}

func newRevocationsAnswer(all []lease.Revocation, next string) revocationsAnswer {
	return revocationsAnswer{each(all, formRevocation), next}
}

func newRewrapAnswer(p rewrap.Progress) any {
	return rewrapAnswer{p.State, momentOf(p.Started), momentOf(p.Finished), p.By, p.Instance, p.KEKs, p.KEKsDone, p.KeysDone, p.Error}
}

func newPolicyAnswer(s policy.Summary) any {
	return policyAnswer{policyInfo{s.Digest, momentOf(s.Loaded)}, s.Topics, s.Grants, s.Text}
}

func newStatusAnswer(s service.Status) any {
	answer := statusAnswer{
		Version: s.Info.Version, Instance: s.Info.Instance, Started: momentOf(s.Info.Started), Ready: s.Ready(),
		Store:       part{s.Info.Backend, s.Store.Ready, s.Store.Detail},
		Audit:       part{"", s.Audit.Ready, s.Audit.Detail},
		Policy:      policyInfo{s.Policy.Digest, momentOf(s.Policy.Loaded)},
		Revocations: revocationsInfo{Count: s.Revocations}, Leases: s.Leases,
	}
	if s.Known {
		age := int64(s.Age / time.Second)
		answer.Revocations.Age = &age
	}
	return answer
}
