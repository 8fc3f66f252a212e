// The calls about certificates: signing, bootstrap tokens, the CA's rollover.

package api

import (
	"context"
	"net/http"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/certificate"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
	"github.com/cipherlane/cipherlane/keyservice/internal/token"
)

type certificateRequest struct {
	CSR *string `json:"csr"`
}

type certificateAnswer struct {
	Certificate string `json:"certificate"`
	CA          string `json:"ca"`
	NotAfter    string `json:"not_after"`
	leaseTimes
}

func (a *api) certificate(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	var request certificateRequest
	err := read(w, r, &request)
	if err == nil && request.CSR == nil {
		err = invalid("csr is missing")
	}
	if err != nil {
		return nil, a.service.Refuse(ctx, call.Record(policy.ActionCertificate), err)
	}
	issued, err := a.service.Certificate(ctx, call, *request.CSR)
	if err != nil {
		return nil, err
	}
	left := max(int64(time.Until(issued.NotAfter)/time.Second), 1)
	return certificateAnswer{
		string(issued.Chain), string(issued.CAs), issued.NotAfter.UTC().Format(time.RFC3339),
		leaseTimes{RefreshIn: max(left*2/3, 1), ExpiresIn: left}, // CL-IDN-025
	}, nil
}

type tokenRequest struct {
	Principal *string      `json:"principal"`
	ExpiresIn *wholeNumber `json:"expires_in"`
}

type tokenAnswer struct {
	Token     string `json:"token"`
	Principal string `json:"principal"`
	ExpiresIn int64  `json:"expires_in"`
}

func (t *tokenRequest) check() (principal string, life time.Duration, err error) {
	if t.Principal == nil {
		return "", 0, invalid("principal is missing")
	}
	if t.ExpiresIn == nil {
		return *t.Principal, token.DefaultLife, nil
	}
	if low, high := wholeNumber(token.MinLife/time.Second), wholeNumber(token.MaxLife/time.Second); *t.ExpiresIn < low || *t.ExpiresIn > high {
		return *t.Principal, 0, invalid("expires_in is %d to %d seconds", low, high)
	}
	return *t.Principal, time.Duration(*t.ExpiresIn) * time.Second, nil
}

func (a *api) newToken(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
	record := call.Record(service.ActionToken)
	var request tokenRequest
	if err := read(w, r, &request); err != nil {
		return nil, a.service.Refuse(ctx, record, err)
	}
	principal, life, err := request.check()
	if err != nil {
		record.Subject = principal
		return nil, a.service.Refuse(ctx, record, err)
	}
	text, made, err := a.service.NewToken(ctx, call, principal, life)
	if err != nil {
		return nil, err
	}
	return tokenAnswer{text, made.Principal, int64(life / time.Second)}, nil
}

type caRequest struct {
	Force bool `json:"force"`
}

type caAnswer struct {
	CA string `json:"ca"`
}

// rollCA makes the handler of a step of the rollover.
func (a *api) rollCA(step func(context.Context, *certificate.Embedded, bool) error) handler {
	return func(ctx context.Context, call service.Call, w http.ResponseWriter, r *http.Request) (any, error) {
		var request caRequest
		body, err := readBody(w, r, true)
		if err == nil && body != nil {
			err = decode(body, &request)
		}
		if err != nil {
			return nil, a.service.Refuse(ctx, call.Record(service.ActionCA), err)
		}
		cas, err := a.service.RollCA(ctx, call, func(ctx context.Context, e *certificate.Embedded) error { return step(ctx, e, request.Force) })
		if err != nil {
			return nil, err
		}
		return caAnswer{string(cas)}, nil
	}
}

func beginCA(ctx context.Context, e *certificate.Embedded, _ bool) error { return e.Begin(ctx) }

func finishCA(ctx context.Context, e *certificate.Embedded, force bool) error {
	return e.Finish(ctx, force)
}
