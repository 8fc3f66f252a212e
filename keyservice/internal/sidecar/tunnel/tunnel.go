// Package tunnel carries many streams over few connections: HTTP/2 of the standard library on a connection that two sidecars have shaken hands
// on, each stream a request and its answer that both go on until the stream ends. It sets every limit of HTTP/2 itself. Of Kafka, certificates
// and listeners it knows nothing.
package tunnel

import (
	"errors"
	"net/http"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/wire"
)

// Protocol is what both sides say in the TLS handshake (ALPN).
const Protocol = "cipherlane-tunnel/1"

// Window is how many bytes of one stream, in one direction, are on their way until its reader has taken them.
const Window = 32 << 10

// MostStreams is for how many streams a connection may have room: as many as their windows together fit into what HTTP/2 allows for one, so that
// streams that nobody reads leave the window of the connection open for the others.
const MostStreams = 120

// Limits of a connection beside its streams.
const (
	frameSize = 16 << 10 // of HTTP/2; each stream that is open has a buffer of it
	headers   = 4 << 10
	idle      = 5 * time.Minute  // without streams
	quiet     = 20 * time.Second // without a frame: then a ping, which has the same time again
	leave     = 5 * time.Second  // for the end of a stream to reach the other side
)

const (
	target = "http://tunnel/kafka"
	kind   = "application/vnd.apache.kafka"
)

// Options are the same for all connections.
type Options struct {
	Streams  int           // of a connection, at once
	Stall    time.Duration // for which one direction of a stream may make no progress while the other side should read
	Observer Observer
}

// Observer counts.
type Observer interface {
	TunnelOpened()
	TunnelEnded()
	StreamOpened()
	StreamEnded()
	// Moved is called with bytes that came from the tunnel and that went into it.
	Moved(in, out int)
}

// ErrRefused means that the other side of a tunnel does not take a stream, and tells why.
var ErrRefused = errors.New("the sidecar at the other end of the tunnel refused the connection")

func (o Options) http2() *http.HTTP2Config {
	return &http.HTTP2Config{
		MaxConcurrentStreams: o.Streams, MaxReadFrameSize: frameSize, MaxDecoderHeaderTableSize: headers, MaxEncoderHeaderTableSize: headers,
		MaxReceiveBufferPerStream: Window, MaxReceiveBufferPerConnection: max(o.Streams*Window, 64<<10),
		SendPingTimeout: quiet, PingTimeout: quiet,
	}
}

// protocols are those of a connection that is encrypted already, beneath what net/http sees of it.
func protocols() *http.Protocols {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	return &p
}

func (o Options) piped(moved func(in, out int), closed func()) *wire.Piped {
	return wire.NewPiped(o.Stall, func(in, out int) {
		o.Observer.Moved(in, out)
		if moved != nil {
			moved(in, out)
		}
	}, closed)
}
