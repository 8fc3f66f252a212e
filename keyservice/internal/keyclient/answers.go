// The answers of the key service, read strictly [CL-KEY-003].

package keyclient

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/cipherlane/cipherlane/keyservice/internal/datakey"
	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// BadAnswer is the code for an answer that does not follow the specification.
const BadAnswer refusal.Code = "key-service-bad-answer"

// Codes for a key that is not what it should be.
const (
	KeyMalformed  refusal.Code = "key-malformed"
	KeyIDMismatch refusal.Code = "key-id-mismatch"
)

const (
	maxDepth = 8
	maxLease = 604_800 // seconds
)

// Mode is how a topic is written.
type Mode string

// Modes of a topic.
const (
	Encrypt Mode = "encrypt"
	Clear   Mode = "clear"
	Forbid  Mode = "forbid"
)

// Lease is a time for which an answer may be used, from when it was asked for.
type Lease struct{ Refresh, Expires time.Duration }

// Grant is how to write to a topic. Scope, Kid and Key are there only for [Encrypt].
type Grant struct {
	Mode  Mode
	Scope string
	Kid   datakey.ID
	Key   *datakey.Key
	Lease Lease
}

// Readable is how to read a topic. Keys has an entry for each kid that was asked for.
type Readable struct {
	AcceptPlaintext bool
	Lease           Lease
	Keys            map[datakey.ID]Key
}

// Key is the key of a kid, or why there is none. A refused one has no lease of its own.
type Key struct {
	Kid   datakey.ID
	Scope string
	Key   *datakey.Key
	Lease Lease
	Err   error
}

// codesOf is what spec/errors.md lists for each status.
var codesOf = map[int][]refusal.Code{
	http.StatusBadRequest:            {refusal.RequestInvalid, refusal.TopicInvalid},
	http.StatusUnauthorized:          {refusal.Unauthenticated},
	http.StatusForbidden:             {refusal.NotAuthorized, refusal.TopicForbidden, refusal.TopicUnknown},
	http.StatusRequestEntityTooLarge: {refusal.RequestTooLarge},
	http.StatusUnsupportedMediaType:  {refusal.RequestInvalid},
	http.StatusTooManyRequests:       {refusal.Unavailable},
	http.StatusInternalServerError:   {refusal.Internal},
	http.StatusServiceUnavailable:    {refusal.AuditUnavailable, refusal.Unavailable},
}

var codesOfKid = []refusal.Code{refusal.KeyUnknown, refusal.KeyDestroyed, refusal.ScopeMismatch, refusal.NotAuthorized}

var errBad = refusal.New(BadAnswer, "the answer does not follow the specification: is the address really the key service?")

type answer struct {
	status int
	kind   string
	body   []byte
}

// object reads the members of a JSON object; the first that is wrong makes it bad.
type object struct {
	members map[string]jsontext.Value
	bad     bool
}

func parse(data []byte) *object {
	o := &object{}
	o.bad = json.Unmarshal(data, &o.members) != nil || o.members == nil
	return o
}

// shallow tells whether nothing is nested deeper than allowed. What else is wrong the decoder says.
func shallow(data []byte) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := decoder.ReadToken(); err != nil {
			return errors.Is(err, io.EOF)
		}
		if decoder.StackDepth() > maxDepth {
			return false
		}
	}
}

func (o *object) text(name string) string {
	var text string
	value := o.members[name]
	o.bad = o.bad || value.Kind() != '"' || json.Unmarshal(value, &text) != nil
	return text
}

func (o *object) oneOf(name string, allowed ...string) string {
	text := o.text(name)
	o.bad = o.bad || !slices.Contains(allowed, text)
	return text
}

func (o *object) scope() string {
	scope := o.text("scope")
	o.bad = o.bad || names.CheckTopic(scope) != nil
	return scope
}

func (o *object) kid() datakey.ID {
	kid, err := datakey.ParseID(o.text("kid"))
	o.bad = o.bad || err != nil
	return kid
}

// key checks the form of the text only: what it holds is looked at when the whole answer has been.
func (o *object) key() string {
	text := o.text("key")
	plain, err := base64.StdEncoding.Strict().DecodeString(text)
	clear(plain)
	o.bad = o.bad || err != nil || strings.ContainsAny(text, "\r\n")
	return text
}

func (o *object) seconds(name string) time.Duration {
	text := string(o.members[name])
	n, err := strconv.Atoi(text)
	o.bad = o.bad || err != nil || strconv.Itoa(n) != text || n < 1 || n > maxLease
	return time.Duration(n) * time.Second
}

