// Writing answers and refusals.

package api

import (
	"net/http"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

type leaseTimes struct {
	RefreshIn int64 `json:"refresh_in"`
	ExpiresIn int64 `json:"expires_in"`
}

type encryptionKeyAnswer struct {
	Mode  string   `json:"mode"`
	Scope string   `json:"scope,omitzero"`
	Kid   string   `json:"kid,omitzero"`
	Key   *wireKey `json:"key,omitzero"`
	leaseTimes
}

type decryptionKeysAnswer struct {
	Plaintext string `json:"plaintext"`
	leaseTimes
	Keys []decryptionKeyAnswer `json:"keys"`
}

type decryptionKeyAnswer struct {
	Kid       string    `json:"kid"`
	Scope     string    `json:"scope,omitzero"`
	Key       *wireKey  `json:"key,omitzero"`
	RefreshIn int64     `json:"refresh_in,omitzero"`
	ExpiresIn int64     `json:"expires_in,omitzero"`
	Error     *kidError `json:"error,omitzero"`
}

type kidError struct {
	Code   refusal.Code `json:"code"`
	Detail string       `json:"detail"`
}

type rotateAnswer struct {
	Scope string `json:"scope"`
	Kid   string `json:"kid"`
}

// problem is RFC 9457 [CL-ERR-005].
type problem struct {
	Title     string       `json:"title"`
	Status    int          `json:"status"`
	Detail    string       `json:"detail"`
	Code      refusal.Code `json:"code"`
	RequestID string       `json:"request_id"`
}

// wireKey is the one form in which a key is serialised: in an answer to who may have it.
type wireKey struct{ key *datakey.Key }

// MarshalJSONTo implements json.MarshalerTo.
func (w *wireKey) MarshalJSONTo(out *jsontext.Encoder) error {
	text := w.key.AppendBase64([]byte{'"'})
	defer clear(text)
	return out.WriteValue(append(text, '"'))
}

func leaseOf(l policy.Lease) leaseTimes {
	return leaseTimes{RefreshIn: int64(l.RefreshIn / time.Second), ExpiresIn: int64(l.ExpiresIn / time.Second)}
}

func newEncryptionKeyAnswer(k service.EncryptionKey) encryptionKeyAnswer {
	answer := encryptionKeyAnswer{Mode: string(k.Mode), leaseTimes: leaseOf(k.Lease)}
	if k.Key != nil {
		answer.Scope, answer.Kid, answer.Key = k.Scope, k.Kid.String(), &wireKey{k.Key}
	}
	return answer
}

func newDecryptionKeysAnswer(d service.DecryptionKeys) decryptionKeysAnswer {
	answer := decryptionKeysAnswer{Plaintext: "reject", leaseTimes: leaseOf(d.Lease), Keys: make([]decryptionKeyAnswer, len(d.Keys))}
	if d.AcceptPlaintext {
		answer.Plaintext = "accept"
	}
	for i, k := range d.Keys {
		answer.Keys[i] = newDecryptionKeyAnswer(k, answer.leaseTimes)
	}
	return answer
}

func newDecryptionKeyAnswer(k service.DecryptionKey, l leaseTimes) decryptionKeyAnswer {
	if k.Refusal != nil {
		return decryptionKeyAnswer{Kid: k.Kid.String(), Error: &kidError{k.Refusal.Code, k.Refusal.Detail}}
	}
	return decryptionKeyAnswer{Kid: k.Kid.String(), Scope: k.Scope, Key: &wireKey{k.Key}, RefreshIn: l.RefreshIn, ExpiresIn: l.ExpiresIn}
}

// wiper is an answer that holds keys; they are wiped once it is written.
type wiper interface{ wipe() }

func (a encryptionKeyAnswer) wipe() { a.Key.wipe() }

func (a decryptionKeysAnswer) wipe() {
	for _, k := range a.Keys {
		k.Key.wipe()
	}
}

func (w *wireKey) wipe() {
	if w != nil {
		w.key.Wipe()
	}
}

// statuses are those of spec/errors.md; that of request-invalid may also be 415, of not-found 405, of
// key-service-unavailable 429.
var statuses = map[refusal.Code]int{
	refusal.RequestInvalid:   http.StatusBadRequest,
	refusal.TopicInvalid:     http.StatusBadRequest,
	refusal.Unauthenticated:  http.StatusUnauthorized,
	refusal.NotAuthorized:    http.StatusForbidden,
	refusal.TopicForbidden:   http.StatusForbidden,
	refusal.TopicUnknown:     http.StatusForbidden,
	refusal.NotFound:         http.StatusNotFound,
	refusal.RequestTooLarge:  http.StatusRequestEntityTooLarge,
	refusal.Internal:         http.StatusInternalServerError,
	refusal.AuditUnavailable: http.StatusServiceUnavailable,
	refusal.Unavailable:      http.StatusServiceUnavailable,
}

// writeJSON answers with v and overwrites its own copy of it. Nothing of an answer may be cached [CL-API-016].
func writeJSON(w http.ResponseWriter, status int, contentType string, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	defer clear(body)
	header := w.Header()
	header.Set("Content-Type", contentType)
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	_, err = w.Write(body)
	return err
}

func writeAnswer(w http.ResponseWriter, answer any) error {
	if p, ok := answer.(page); ok {
		return writePage(w, p)
	}
	return writeJSON(w, http.StatusOK, "application/json", answer)
}

func writeProblem(w http.ResponseWriter, status int, requestID string, refused *refusal.Error) error {
	return writeJSON(w, status, "application/problem+json", problem{
		Title: http.StatusText(status), Status: status, Detail: refused.Detail, Code: refused.Code, RequestID: requestID,
	})
}
