// Several handlers as one.

package flow

import (
	"context"
	"slices"
)

// Chain calls handlers in order. It is safe for concurrent use; make it with NewChain.
type Chain struct {
	handlers []Handler
	plans    [][]plan // by key and version
}

// plan is what each handler wants of an API, and the most that any wants.
type plan struct {
	wants []Want
	total Want
}

// NewChain asks every handler what it wants of every API; versions gives each understood key with its highest version.
func NewChain(versions map[int16]int16, handlers ...Handler) *Chain {
	c := &Chain{handlers: handlers}
	for key, highest := range versions {
		if missing := int(key) + 1 - len(c.plans); missing > 0 {
			c.plans = append(c.plans, make([][]plan, missing)...)
		}
		for version := range highest + 1 {
			c.plans[key] = append(c.plans[key], c.ask(key, version))
		}
	}
	return c
}

func (c *Chain) ask(key, version int16) plan {
	p := plan{wants: make([]Want, len(c.handlers))}
	for i, h := range c.handlers {
		w := h.Wants(key, version)
		p.wants[i] = w
		p.total.Request, p.total.Response = max(p.total.Request, w.Request), max(p.total.Response, w.Response)
	}
	return p
}

// of gives what handlers want of an API that is understood; of another one, nothing.
func (c *Chain) of(key, version int16) plan {
	if key < 0 || int(key) >= len(c.plans) || version < 0 || int(version) >= len(c.plans[key]) {
		return plan{wants: make([]Want, len(c.handlers))}
	}
	return c.plans[key][version]
}

// Wants gives the most that any handler wants.
func (c *Chain) Wants(key, version int16) Want { return c.of(key, version).total }

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
	wants := c.of(x.Key, x.Version).wants
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
	wants := c.of(x.Key, x.Version).wants
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
