// The operator's calls (spec/operator.md): reading their requests.

package api

import (
	"context"
	"net/http"
	"strconv"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

const (
	statusName   = "status"
	defaultLimit = 100
	maxLimit     = 1000
	idDigits     = 32
	tokenSize    = 26
)

func (a *api) routeOperator(mux *http.ServeMux) {
	admin := func(name string, h handler) endpoint {
		return endpoint{name, policy.ActionAdmin, a.recorded(policy.ActionAdmin, h)}
	}
	revoke := func(name string, h handler) endpoint {
		return endpoint{name, policy.ActionRevoke, a.recorded(policy.ActionRevoke, h)}
	}
	destroy := endpoint{"destroy", policy.ActionDestroy, a.recorded(policy.ActionDestroy, a.destroy)}
	for path, methods := range map[string]map[string]endpoint{
		"/v1/status":                 {http.MethodGet: admin(statusName, a.status)},
		"/v1/policy":                 {http.MethodGet: admin("policy", a.policy)},
		"/v1/scopes":                 {http.MethodGet: admin("scopes", a.scopes)},
		"/v1/scopes/{scope}/keys":    {http.MethodGet: admin("keys", a.keys)},
		"/v1/scopes/{scope}/destroy": {http.MethodPost: destroy},
		"/v1/leases":                 {http.MethodGet: admin("leases", a.leases)},
		"/v1/revocations":            {http.MethodGet: admin("revocations", a.revocations), http.MethodPost: revoke("revoke", a.revoke)},
		"/v1/revocations/{id}":       {http.MethodDelete: revoke("unrevoke", a.unrevoke)},
		"/v1/rewrap":                 {http.MethodGet: admin("rewrap-progress", a.rewrapProgress), http.MethodPost: admin("rewrap", a.rewrap)},
	} {
		mux.Handle(path, a.resource(methods))
	}
}

// recorded records the refusals that are made before the service is asked: of requests that are malformed.
func (a *api) recorded(action policy.Action, h handler) handler {
	return func(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
		answer, err := h(ctx, call, w, r)
		if malformed, ok := err.(malformedError); ok { //nolint:errorlint // made by unread, never wrapped
			record := call.Record(action)
			record.Scope = r.PathValue("scope")
			return nil, a.service.Refuse(ctx, record, malformed.cause)
		}
		return answer, err
	}
}

// malformedError is a refusal that the audit log does not have yet.
type malformedError struct{ cause error }

// Error shows the refusal.
func (e malformedError) Error() string { return e.cause.Error() }

func (a *api) status(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, malformedError{err}
	}
	s, err := a.service.Status(ctx, call)
	return answered(s, err, newStatusAnswer)
}

func (a *api) policy(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, malformedError{err}
	}
	p, err := a.service.Policy(ctx, call)
	return answered(p, err, newPolicyAnswer)
}

func (a *api) scopes(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	page, _, err := pageOf(r, checkScope)
	if err != nil {
		return nil, malformedError{err}
	}
	scopes, next, err := a.service.Scopes(ctx, call, page)
	return answered(scopes, err, func(s []service.Scope) any { return newScopesAnswer(s, next) })
}

func (a *api) keys(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	scope := r.PathValue("scope")
	page, _, err := pageOf(r, checkKid)
	if err == nil {
		err = checkScope(scope)
	}
	if err != nil {
		return nil, malformedError{err}
	}
	var after datakey.ID
	if page.After != "" {
		after, _ = datakey.ParseID(page.After) // checked above
	}
	keys, more, err := a.service.Keys(ctx, call, scope, after, page.Limit)
	return answered(keys, err, func(k []service.Key) any { return newKeysAnswer(scope, k, more) })
}

func (a *api) destroy(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	scope := r.PathValue("scope")
	var request destroyRequest
	err := checkScope(scope)
	if err == nil {
		err = readOnly(w, r, &request)
	}
	if err != nil {
		return nil, malformedError{err}
	}
	target, err := request.check(scope)
	if err != nil {
		return nil, malformedError{err}
	}
	if request.Confirm == nil {
		plan, err := a.service.PlanDestruction(ctx, call, target)
		return answered(plan, err, newPlanAnswer)
	}
	done, err := a.service.Destroy(ctx, call, target, *request.Confirm)
	return answered(done, err, func(d service.Destroyed) any {
		return destroyedAnswer{d.Scope, d.Count, d.Current.String()}
	})
}

