// The section tunnels: many connections between two sidecars over few TLS connections.

package config

import (
	"errors"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/tunnel"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Tunnels are opened by side client, and taken by side broker.
type Tunnels struct {
	Streams int // of a connection

	// Side client only.
	Connections int    // to each address
	Unsupported string // Own or Refuse: what happens with peers that take no tunnels
	OwnBytes    int    // a connection that carries more goes on alone
	OwnWithin   time.Duration
}

// Values of Unsupported.
const (
	Own    = "own"
	Refuse = "refuse"
)

func (c *Config) tunnelsField() field {
	return field{Read: func(n node) error {
		t := &Tunnels{Streams: 100}
		c.Tunnels = t
		return n.Members(fields{
			"streams":     strictyaml.IntegerInto(&t.Streams, 1, tunnel.MostStreams),
			"connections": strictyaml.IntegerInto(&t.Connections, 1, 64),
			"unsupported": word(&t.Unsupported, Own, Refuse),
			"own": section(fields{
				"bytes":  strictyaml.IntegerInto(&t.OwnBytes, 64<<10, 1<<30),
				"within": strictyaml.DurationInto(&t.OwnWithin, time.Second, time.Hour),
			}),
		})
	}}
}

// checkTunnels fills in what side client has by default.
func (c *Config) checkTunnels() error {
	t := c.Tunnels
	switch {
	case t == nil:
		return nil
	case c.Kafka == nil && (c.Transparent == nil || !c.Transparent.Kafka):
		return errors.New("tunnels go with kafka, or transparent, only: what is not Kafka (tcp) has connections of its own")
	case c.Side == Broker && (t.Connections != 0 || t.Unsupported != "" || t.OwnBytes != 0 || t.OwnWithin != 0):
		return errors.New("tunnels.connections, unsupported and own are for side: client, which opens tunnels; side: broker has streams only")
	case c.Side == Broker:
		return nil
	}
	t.Connections, t.OwnBytes = orElse(t.Connections, 4), orElse(t.OwnBytes, 1<<20)
	t.Unsupported, t.OwnWithin = orElse(t.Unsupported, Own), orElse(t.OwnWithin, 10*time.Second)
	return nil
}

func orElse[T comparable](value, otherwise T) T {
	if value == *new(T) {
		return otherwise
	}
	return value
}
