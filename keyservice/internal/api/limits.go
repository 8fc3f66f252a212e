// Refusals for want of room: too many calls at once, or too many of one principal.

package api

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

// errBusy is in the cause of every such refusal: its status is 429. errRate is the one of a single principal.
var (
	errBusy = errors.New("limits.in_flight is reached")
	errRate = fmt.Errorf("limits.principal is reached: %w", errBusy)
)

// manyPerCall are the kids, or checks, that cost as much as a call: each may be a line's part in the audit log.
const manyPerCall = 50

// tooMany refuses a call and says when to ask again. Only the first such refusal of a while is recorded by itself [CL-AUD-007].
func (a *api) tooMany(ctx context.Context, x *exchange, cause error, wait time.Duration, detail string) error {
	reason := "in_flight"
	if errors.Is(cause, errRate) {
		reason = "principal"
	}
	a.meter.Throttled(reason)
	seconds := int64((wait + time.Second - 1) / time.Second)
	x.w.Header().Set("Retry-After", strconv.FormatInt(max(1, seconds), 10))
	refused := refusal.Because(refusal.Unavailable, cause, detail+"; ask again")
	if a.options.Throttled.Add(x.call.Principal, time.Now()) {
		return a.refuse(ctx, x, refused)
	}
	return refused
}

// payForMany takes from the principal's budget what a call for many keys or checks costs beyond one.
func (a *api) payForMany(call service.Call, many int) (wait time.Duration, ok bool) {
	return a.options.Limits.Take(call.Principal, many/manyPerCall, time.Now())
}

// stranger refuses a caller that could not say who it is. Where no client certificate is needed, anybody may try, so all of them
// share one budget.
func (a *api) stranger(ctx context.Context, x *exchange, cause error) error {
	if wait, ok := a.options.Limits.Take("", 1, time.Now()); !ok {
		x.call.Principal = ""
		return a.tooMany(ctx, x, errRate, wait, "too many calls come from callers that are not known")
	}
	return a.refuse(ctx, x, cause)
}