func (a *api) leases(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	page, values, err := pageOf(r, checkID, "principal", "scope")
	if err == nil && len(values["principal"]) > names.MaxPrincipal {
		err = invalid("no principal's name has more than %d bytes", names.MaxPrincipal)
	}
	if scope, given := values["scope"]; err == nil && given {
		err = checkScope(scope)
	}
	if err != nil {
		return nil, malformedError{err}
	}
	l, err := a.service.ListLeases(ctx, call, values["principal"], values["scope"], page)
	return answered(l, err, newLeasesAnswer)
}

func (a *api) revocations(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	page, _, err := pageOf(r, checkID)
	if err != nil {
		return nil, malformedError{err}
	}
	all, next, err := a.service.ListRevocations(ctx, call, page)
	return answered(all, err, func(all []lease.Revocation) any { return newRevocationsAnswer(all, next) })
}

func (a *api) revoke(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	var request revokeRequest
	if err := readOnly(w, r, &request); err != nil {
		return nil, malformedError{err}
	}
	what, reason, err := request.check()
	if err != nil {
		return nil, malformedError{err}
	}
	revoked, err := a.service.Revoke(ctx, call, what, reason)
	return answered(revoked, err, newRevocationAnswer)
}

func (a *api) unrevoke(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	id := r.PathValue("id")
	_, err := query(r)
	if err == nil {
		err = checkID(id)
	}
	if err != nil {
		return nil, malformedError{err}
	}
	removed, err := a.service.Unrevoke(ctx, call, id)
	return answered(removed, err, newRevocationAnswer)
}

func (a *api) rewrap(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	if err := checkParameters(r); err != nil {
		return nil, malformedError{err}
	}
	if err := readNothing(w, r); err != nil {
		return nil, malformedError{err}
	}
	p, err := a.service.StartRewrap(ctx, call)
	return answered(p, err, newRewrapAnswer)
}

func (a *api) rewrapProgress(ctx context.Context, call service.Call, _ http.ResponseWriter, r *http.Request) (any, error) {
	if _, err := query(r); err != nil {
		return nil, malformedError{err}
	}
	p, err := a.service.RewrapProgress(ctx, call)
	return answered(p, err, newRewrapAnswer)
}

// answered turns what the service gave into an answer.
func answered[T any](given T, err error, form func(T) any) (any, error) {
	if err != nil {
		return nil, err
	}
	return form(given), nil
}

// query reads the parameters of a request without a body: known ones only, none twice.
func query(r *http.Request, known ...string) (map[string]string, error) {
	if r.ContentLength != 0 {
		return nil, invalid("this call takes no body")
	}
	return parameters(r, known...)
}

// pageOf reads which page is wanted, and other parameters.
func pageOf(r *http.Request, checkAfter func(string) error, known ...string) (service.Page, map[string]string, error) {
	page := service.Page{Limit: defaultLimit}
	values, err := query(r, append(known, "limit", "after")...)
	if err != nil {
		return page, nil, err
	}
	if text, given := values["limit"]; given {
		page.Limit, err = strconv.Atoi(text)
		if err != nil || page.Limit < 1 || page.Limit > maxLimit || strconv.Itoa(page.Limit) != text {
			return page, nil, invalid("limit is a number from 1 to %d", maxLimit)
		}
	}
	if text, given := values["after"]; given {
		page.After, err = text, checkAfter(text)
	}
	return page, values, err
}

func checkKid(text string) error {
	if _, err := datakey.ParseID(text); err != nil {
		return invalid("after: %v", err)
	}
	return nil
}

func checkID(text string) error {
	if _, err := datakey.ParseID(text); err != nil || len(text) != idDigits {
		return invalid("an id is %d lowercase hexadecimal digits", idDigits)
	}
	return nil
}

func checkPrincipal(name string) error {
	if err := names.CheckPrincipal(name); err != nil {
		return invalid("not a principal's name: %v", err)
	}
	return nil
}
