// Package view is the live view of what goes through sidecars: what each reports to the key service (spec/key-service.md, "Sidecars"),
// and what the key service remembers of it. It holds no key and no record. Times are told as seconds from now, so that
// clocks need not agree.
package view

import (
	"fmt"
	"slices"
	"unicode"
	"unicode/utf8"
)

// Limits of a report (spec/limits.md). What is more is left out, and Truncated says so.
const (
	MaxConnections = 200
	MaxUses        = 200
	MaxDenials     = 50
	MaxText        = 512 // bytes
	MaxNumber      = 1<<53 - 1
)

// Report is what one sidecar tells of itself.
type Report struct {
	Host        string       `json:"host"`
	Listens     []string     `json:"listens"` // addresses
	Uptime      float64      `json:"uptime"`
	Certificate float64      `json:"certificate_expires_in"` // of the sidecar; 0: it has none
	Connections []Connection `json:"connections"`
	Uses        []Use        `json:"uses"`
	Denials     []Denial     `json:"denials"`
	Truncated   bool         `json:"truncated,omitzero"`
}

// Connection is one that is open.
type Connection struct {
	Principal   string  `json:"principal"` // empty: not known
	Remote      string  `json:"remote"`
	Client      string  `json:"client,omitzero"`                 // client.id
	Process     string  `json:"process,omitzero"`                // at the other end of a loopback connection
	Since       float64 `json:"since"`                           // seconds ago
	Certificate float64 `json:"certificate_expires_in,omitzero"` // of the client; 0: it showed none
}

// Use is what somebody does with something now.
type Use struct {
	Principal string  `json:"principal"`
	Action    string  `json:"action"`
	Name      string  `json:"name,omitzero"`
	Requests  float64 `json:"requests"` // since the lease began first
	Records   float64 `json:"records,omitzero"`
	Bytes     float64 `json:"bytes,omitzero"`
	PerSecond float64 `json:"records_per_second,omitzero"` // since the last report
	Last      float64 `json:"last"`                        // seconds ago
	ExpiresIn float64 `json:"expires_in"`                  // of the lease
}

// Denial is something that was refused lately.
type Denial struct {
	Principal string  `json:"principal"`
	Action    string  `json:"action"`
	Name      string  `json:"name,omitzero"`
	Code      string  `json:"code"`
	Count     float64 `json:"count"`
	Last      float64 `json:"last"` // seconds ago
}

// Check says what of a report breaks the specification, or nil.
func (r *Report) Check() error {
	texts, numbers := r.members()
	switch {
	case len(r.Connections) > MaxConnections || len(r.Uses) > MaxUses || len(r.Denials) > MaxDenials || len(r.Listens) > MaxConnections:
		return fmt.Errorf("a list is too long: at most %d connections, %d uses, %d denials", MaxConnections, MaxUses, MaxDenials)
	case r.Host == "":
		return fmt.Errorf("host is missing")
	case slices.ContainsFunc(texts, func(text string) bool { return !plain(text) }):
		return fmt.Errorf("a text is longer than %d bytes or not printable", MaxText)
	case slices.ContainsFunc(numbers, func(n float64) bool { return !(n >= 0 && n <= MaxNumber) }): // NaN is not either
		return fmt.Errorf("a number is not 0 to 2^53 - 1")
	}
	return nil
}

func (r *Report) members() (texts []string, numbers []float64) {
	texts, numbers = append(texts, r.Host), append(numbers, r.Uptime, r.Certificate)
	texts = append(texts, r.Listens...)
	for _, c := range r.Connections {
		texts, numbers = append(texts, c.Principal, c.Remote, c.Client, c.Process), append(numbers, c.Since, c.Certificate)
	}
	for _, u := range r.Uses {
		texts = append(texts, u.Principal, u.Action, u.Name)
		numbers = append(numbers, u.Requests, u.Records, u.Bytes, u.PerSecond, u.Last, u.ExpiresIn)
	}
	for _, d := range r.Denials {
		texts, numbers = append(texts, d.Principal, d.Action, d.Name, d.Code), append(numbers, d.Count, d.Last)
	}
	return texts, numbers
}

// plain tells whether a text may be shown as it is: in a terminal too, where control characters could do anything.
func plain(text string) bool {
	if len(text) > MaxText || !utf8.ValidString(text) {
		return false
	}
	for _, r := range text {
		if !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// Plain makes a text that a report may hold: what cannot be shown becomes a question mark, what is too long is cut.
func Plain(text string) string {
	if plain(text) {
		return text
	}
	shown := make([]rune, 0, MaxText)
	size := 0
	for _, r := range text {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			r = '?'
		}
		if size += utf8.RuneLen(r); size > MaxText {
			break
		}
		shown = append(shown, r)
	}
	return string(shown)
}
