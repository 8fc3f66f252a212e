// Package ui makes the page of the live view: HTML and a style, no script, nothing that is loaded from elsewhere [CL-ACC-006].
package ui

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/view"
)

//go:embed page.html
var page string

//go:embed style.css
var style string

// Lease is one of a data key.
type Lease struct {
	Principal, Action, Scope string
	Renewals                 int64
	Left                     float64 // seconds
}

// View is what the page shows.
type View struct {
	Instance string
	Now      string
	Sidecars []view.Sidecar
	Leases   []Lease
}

// Style is the page's own.
func (View) Style() template.CSS { return template.CSS(style) } // #nosec G203 -- a constant

// Connections counts those of all sidecars.
func (v View) Connections() (n int) {
	for _, s := range v.Sidecars {
		n += len(s.Connections)
	}
	return n
}

// Denials counts what was refused lately.
func (v View) Denials() (n int) {
	for _, s := range v.Sidecars {
		n += len(s.Denials)
	}
	return n
}

// PerSecond adds up records.
func (v View) PerSecond() (n float64) {
	for _, s := range v.Sidecars {
		for _, u := range s.Uses {
			n += u.PerSecond
		}
	}
	return n
}

var form = template.Must(template.New("page").Funcs(template.FuncMap{
	"span": view.Span, "bytes": view.Size, "count": view.Count,
	"urgency": func(seconds float64, soon int) string {
		if seconds < float64(soon) {
			return "soon"
		}
		return ""
	},
}).Parse(page))

// SecurityPolicy is the Content-Security-Policy of the page: its own style, and nothing else.
func SecurityPolicy() string {
	sum := sha256.Sum256([]byte(style))
	return "default-src 'none'; style-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// Page makes the page.
func Page(v View) ([]byte, error) {
	v.Now = time.Now().UTC().Format("2006-01-02 15:04:05 UTC")
	var out bytes.Buffer
	if err := form.Execute(&out, v); err != nil {
		return nil, fmt.Errorf("make the page: %w", err)
	}
	return out.Bytes(), nil
}
