// Package flow is the seam of the sidecar: what handles Kafka requests and responses on their way implements Handler, and nothing
// else of the sidecar needs to know it. The relay (package relay) reads frames, asks the handlers, and writes frames; the server
// (package server) puts the handlers into one Chain.
//
// A request passes the handlers in the order of the chain, its response in the reverse order. What no handler wants to see goes by
// as bytes: that is the fast path, and the reason for Wants.
package flow

import "context"

// Level says how much of a message a handler wants to see.
type Level uint8

// Levels.
const (
	Pass   Level = iota // nothing: the handler is not called
	Head                // the handler is called with everything but the decoded message: its bytes are not read into memory
	Tagged              // as Body for a response with tagged fields, as Head for one without: for what only tagged fields carry
	Body                // the handler is called with the decoded message; records in it stay bytes
)

// Want is what a handler wants to see of one API in one version.
type Want struct{ Request, Response Level }

// Handler takes part in what passes a connection. One value serves all connections: it must be safe for concurrent use. The two
// methods of one exchange never run at the same time, and Request returns before Response is called.
//
// What concerns one connection alone is kept with Conn.Keep, what concerns one exchange with Exchange.Keep.
type Handler interface {
	// Wants is asked once for each API key and version, when the chain is made.
	Wants(key, version int16) Want
	// Request sees a request before it is sent on. It may change x.Request (and call x.ChangeRequest), answer in the broker's place
	// (x.Answer), or do nothing. An error ends the connection: nothing of the request is sent on.
	//
	// It may wait (for a lease, for a key), but not longer than ctx: the client's next requests wait behind it. Byte slices within
	// x.Request (records, metadata) are the frame's own memory and hold until the request has been sent; strings hold for ever.
	Request(ctx context.Context, x *Exchange) error
	// Response sees a response before it is delivered, whether it comes from the broker or from Answer of a handler further along
	// the chain. It may change x.Response (and call x.ChangeResponse). An error ends the connection: nothing of the response is
	// delivered. Byte slices within x.Response hold until it returns.
	Response(ctx context.Context, x *Exchange) error
}

// Opener is what a Handler implements too if it wants to see connections before their first request. An error refuses the
// connection.
type Opener interface {
	Open(ctx context.Context, c *Conn) error
}

// Closer is what a Handler implements too if it wants to know when a connection has ended: once for each connection that its own Open
// (if it has one) has let through.
type Closer interface {
	Closed(c *Conn)
}
