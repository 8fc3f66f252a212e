package reference

import (
	"bytes"
	"encoding/base64"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

const (
	maxDepth  = 8
	maxAnswer = 1 << 20
	maxLease  = 604_800
)

var (
	nameForm    = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)
	kidForm     = regexp.MustCompile(`^[0-9a-f]{32}$`)
	integerForm = regexp.MustCompile(`^(0|[1-9]\d{0,6})$`)
	// What errors.md lists for each status.
	codesOf = map[int][]string{
		400: {"request-invalid", "topic-invalid"},
		401: {"unauthenticated"},
		403: {"not-authorized", "topic-forbidden", "topic-unknown"},
		413: {"request-too-large"},
		415: {"request-invalid"},
		429: {"key-service-unavailable"},
		500: {"internal"},
		503: {"audit-unavailable", "key-service-unavailable"},
	}
	codesOfKid = []string{"key-unknown", "key-destroyed", "scope-mismatch", "not-authorized"}
)

func validName(name string) bool { return nameForm.MatchString(name) && name != "." && name != ".." }

// object is a JSON object whose members are looked at one by one; the first that is wrong makes it bad.
type object struct {
	members map[string]jsontext.Value
	bad     bool
}

func parseObject(data []byte) *object {
	o := &object{}
	o.bad = !wellFormed(data) || json.Unmarshal(data, &o.members) != nil || o.members == nil
	return o
}

// wellFormed refuses what RFC 8259 refuses, duplicates at any depth, deep nesting, and anything behind the value [CL-KEY-003].
func wellFormed(data []byte) bool {
	decoder := jsontext.NewDecoder(bytes.NewReader(data))
	for {
		if _, err := decoder.ReadToken(); err != nil {
			return false
		}
		if decoder.StackDepth() > maxDepth && !without("depth") {
			return false
		}
		if decoder.StackDepth() == 0 {
			_, err := decoder.ReadToken()
			return err != nil && err.Error() == "EOF"
		}
	}
}

func (o *object) text(name string) string {
	var text string
	value, there := o.members[name]
	if !there || value.Kind() != '"' || json.Unmarshal(value, &text) != nil {
		o.bad = true
	}
	return text
}

func (o *object) oneOf(name string, allowed ...string) string {
	text := o.text(name)
	o.bad = o.bad || !slices.Contains(allowed, text)
	return text
}

func (o *object) seconds(name string) int {
	raw := string(o.members[name])
	number, err := strconv.Atoi(raw)
	if !integerForm.MatchString(raw) || err != nil || number < 1 || number > maxLease {
		o.bad = true
	}
	return number
}

func (o *object) lease() (refresh, expires int) {
	refresh, expires = o.seconds("refresh_in"), o.seconds("expires_in")
	o.bad = o.bad || (refresh > expires && !without("lease"))
	return refresh, expires
}

// key is base64 in its canonical form; of any size, which is looked at later. The form is judged here.
func (o *object) key() []byte {
	text := o.text("key")
	key, err := base64.StdEncoding.Strict().DecodeString(text)
	if err != nil || strings.ContainsAny(text, "\r\n") {
		o.bad = true
	}
	return key
}

// grant is what the key service says of encrypting for a topic.
type grant struct {
	mode, scope, kid string
	key              []byte
	refresh, expires int
}

var errBadAnswer = refuse("key-service-bad-answer", "the answer does not follow the specification")

func encryptionAnswer(status int, contentType string, body []byte) (grant, error) {
	if err := checkAnswer(status, contentType, body); err != nil {
		return grant{}, err
	}
	o := parseObject(body)
	g := grant{mode: o.oneOf("mode", "encrypt", "clear", "forbid")}
	g.refresh, g.expires = o.lease()
	if g.mode == "encrypt" {
		g.scope, g.kid, g.key = o.text("scope"), o.text("kid"), o.key()
		o.bad = o.bad || !validName(g.scope) || !kidForm.MatchString(g.kid)
	}
	if o.bad {
		return grant{}, errBadAnswer
	}
	if g.mode == "encrypt" {
		return g, checkKey(g.key, g.kid)
	}
	return g, nil
}

// checkKey is CL-KEY-004.
func checkKey(key []byte, kid string) error {
	if len(key) != keySize && !without("key-size") {
		return refuse("key-malformed", "%d bytes", len(key))
	}
	if computed, err := KeyID(key); (err != nil || computed != kid) && !without("key-id") {
		return refuse("key-id-mismatch", "the key does not hash to its kid %s", kid)
	}
	return nil
}

// held is the key of a kid, or why there is none.
type held struct {
	scope            string
	key              []byte
	refresh, expires int
	err              error
}

// readable is what the key service says of reading a topic.
type readable struct {
	plaintext        string
	refresh, expires int
	keys             map[string]held
}

func decryptionAnswer(asked []string, status int, contentType string, body []byte) (readable, error) {
	if err := checkAnswer(status, contentType, body); err != nil {
		return readable{}, err
	}
	o := parseObject(body)
	r := readable{plaintext: o.oneOf("plaintext", "accept", "reject"), keys: map[string]held{}}
	r.refresh, r.expires = o.lease()
	var entries []jsontext.Value
	if o.members["keys"].Kind() != '[' || json.Unmarshal(o.members["keys"], &entries) != nil {
		o.bad = true
	}
	for _, entry := range entries {
		kid, key, bad := keyEntry(entry)
		_, twice := r.keys[kid]
		o.bad = o.bad || bad || twice || (!slices.Contains(asked, kid) && !without("kid-not-asked"))
		r.keys[kid] = key
	}
	if o.bad || (len(r.keys) != len(asked) && !without("kid-not-asked")) {
		return readable{}, errBadAnswer
	}
	return checkKeys(r), nil
}

// checkKeys looks at the keys themselves, after the form of the whole answer.
func checkKeys(r readable) readable {
	for kid, key := range r.keys {
		if key.err == nil {
			key.err = checkKey(key.key, kid)
			r.keys[kid] = key
		}
	}
	return r
}

func keyEntry(entry jsontext.Value) (kid string, key held, bad bool) {
	o := parseObject(entry)
	kid = o.text("kid")
	problem, refused := o.members["error"]
	if _, both := o.members["key"]; refused && both {
		o.bad = true
	}
	if refused {
		key.err = kidProblem(problem, &o.bad)
		return kid, key, o.bad
	}
	key.scope, key.key = o.text("scope"), o.key()
	key.refresh, key.expires = o.lease()
	return kid, key, o.bad || !validName(key.scope) || !kidForm.MatchString(kid)
}

func kidProblem(problem jsontext.Value, bad *bool) error {
	o := parseObject(problem)
	code := o.text("code")
	*bad = *bad || o.bad
	if !slices.Contains(codesOfKid, code) {
		code = "not-authorized"
	}
	return refuse(code, "the key service gives no key")
}

// checkAnswer reads status, type and size; the error of a refusal is the code that it may have.
func checkAnswer(status int, contentType string, body []byte) error {
	media, _, err := mime.ParseMediaType(contentType)
	if len(body) > maxAnswer {
		return errBadAnswer
	}
	if status == 200 || without("status") {
		if (err != nil || media != "application/json") && !without("content-type") && !without("status") {
			return errBadAnswer
		}
		return nil
	}
	return refusal(status, err == nil && media == "application/problem+json", body)
}

func refusal(status int, isProblem bool, body []byte) error {
	if isProblem {
		o := parseObject(body)
		if code := o.text("code"); !o.bad && slices.Contains(codesOf[status], code) {
			return refuse(code, "the key service refused with %d", status)
		} else if o.bad {
			isProblem = false
		}
	}
	switch {
	case status == 429 || status >= 500:
		return refuse("key-service-unavailable", "status %d", status)
	case isProblem && (status == 401 || status == 403):
		return refuse("not-authorized", "status %d", status)
	}
	return errBadAnswer
}
