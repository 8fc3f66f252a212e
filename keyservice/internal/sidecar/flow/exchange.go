// One request and its response.

package flow

import (
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Exchange is a request and, later, its response. A handler must not keep it after Response (or Request, for one without a
// response) has returned.
type Exchange struct {
	Conn          *Conn
	Key, Version  int16
	CorrelationID int32
	ClientID      *string // as the client sent it: not to be trusted
	Started       time.Time

	RequestSize  int // bytes of the request's frame as it came, without its length
	ResponseSize int // bytes of the response's frame as it came; 0 for one that a handler gave

	// NoResponse tells that the broker will not answer (Produce with acks=0): Response is never called, and Answer only keeps the
	// request from being sent.
	NoResponse bool

	Request  kmsg.Request  // nil unless a handler wants the Body of the request, and once it has been sent on
	Response kmsg.Response // nil unless a handler wants the Body of the response, or one has answered

	requestChanged, responseChanged, answered bool

	kept  keep
	holds *Holds
}

// ChangeRequest says that x.Request was changed and must be encoded anew.
func (x *Exchange) ChangeRequest() { x.requestChanged = true }

// ChangeResponse says that x.Response was changed and must be encoded anew.
func (x *Exchange) ChangeResponse() { x.responseChanged = true }

// Answer answers in the broker's place: the request is not sent on, handlers further along the chain do not see it, and those
// before see the answer in their Response. r must be of the request's API; its version is set here.
func (x *Exchange) Answer(r kmsg.Response) {
	r.SetVersion(x.Version)
	x.Response, x.answered, x.responseChanged = r, true, true
}

// Answered tells whether a handler has answered in the broker's place.
func (x *Exchange) Answered() bool { return x.answered }

// RequestChanged and ResponseChanged tell the relay what to encode anew.
func (x *Exchange) RequestChanged() bool { return x.requestChanged }

// ResponseChanged tells whether the response must be encoded anew.
func (x *Exchange) ResponseChanged() bool { return x.responseChanged }

// Hold says what gives back what a handler has taken for the request or the response that it was called with: it is called once that has been
// sent on, or was given up.
func (x *Exchange) Hold(giveBack func()) { *x.holds = append(*x.holds, giveBack) }

// Holds are what handlers hold for one message.
type Holds []func()

// HoldIn says where Hold puts what follows; it is the relay's.
func (x *Exchange) HoldIn(h *Holds) { x.holds = h }

// GiveBack gives all back.
func (h *Holds) GiveBack() {
	for _, giveBack := range *h {
		giveBack()
	}
	*h = nil
}

// Keep stores what a handler wants to find again in Response. key is of a type of the handler's own, as with context values.
func (x *Exchange) Keep(key, value any) { x.kept.set(key, value) }

// Kept gives what was stored under key, or nil.
func (x *Exchange) Kept(key any) any { return x.kept.get(key) }

// keep is a map for the few things that handlers store.
type keep []struct{ key, value any }

func (k *keep) set(key, value any) {
	for i := range *k {
		if (*k)[i].key == key {
			(*k)[i].value = value
			return
		}
	}
	*k = append(*k, struct{ key, value any }{key, value})
}

func (k *keep) get(key any) any {
	for i := range *k {
		if (*k)[i].key == key {
			return (*k)[i].value
		}
	}
	return nil
}
