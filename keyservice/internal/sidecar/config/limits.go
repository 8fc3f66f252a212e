// The section limits.

package config

import (
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Limits bound what peers may take.
type Limits struct {
	Connections int
	Handshakes  int
	InFlight    int           // requests of one connection
	Frame       int           // bytes
	Memory      int           // bytes, of all frames that are read whole: half of it in each direction
	Handshake   time.Duration // to connect and shake hands
	Stall       time.Duration // without progress, in the middle of a frame
	MaxAge      time.Duration // of a connection; 0: none
}

func (l *Limits) field() field {
	return section(fields{
		"connections": strictyaml.IntegerInto(&l.Connections, 1, 1_000_000),
		"handshakes":  strictyaml.IntegerInto(&l.Handshakes, 1, 100_000),
		"in_flight":   strictyaml.IntegerInto(&l.InFlight, 1, 1_000_000),
		"frame":       strictyaml.IntegerInto(&l.Frame, 1<<10, 1<<30),
		"memory":      strictyaml.IntegerInto(&l.Memory, 1<<20, 1<<40),
		"handshake":   strictyaml.DurationInto(&l.Handshake, 100*time.Millisecond, time.Minute),
		"stall":       strictyaml.DurationInto(&l.Stall, 100*time.Millisecond, 10*time.Minute),
		"max_age":     strictyaml.DurationInto(&l.MaxAge, time.Second, 365*24*time.Hour),
	})
}
