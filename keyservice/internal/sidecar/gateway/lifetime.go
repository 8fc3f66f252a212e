// When a connection has to end by itself.

package gateway

import (
	"math/rand/v2"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/flow"
)

// endWith ends a connection before a certificate does, at different times for different connections.
func endWith(conn *flow.Conn, notAfter time.Time) {
	conn.EndAt(time.Now().Add(early(time.Until(notAfter))), "certificate")
}

// spread is the last part of a time over which the ends of connections that began together are spread.
const spread = 0.2

func early(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - spread*rand.Float64())) // #nosec G404 -- no secret
}
