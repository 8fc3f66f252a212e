// Package api is the HTTP face of the key service (spec/key-service.md, spec/openapi.yaml): it reads requests, says who
// asks, and writes answers. What is allowed is decided in package service.
package api

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"path"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/gather"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/ratelimit"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

// Meter counts calls.
type Meter interface {
	// Began counts a call that is to be answered.
	Began()
	// Answered counts a call; code is empty for success.
	Answered(call string, code refusal.Code, took time.Duration)
	// Throttled counts a refusal for want of room: "in_flight" or "principal".
	Throttled(reason string)
}

// Options bound what callers may take.
type Options struct {
	InFlight int                // calls at the same time; more are refused with 429
	Timeout  time.Duration      // for one call, from its headers to its answer
	Limits   *ratelimit.Limiter // calls of each principal; nil for no limit

	Throttled *gather.Gatherer[string] // refusals for want of room, by principal; nil for a record of each
}

type api struct {
	service *service.Service
	callers *identity.Verifier
	meter   Meter
	log     *slog.Logger
	options Options
	places  chan struct{}
}

// actionUnknown stands in the audit log for calls that do not exist.
const actionUnknown policy.Action = "unknown"

// handler answers one call, or gives a refusal that the audit log already has.
type handler func(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error)

// New gives the handler of everything under /v1/.
func New(s *service.Service, callers *identity.Verifier, meter Meter, log *slog.Logger, options Options) http.Handler {
	a := &api{service: s, callers: callers, meter: meter, log: log, options: options, places: make(chan struct{}, options.InFlight)}
	mux := http.NewServeMux()
	mux.Handle("/v1/encryption-key", a.route("encryption-key", policy.ActionEncrypt, a.encryptionKey))
	mux.Handle("/v1/decryption-keys", a.route("decryption-keys", policy.ActionDecrypt, a.decryptionKeys))
	mux.Handle("/v1/scopes/{scope}/rotate", a.route("rotate", policy.ActionRotate, a.rotate))
	a.routeOperator(mux)
	a.routeSidecars(mux)
	mux.Handle("/v1/access", a.route("access", policy.ActionAccess, a.access))
	mux.Handle("/v1/certificate", a.route("certificate", policy.ActionCertificate, a.certificate))
	mux.Handle("/v1/tokens", a.route("token", service.ActionToken, a.newToken))
	mux.Handle("/v1/ca/begin", a.route("ca-begin", service.ActionCA, a.rollCA(beginCA)))
	mux.Handle("/v1/ca/finish", a.route("ca-finish", service.ActionCA, a.rollCA(finishCA)))
	unknown := a.resource(map[string]endpoint{anyMethod: {"unknown", actionUnknown, a.notFound}})
	mux.Handle("/", unknown)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != path.Clean(r.URL.Path) { // the mux would redirect
			unknown.ServeHTTP(w, r)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// exchange is one call on its way through route.
type exchange struct {
	name   string
	action policy.Action
	call   service.Call
	w      http.ResponseWriter
	r      *http.Request
	nobody bool // the caller could not say who it is
}

// endpoint is a method of a resource: its name in the metrics, what it is in the policy, and what answers it.
type endpoint struct {
	name   string
	action policy.Action
	handle handler
}

const anyMethod = ""

// route serves a call that takes POST.
func (a *api) route(name string, action policy.Action, h handler) http.Handler {
	return a.resource(map[string]endpoint{http.MethodPost: {name, action, h}})
}

// resource serves a path by its methods.
func (a *api) resource(methods map[string]endpoint) http.Handler {
	allowed := slices.Sorted(maps.Keys(methods))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		start := time.Now()
		a.meter.Began()
		ctx, cancel := context.WithTimeout(r.Context(), a.options.Timeout)
		defer cancel()
		e, ok := methods[r.Method]
		if !ok {
			if e = methods[allowed[0]]; allowed[0] != anyMethod {
				e.handle = wrongMethod(allowed)
			}
		}
		x := &exchange{e.name, e.action, service.Call{RequestID: rand.Text(), Remote: r.RemoteAddr}, w, r, false}
		answer, err := a.answer(ctx, x, e.handle)
		code := a.write(x, answer, err)
		a.meter.Answered(e.name, code, time.Since(start))
	})
}

