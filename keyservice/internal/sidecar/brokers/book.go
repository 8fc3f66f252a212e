// Package brokers keeps what is known of the brokers of a cluster: where they are, and where clients reach them through sidecars.
package brokers

import (
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Limits of what a broker may say.
const (
	maxBrokers = 1000
	maxHost    = 255
)

// Options say where clients reach brokers: either at a listener of this sidecar for each (BasePort), or at other sidecars, whose
// port is Port.
type Options struct {
	Host     string // that clients are told; "{host}" stands for the one that the broker gave
	BasePort int    // broker n has port BasePort + n; 0: no listeners
	Port     int    // the one that clients are told if there are no listeners
	Forget   time.Duration

	// Listen opens the listener of a broker; what comes in goes to the address that upstream gives then.
	Listen func(id int32, port int, upstream func() string) (io.Closer, error)
	Log    *slog.Logger
}

// Book implements rewrite.Book. It is safe for concurrent use; make it with NewBook.
type Book struct {
	o Options

	mu    sync.Mutex
	known map[int32]*broker
	ended bool
}

type broker struct {
	upstream string
	listener io.Closer
	seen     time.Time
}

// NewBook makes an empty one.
func NewBook(o Options) *Book { return &Book{o: o, known: map[int32]*broker{}} }

// Advertise notes where a broker is, opens its listener if it is new, and gives the address for clients.
func (b *Book) Advertise(id int32, host string, port int32) (string, int32, error) {
	if host == "" || len(host) > maxHost || port < 1 || port > 65535 || id < 0 {
		return "", 0, fmt.Errorf("%q, port %d, is no address of a broker %d", host, port, id)
	}
	advertised := strings.ReplaceAll(b.o.Host, "{host}", host)
	if b.o.BasePort == 0 {
		return advertised, int32(b.o.Port), nil // #nosec G115 -- checked with the configuration
	}
	local := int64(b.o.BasePort) + int64(id)
	if local > 65535 {
		return "", 0, fmt.Errorf("the port of broker %d would be %d: choose a smaller base_port", id, local)
	}
	if err := b.note(id, int(local), net.JoinHostPort(host, strconv.Itoa(int(port)))); err != nil {
		return "", 0, err
	}
	return advertised, int32(local), nil // #nosec G115 -- checked above
}

func (b *Book) note(id int32, port int, upstream string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.known[id]
	switch {
	case b.ended:
		return net.ErrClosed
	case at != nil:
		if at.upstream != upstream {
			b.o.Log.Info("a broker has moved", "broker", id, "from", at.upstream, "to", upstream)
		}
		at.upstream, at.seen = upstream, time.Now()
		return nil
	case len(b.known) >= maxBrokers:
		return fmt.Errorf("there are more than %d brokers", maxBrokers)
	}
	listener, err := b.o.Listen(id, port, func() string { return b.upstream(id) })
	if err != nil {
		return err
	}
	b.known[id] = &broker{upstream, listener, time.Now()}
	b.o.Log.Info("a broker is reached here", "broker", id, "port", port, "upstream", upstream)
	return nil
}

func (b *Book) upstream(id int32) string {
	b.mu.Lock()
	defer b.mu.Unlock()
	if at := b.known[id]; at != nil {
		return at.upstream
	}
	return ""
}

// Alive closes the listeners of brokers that no list has had for a while.
func (b *Book) Alive(ids []int32) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, id := range ids {
		if at := b.known[id]; at != nil {
			at.seen = time.Now()
		}
	}
	for id, at := range b.known {
		if time.Since(at.seen) > b.o.Forget {
			delete(b.known, id)
			_ = at.listener.Close()
			b.o.Log.Info("a broker is gone", "broker", id)
		}
	}
}

// Count tells how many brokers have a listener.
func (b *Book) Count() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.known)
}

// Close closes all listeners.
func (b *Book) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ended = true
	for _, at := range b.known {
		_ = at.listener.Close()
	}
	return nil
}
