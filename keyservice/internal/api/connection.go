// The end of a connection whose caller could not say who it is: the next request may come with another certificate.

package api

import (
	"context"
	"net"
	"net/http"
	"time"
)

type connectionKey struct{}

// WithConnection keeps the connection for its requests: the ConnContext of the server that answers with this package's handler.
func WithConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// lastAnswer is how long a connection of HTTP/2 stays for the answer after which it ends.
const lastAnswer = 250 * time.Millisecond

// endConnection lets the answer that is written next be the connection's last. HTTP/2 would announce that ahead of the answer (GOAWAY), which
// Java's client of release 17 then takes for no answer at all (JDK-8335181), so there the connection ends a little later, unannounced; but only
// where it is the certificate that says nothing, and so no call by this connection is answered. Others may have better tokens.
func endConnection(w http.ResponseWriter, r *http.Request) {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close")
		return
	}
	byCertificate := len(r.TLS.PeerCertificates) > 0 && r.Header.Get("Authorization") == ""
	if connection, ok := r.Context().Value(connectionKey{}).(net.Conn); ok && byCertificate {
		time.AfterFunc(lastAnswer, func() { _ = connection.Close() })
	}
}
