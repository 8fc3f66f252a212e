// Several handlers as one.

package flow

import (
	"context"
	"slices"
)

// Chain calls handlers in order. It is safe for concurrent use; make it with NewChain.
type Chain struct {
	handlers []Handler
	wants    map[api][]Want // for each handler
	total    map[api]Want
}

type api struct{ key, version int16 }

// NewChain asks every handler what it wants of every API; versions gives each understood key with its highest version.
func NewChain(versions map[int16]int16, handlers ...Handler) *Chain {
	c := &Chain{handlers: handlers, wants: map[api][]Want{}, total: map[api]Want{}}
	for key, highest := range versions {
		for version := range highest + 1 {
			c.ask(api{key, version})
		}
	}
	return c
}

func (c *Chain) ask(a api) {
	wants, total := make([]Want, len(c.handlers)), Want{}
	for i, h := range c.handlers {
		w := h.Wants(a.key, a.version)
		wants[i] = w
		total.Request, total.Response = max(total.Request, w.Request), max(total.Response, w.Response)
	}
	c.wants[a], c.total[a] = wants, total
}

// Wants gives the most that any handler wants.
func (c *Chain) Wants(key, version int16) Want { return c.total[api{key, version}] }

// Open opens a connection with each handler. If one refuses, those before it are told that the connection is closed.
func (c *Chain) Open(ctx context.Context, conn *Conn) error {
	for i, h := range c.handlers {
		if opener, ok := h.(Opener); ok {
			if err := opener.Open(ctx, conn); err != nil {
				closed(c.handlers[:i], conn)
				return err
			}
		}
	}
	return nil
}

// Closed tells each handler that the connection has ended.
func (c *Chain) Closed(conn *Conn) { closed(c.handlers, conn) }

func closed(handlers []Handler, conn *Conn) {
	for _, h := range slices.Backward(handlers) {
		if closer, ok := h.(Closer); ok {
			closer.Closed(conn)
		}
	}
}

// Request calls the handlers that want the request, until one answers. When one has, those before it see the response.
func (c *Chain) Request(ctx context.Context, x *Exchange) error {
	wants := c.wants[api{x.Key, x.Version}]
	for i, h := range c.handlers {
		if wants[i].Request == Pass {
			continue
		}
		if err := h.Request(ctx, x); err != nil {
			return err
		}
		if x.answered && !x.NoResponse {
			return c.respond(ctx, x, i)
		}
		if x.answered {
			return nil
		}
	}
	return nil
}

// Response calls the handlers that want the response, the last first.
func (c *Chain) Response(ctx context.Context, x *Exchange) error {
	return c.respond(ctx, x, len(c.handlers))
}

func (c *Chain) respond(ctx context.Context, x *Exchange, below int) error {
	wants := c.wants[api{x.Key, x.Version}]
	for i := below - 1; i >= 0; i-- {
		if wants[i].Response == Pass {
			continue
		}
		if err := c.handlers[i].Response(ctx, x); err != nil {
			return err
		}
	}
	return nil
}