func (o *object) lease() Lease {
	l := Lease{o.seconds("refresh_in"), o.seconds("expires_in")}
	o.bad = o.bad || l.Refresh > l.Expires
	return l
}

// open looks at status, type, size and depth.
func (a *answer) open() (*object, error) {
	kind, _, err := mime.ParseMediaType(a.kind)
	switch {
	case len(a.body) > maxAnswer:
		return nil, errBad
	case a.status != http.StatusOK:
		return nil, a.refusal(err == nil && kind == "application/problem+json")
	case err != nil || kind != "application/json" || !shallow(a.body):
		return nil, errBad
	}
	return parse(a.body), nil
}

// refusal gives the error that an answer of another status than 200 is [CL-ERR-005] [CL-ERR-006].
func (a *answer) refusal(problem bool) error {
	if problem = problem && shallow(a.body); problem {
		o := parse(a.body)
		code := refusal.Code(o.text("code"))
		if !o.bad && slices.Contains(codesOf[a.status], code) {
			return refusal.New(code, "the key service refused with status %d", a.status)
		}
		problem = !o.bad
	}
	switch {
	case a.status == http.StatusTooManyRequests || a.status >= http.StatusInternalServerError:
		return refusal.New(refusal.Unavailable, "the key service answered with status %d", a.status)
	case problem && (a.status == http.StatusUnauthorized || a.status == http.StatusForbidden):
		return refusal.New(refusal.NotAuthorized, "the key service refused with status %d", a.status)
	}
	return errBad
}

func (a *answer) grant() (*Grant, error) {
	o, err := a.open()
	if err != nil {
		return nil, err
	}
	g := &Grant{Mode: Mode(o.oneOf("mode", string(Encrypt), string(Clear), string(Forbid))), Lease: o.lease()}
	if g.Mode != Encrypt {
		if o.bad {
			return nil, errBad
		}
		return g, nil
	}
	g.Scope, g.Kid = o.scope(), o.kid()
	text := o.key()
	if o.bad {
		return nil, errBad
	}
	g.Key, err = Receive(text, g.Kid)
	if err != nil {
		return nil, err
	}
	return g, nil
}

// Receive takes a key from an answer of the key service, in base64, and checks it [CL-KEY-004].
//
// Errors: key-malformed, key-id-mismatch.
func Receive(text string, kid datakey.ID) (*datakey.Key, error) {
	key, err := datakey.Receive(text, kid)
	switch {
	case errors.Is(err, datakey.ErrMalformed):
		return nil, refusal.New(KeyMalformed, "the key service gave %v", err)
	case err != nil:
		return nil, refusal.New(KeyIDMismatch, "%v: someone may be tampering", err)
	}
	return key, nil
}

func (a *answer) readable(asked []datakey.ID) (*Readable, error) {
	o, err := a.open()
	if err != nil {
		return nil, err
	}
	r := &Readable{AcceptPlaintext: o.oneOf("plaintext", "accept", "reject") == "accept", Lease: o.lease(), Keys: map[datakey.ID]Key{}}
	var entries []jsontext.Value
	if o.bad || o.members["keys"].Kind() != '[' || json.Unmarshal(o.members["keys"], &entries) != nil || len(entries) != len(asked) {
		return nil, errBad
	}
	texts := make(map[datakey.ID]string, len(entries))
	for _, entry := range entries {
		if err := r.take(parse(entry), asked, texts); err != nil {
			return nil, err
		}
	}
	for kid, text := range texts {
		k := r.Keys[kid]
		k.Key, k.Err = Receive(text, kid)
		r.Keys[kid] = k
	}
	return r, nil
}

// take reads one entry; the text of its key goes into texts.
func (r *Readable) take(o *object, asked []datakey.ID, texts map[datakey.ID]string) error {
	kid := o.kid()
	if _, twice := r.Keys[kid]; o.bad || twice || !slices.Contains(asked, kid) {
		return errBad
	}
	if refused, there := o.members["error"]; there {
		_, both := o.members["key"]
		e := parse(refused)
		code := refusal.Code(e.text("code"))
		if e.bad || both {
			return errBad
		}
		if !slices.Contains(codesOfKid, code) {
			code = refusal.NotAuthorized
		}
		r.Keys[kid] = Key{Kid: kid, Err: refusal.New(code, "the key service gives no key for kid %s", kid)}
		return nil
	}
	r.Keys[kid] = Key{Kid: kid, Scope: o.scope(), Lease: o.lease()}
	texts[kid] = o.key()
	if o.bad {
		return errBad
	}
	return nil
}
