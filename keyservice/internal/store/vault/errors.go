// Vault's answers, told apart. Only an empty 404 of the KV engine means that something is not there; it never reaches
// this file.

package vault

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/hashicorp/vault/api"

	"github.com/cipherlane/cipherlane/keyservice/internal/store"
)

// Reason says why Vault did not do what it was asked.
type Reason string

// The reasons. Those that pass by themselves are store.ErrUnavailable as well.
const (
	Unreachable  Reason = "unreachable"       // no connection, or TLS failed
	TimedOut     Reason = "timed out"         // no answer within the timeout
	Sealed       Reason = "sealed"            // 503
	Standby      Reason = "standby"           // 472, 473, a redirect, or 5xx of a node that has no leader
	RateLimited  Reason = "rate limited"      // 429
	Stale        Reason = "stale"             // 412: the node has not seen a write yet
	Failed       Reason = "failed"            // any other 5xx
	Denied       Reason = "permission denied" // 403 with a token that is valid
	TokenInvalid Reason = "token invalid"     // 403: expired or revoked, and no new one to be had
	Invalid      Reason = "invalid request"   // 400
	NoMount      Reason = "no such mount"     // 404: no engine at this path
	Conflict     Reason = "version conflict"  // check-and-set: somebody else wrote first
	BadAnswer    Reason = "bad answer"        // not what Vault would say, or too long
	Damaged      Reason = "damaged"           // what is stored is not what was written
)

// Error is a failure of one request to Vault. It never holds a token, a key, or a body of a request.
type Error struct {
	Reason Reason
	Op     string // what was asked: "GET cipherlane/data/…"
	Status int    // 0 when there was no answer
	Text   string // what Vault said, shortened
	Cause  error
}

// Error shows all but the cause's type.
func (e *Error) Error() string {
	text := fmt.Sprintf("vault: %s: %s", e.Op, e.Reason)
	if e.Status != 0 {
		text += fmt.Sprintf(" (status %d)", e.Status)
	}
	if e.Text != "" {
		text += ": " + e.Text
	}
	return text
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// Is makes errors that will pass store.ErrUnavailable.
func (e *Error) Is(target error) bool { return target == store.ErrUnavailable && e.passes() }

func (e *Error) passes() bool {
	switch e.Reason {
	case Unreachable, TimedOut, Sealed, Standby, RateLimited, Stale, Failed:
		return true
	case Denied, TokenInvalid, Invalid, NoMount, Conflict, BadAnswer, Damaged:
		return false
	}
	return false
}

// reasonOf gives the reason of an error of this package, or "".
func reasonOf(err error) Reason {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Reason
	}
	return ""
}

func damaged(op, format string, args ...any) error {
	return &Error{Reason: Damaged, Op: op, Text: fmt.Sprintf(format, args...)}
}

// classify tells what a failed request means.
func classify(op string, err error) *Error {
	answer, ok := errors.AsType[*api.ResponseError](err)
	if !ok {
		return &Error{Reason: transportReason(err), Op: op, Text: shorten(err.Error()), Cause: err}
	}
	text := shorten(strings.Join(answer.Errors, "; "))
	e := &Error{Op: op, Status: answer.StatusCode, Text: text, Reason: statusReason(answer.StatusCode, text)}
	if answer.RawError && !e.passes() {
		e.Reason = BadAnswer // not JSON: something else than Vault answers there
	}
	return e
}

func transportReason(err error) Reason {
	if netError, ok := errors.AsType[net.Error](err); errors.Is(err, context.DeadlineExceeded) || ok && netError.Timeout() {
		return TimedOut
	}
	return Unreachable
}

// Statuses that only Vault knows: of a disaster recovery secondary and of a performance standby.
const (
	statusDRSecondary = 472
	statusStandby     = 473
)

func statusReason(status int, text string) Reason {
	switch status {
	case http.StatusBadRequest:
		return refusalReason(text)
	case http.StatusForbidden:
		return Denied
	case http.StatusNotFound:
		if strings.Contains(text, "no handler for route") {
			return NoMount
		}
		return BadAnswer
	case http.StatusPreconditionFailed:
		return Stale
	case http.StatusTooManyRequests:
		return RateLimited
	case statusDRSecondary, statusStandby, http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect:
		return Standby
	}
	if status < http.StatusInternalServerError {
		return BadAnswer
	}
	return failureReason(status, text)
}

func refusalReason(text string) Reason {
	switch {
	case strings.Contains(text, "check-and-set parameter did not match"):
		return Conflict
	case strings.Contains(text, "from non-versioned to versioned data"): // a KV engine, for a moment after it was mounted
		return Failed
	default:
		return Invalid
	}
}

func failureReason(status int, text string) Reason {
	switch {
	case status == http.StatusServiceUnavailable && strings.Contains(text, "sealed"):
		return Sealed
	case strings.Contains(text, "standby"), strings.Contains(text, "local node not active"):
		return Standby
	default:
		return Failed
	}
}

const maxText = 300

// shorten puts a text on one line of bounded length.
func shorten(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) > maxText {
		return strings.ToValidUTF8(text[:maxText], "") + " …"
	}
	return text
}
