// Package refusal holds the codes with which the key service refuses (spec/errors.md), and the error that carries one.
package refusal

import "fmt"

// Code is the word of spec/errors.md for a refusal: the same in answers, audit log and metrics.
type Code string

// The codes that the key service answers with.
const (
	Unauthenticated  Code = "unauthenticated"
	NotAuthorized    Code = "not-authorized"
	TopicUnknown     Code = "topic-unknown"
	TopicForbidden   Code = "topic-forbidden"
	TopicInvalid     Code = "topic-invalid"
	ScopeMismatch    Code = "scope-mismatch"
	KeyUnknown       Code = "key-unknown"
	KeyDestroyed     Code = "key-destroyed"
	RequestInvalid   Code = "request-invalid"
	RequestTooLarge  Code = "request-too-large"
	NotFound         Code = "not-found"
	Internal         Code = "internal"
	AuditUnavailable Code = "audit-unavailable"
	Unavailable      Code = "key-service-unavailable"
)

// Error is a refusal. Detail is for the one who asked: it says what to do, and never holds a key or a cause from
// inside. Cause is for the service's own log.
type Error struct {
	Code   Code
	Detail string
	Cause  error
}

// New makes a refusal with a detail in the manner of fmt.Sprintf.
func New(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Because makes a refusal of code Internal or the like, with the cause for the log only.
func Because(code Code, cause error, detail string) *Error {
	return &Error{Code: code, Detail: detail, Cause: cause}
}

// Error shows code, detail and cause: for logs.
func (e *Error) Error() string {
	if e.Cause != nil {
		return fmt.Sprintf("%s: %s: %v", e.Code, e.Detail, e.Cause)
	}
	return fmt.Sprintf("%s: %s", e.Code, e.Detail)
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }
