// The bodies and parameters of the operator's calls.

package api

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/cipherlane/cipherlane/keyservice/internal/lease"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/service"
)

type destroyRequest struct {
	Kids    *[]string `json:"kids"`
	All     *bool     `json:"all"`
	Confirm *string   `json:"confirm"`
}

type revokeRequest struct {
	Principal *string `json:"principal"`
	Scope     *string `json:"scope"`
	Action    *string `json:"action"`
	Reason    *string `json:"reason"`
}

func (r *destroyRequest) check(scope string) (service.Target, error) {
	target := service.Target{Scope: scope, All: r.All != nil}
	switch {
	case (r.Kids == nil) == (r.All == nil):
		return target, invalid("either kids or all is needed")
	case r.All != nil && !*r.All:
		return target, invalid("all is true or left out")
	case r.Confirm != nil && !isToken(*r.Confirm):
		return target, invalid("confirm is the token of the first step")
	case r.All != nil:
		return target, nil
	case len(*r.Kids) == 0:
		return target, invalid("kids is empty")
	}
	var err error
	target.Kids, err = parseKids(*r.Kids)
	return target, err
}

// isToken tells whether a text has the form of a token: base32.
func isToken(text string) bool {
	return len(text) == tokenSize && strings.Trim(text, "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567") == ""
}

func (r *revokeRequest) check() (names lease.Names, reason string, err error) {
	if r.Principal == nil && r.Scope == nil {
		return names, "", invalid("principal, scope, or both are needed")
	}
	if r.Principal != nil {
		if names.Principal, err = *r.Principal, checkPrincipal(*r.Principal); err != nil {
			return names, "", err
		}
	}
	if r.Scope != nil {
		if names.Scope, err = *r.Scope, checkScope(*r.Scope); err != nil {
			return names, "", err
		}
	}
	if r.Action != nil {
		names.Action = *r.Action
		if r.Principal == nil || r.Scope == nil || !policy.Action(names.Action).OnTopic() {
			return names, "", invalid("action is encrypt or decrypt, and goes with a principal and a scope")
		}
	}
	if r.Reason != nil {
		reason, err = *r.Reason, checkReason(*r.Reason)
	}
	return names, reason, err
}

func checkReason(text string) error {
	printable := utf8.ValidString(text) && !strings.ContainsFunc(text, func(c rune) bool { return !unicode.IsPrint(c) })
	if text == "" || len(text) > lease.MaxReason || !printable {
		return invalid("reason is 1 to %d bytes of printable UTF-8", lease.MaxReason)
	}
	return nil
}

// readOnly reads a body; the call takes no parameters.
func readOnly(w http.ResponseWriter, r *http.Request, request any) error {
	if err := checkParameters(r); err != nil {
		return err
	}
	return read(w, r, request)
}

func checkParameters(r *http.Request) error {
	_, err := parameters(r)
	return err
}

// parameters reads the query: known names only, none twice, none empty.
func parameters(r *http.Request, known ...string) (map[string]string, error) {
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the query is malformed")
	}
	read := make(map[string]string, len(values))
	for name, texts := range values {
		if !slices.Contains(known, name) {
			return nil, invalid("a query parameter that this call does not take; it takes: %s", strings.Join(known, ", "))
		}
		if len(texts) != 1 || texts[0] == "" {
			return nil, invalid("%s is given once, and not empty", name)
		}
		read[name] = texts[0]
	}
	return read, nil
}
