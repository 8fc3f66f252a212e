// Which connection a new stream goes over.

package tunnel

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Reasons why a stream gets no tunnel. Nothing is wrong: it can have a connection of its own.
var (
	ErrFull        = errors.New("all tunnels are full")
	ErrUnsupported = errors.New("the peer takes no tunnels: it did not choose " + Protocol + " in the TLS handshake (ALPN)")
)

// Pool keeps links by a key: an address. It is safe for concurrent use; make it with NewPool.
type Pool struct {
	connections int
	age         func() any

	mu    sync.Mutex
	peers map[string]*peer
	ended bool
	empty chan struct{} // closed when it has ended and no stream is left
	count int           // streams
}

type peer struct {
	links   []*Link // that take streams
	dialing int
	without time.Time     // until then the peer takes no tunnels
	changed chan struct{} // closed at the next change
}

// NewPool makes an empty one, of so many links for each key beside those that take no more streams.
func NewPool(connections int, age func() any) *Pool {
	return &Pool{connections: connections, age: age, peers: map[string]*peer{}, empty: make(chan struct{})}
}

// withoutFor is for how long a peer without tunnels is not asked again.
const withoutFor = time.Minute

// Get gives a link with room for a stream, which is then taken: give it back with Put. When there should be more links, dial makes one.
//
// Errors: ErrFull, ErrUnsupported (dial may give it, and is then not called again for a while), those of dial and of ctx.
func (p *Pool) Get(ctx context.Context, key string, dial func(context.Context) (*Link, error)) (*Link, error) {
	for {
		l, changed, err := p.try(key)
		switch {
		case l != nil || err != nil:
			return l, err
		case changed == nil:
			return p.add(ctx, key, dial)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// try gives a link, or an error, or what to wait for; or none of them: then a link is to be dialed.
func (p *Pool) try(key string) (l *Link, changed chan struct{}, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.peers[key]
	if at == nil {
		at = &peer{changed: make(chan struct{})}
		p.peers[key] = at
	}
	p.sweep(at)
	l = at.emptiest()
	complete := len(at.links)+at.dialing >= p.connections
	switch {
	case p.ended:
		return nil, nil, errors.New("the sidecar ends")
	case time.Now().Before(at.without):
		return nil, nil, ErrUnsupported
	case l != nil && (complete || l.streams == 0):
		l.streams++
		p.count++
		return l, nil, nil
	case !complete:
		at.dialing++
		return nil, nil, nil
	case at.dialing > 0:
		return nil, at.changed, nil
	default:
		return nil, nil, ErrFull
	}
}

// add makes a link and takes its first stream.
func (p *Pool) add(ctx context.Context, key string, dial func(context.Context) (*Link, error)) (*Link, error) {
	l, err := dial(ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	at := p.peers[key]
	at.dialing--
	close(at.changed)
	at.changed = make(chan struct{})
	if err != nil {
		if errors.Is(err, ErrUnsupported) {
			at.without = time.Now().Add(withoutFor)
		}
		return nil, err
	}
	l.streams, l.retired = 1, p.ended
	p.count++
	at.links = append(at.links, l)
	return l, nil
}

// Put tells that a stream of a link has ended.
func (p *Pool) Put(l *Link) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.streams--
	p.count--
	if l.streams == 0 && (l.retired || !p.usable(l)) {
		l.retired = true
		go l.close()
	}
	p.check()
}

func (p *Pool) check() {
	if p.ended && p.count == 0 {
		select {
		case <-p.empty:
		default:
			close(p.empty)
		}
	}
}

// usable tells whether a link takes streams when it has room.
func (p *Pool) usable(l *Link) bool {
	going := l.streams < l.room && l.conn.Available() == 0 // the other side wants no more
	return l.conn.Err() == nil && time.Now().Before(l.Retires) && l.Age == p.age() && !going
}

// sweep takes away links that take no more streams, and forgets peers that have none.
func (p *Pool) sweep(at *peer) {
	at.links = slices.DeleteFunc(at.links, func(l *Link) bool {
		if p.usable(l) {
			return false
		}
		if l.retired = true; l.streams == 0 {
			go l.close()
		}
		return true
	})
	for key, other := range p.peers {
		if other != at && len(other.links)+other.dialing == 0 && time.Now().After(other.without) {
			delete(p.peers, key)
		}
	}
}

// emptiest gives the link with the fewest streams, nil if all are full.
func (at *peer) emptiest() (l *Link) {
	for _, one := range at.links {
		if one.streams < one.room && (l == nil || one.streams < l.streams) {
			l = one
		}
	}
	return l
}

// Close waits until all streams have ended, or ctx has, and closes all links.
func (p *Pool) Close(ctx context.Context) {
	p.mu.Lock()
	p.ended = true
	p.check()
	p.mu.Unlock()
	select {
	case <-p.empty:
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, at := range p.peers {
		for _, l := range at.links {
			l.close()
		}
	}
}
