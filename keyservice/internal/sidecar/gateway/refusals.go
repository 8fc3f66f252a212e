// Connections that never begin.

package gateway

import (
	"errors"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
)

// Errors that metrics tell apart.
var (
	errHandshake = errors.New("the TLS handshake failed")
	errUpstream  = errors.New("no upstream can be reached")
)

func refusalOf(err error) string {
	switch {
	case errors.Is(err, trust.ErrEnded):
		return "certificate"
	case errors.Is(err, errUpstream):
		return "upstream"
	default:
		return "handshake"
	}
}