// wrongMethod is the handler of the methods that a path does not take. It makes a refusal that is not recorded yet.
func wrongMethod(allowed []string) handler {
	return func(_ context.Context, _ service.Call, w http.ResponseWriter, _ *http.Request) (any, error) {
		methods := strings.Join(allowed, ", ")
		w.Header().Set("Allow", methods)
		return nil, refusal.Because(refusal.NotFound, errMethod, "this call takes "+methods)
	}
}

// answer runs the handler within the limits. A panic becomes a refusal, so that it is recorded and answered like one.
func (a *api) answer(ctx context.Context, x *exchange, h handler) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, a.refuse(ctx, x, fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	select {
	case a.places <- struct{}{}:
		defer func() { <-a.places }()
	default:
		return nil, a.tooMany(ctx, x, errBusy, time.Second, "too many calls are being answered")
	}
	if err := a.identify(ctx, x); err != nil {
		x.nobody = true
		return nil, a.stranger(ctx, x, err)
	}
	if wait, ok := a.options.Limits.Take(x.call.Principal, 1, time.Now()); !ok {
		return nil, a.tooMany(ctx, x, errRate, wait, "this principal calls too often")
	}
	if err = a.admit(x); err != nil {
		return nil, a.refuse(ctx, x, err)
	}
	answer, err = h(ctx, x.call, x.w, x.r)
	if errors.Is(err, errMethod) {
		err = a.refuse(ctx, x, err)
	}
	return answer, err
}

// admit asks the service. The status is told also when it is not known what is revoked: that is what it is for.
func (a *api) admit(x *exchange) error {
	err := a.service.Admit(x.call)
	if x.name == statusName && errors.Is(err, lease.ErrStale) {
		return nil
	}
	return err
}

// errMethod is told apart from other paths that are not found by its status only.
var errMethod = errors.New("method not allowed")

func (a *api) refuse(ctx context.Context, x *exchange, cause error) error {
	return a.service.Refuse(ctx, x.call.Record(x.action), cause)
}

// identify says who asks. What is known of him is recorded also when something of it is refused.
func (a *api) identify(ctx context.Context, x *exchange) error {
	who, err := a.callers.Identify(ctx, x.r, x.action == policy.ActionCertificate)
	x.call.Principal, x.call.Certificate, x.call.Claims, x.call.Bootstrap = who.Principal, who.Certificate, who.Claims, who.Bootstrap
	return err
}

func (a *api) write(x *exchange, answer any, err error) refusal.Code {
	if x.nobody {
		endConnection(x.w, x.r)
	}
	if err == nil {
		if keys, ok := answer.(wiper); ok {
			defer keys.wipe()
		}
		if err := writeAnswer(x.w, answer); err != nil {
			a.log.Warn("an answer could not be written", "request_id", x.call.RequestID, "error", err)
		}
		return ""
	}
	refused := refusal.Because(refusal.Internal, err, "the key service failed")
	errors.As(err, &refused)
	a.logRefusal(x, refused)
	if err := writeProblem(x.w, statusOf(refused), x.call.RequestID, refused); err != nil {
		a.log.Warn("a refusal could not be written", "request_id", x.call.RequestID, "error", err)
	}
	return refused.Code
}

func (a *api) logRefusal(x *exchange, refused *refusal.Error) {
	level := slog.LevelInfo
	switch status := statusOf(refused); {
	case status >= http.StatusInternalServerError:
		level = slog.LevelError
	case status == http.StatusTooManyRequests: // who calls too often must not fill this log either
		level = slog.LevelDebug
	}
	attributes := []any{
		"call", x.name, "code", refused.Code, "principal", x.call.Principal, "remote", x.call.Remote,
		"request_id", x.call.RequestID, "detail", refused.Detail,
	}
	if refused.Cause != nil {
		attributes = append(attributes, "cause", refused.Cause)
	}
	a.log.Log(x.r.Context(), level, "refused", attributes...)
}

func statusOf(refused *refusal.Error) int {
	switch {
	case errors.Is(refused, errMediaType):
		return http.StatusUnsupportedMediaType
	case errors.Is(refused, errMethod):
		return http.StatusMethodNotAllowed
	case errors.Is(refused, errBusy):
		return http.StatusTooManyRequests
	}
	if status, ok := statuses[refused.Code]; ok {
		return status
	}
	return http.StatusInternalServerError
}

func (a *api) notFound(ctx context.Context, call service.Call, _ http.ResponseWriter, _ *http.Request) (any, error) {
	return nil, a.service.Refuse(ctx, call.Record(actionUnknown), refusal.New(refusal.NotFound, "no such path"))
}
