// The sections kafka, tcp and transparent: where clients come, and where they are led.

package config

import (
	"errors"
	"net"
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Kafka says where clients come, and where the brokers are.
type Kafka struct {
	Listen   string
	Upstream []string // host:port of brokers to begin with
	Brokers  Brokers
}

// Brokers says which address clients are given for a broker: BasePort + node id, each with a listener here; or Port, where another
// sidecar listens.
type Brokers struct {
	Listen   string // host of the listeners
	Host     string // that clients are told
	BasePort int
	Port     int
	Forget   time.Duration
}

// TCP is a listener whose bytes are copied.
type TCP struct {
	Name     string
	Listen   string
	Upstream []string
}

// Transparent takes connections that the kernel redirects here, and goes where they were going to.
type Transparent struct {
	Listen string
	Port   int // of the upstream; 0: the one that the connection was going to
	Kafka  bool
}

func (c *Config) kafkaField() field {
	return field{Read: func(n node) error {
		k := &Kafka{Brokers: Brokers{Forget: 5 * time.Minute}}
		c.Kafka = k
		return n.Members(fields{
			"listen":   strictyaml.Must(field{Read: func(n node) error { return address(n, &k.Listen) }}),
			"upstream": strictyaml.Must(field{Read: func(n node) error { return addresses(n, &k.Upstream) }}),
			"brokers": {Required: true, Read: func(n node) error {
				return n.Members(fields{
					"listen":    strictyaml.TextInto(&k.Brokers.Listen),
					"host":      strictyaml.TextInto(&k.Brokers.Host),
					"base_port": strictyaml.IntegerInto(&k.Brokers.BasePort, 1, maxPort),
					"port":      strictyaml.IntegerInto(&k.Brokers.Port, 1, maxPort),
					"forget":    strictyaml.DurationInto(&k.Brokers.Forget, time.Second, 24*time.Hour),
				})
			}},
		})
	}}
}

func (c *Config) tcpField() field {
	return field{Read: func(n node) error {
		_, err := n.List(func(item node) error {
			var t TCP
			err := item.Members(fields{
				"name":     strictyaml.Must(strictyaml.TextInto(&t.Name)),
				"listen":   strictyaml.Must(field{Read: func(n node) error { return address(n, &t.Listen) }}),
				"upstream": strictyaml.Must(field{Read: func(n node) error { return addresses(n, &t.Upstream) }}),
			})
			c.TCP = append(c.TCP, t)
			return err
		})
		return err
	}}
}

func (c *Config) transparentField() field {
	return field{Read: func(n node) error {
		t := &Transparent{Kafka: true}
		c.Transparent = t
		return n.Members(fields{
			"listen": strictyaml.Must(field{Read: func(n node) error { return address(n, &t.Listen) }}),
			"port":   strictyaml.IntegerInto(&t.Port, 1, maxPort),
			"kafka":  strictyaml.TruthInto(&t.Kafka),
		})
	}}
}

func (c *Config) checkKafka() error {
	if c.Kafka == nil {
		return nil
	}
	b := &c.Kafka.Brokers
	host, _, _ := net.SplitHostPort(c.Kafka.Listen)
	switch {
	case (b.BasePort == 0) == (b.Port == 0):
		return errors.New("kafka.brokers needs base_port (one listener here for each broker) or port (where another sidecar listens), not both")
	case b.Port != 0 && b.Listen != "":
		return errors.New("kafka.brokers.listen goes with base_port only")
	}
	if b.Listen == "" {
		b.Listen = host
	}
	if b.Host == "" && b.Port != 0 {
		b.Host = "{host}"
	}
	if b.Host == "" {
		b.Host = b.Listen
	}
	if ip := net.ParseIP(b.Host); ip != nil && ip.IsUnspecified() {
		return errors.New("kafka.brokers.host is needed: clients cannot connect to " + b.Host)
	}
	return nil
}

// checkLoopback refuses plaintext that others could reach [CL-SDC-002].
func (c *Config) checkLoopback() error {
	plaintext := []string{c.AdminListen}
	if c.Side == Client {
		for _, t := range c.TCP {
			plaintext = append(plaintext, t.Listen)
		}
		if c.Kafka != nil {
			plaintext = append(plaintext, c.Kafka.Listen, net.JoinHostPort(c.Kafka.Brokers.Listen, "0"))
		}
		if c.Transparent != nil {
			plaintext = append(plaintext, c.Transparent.Listen)
		}
	}
	if i := slices.IndexFunc(plaintext, func(a string) bool { return !isLoopback(a) }); i >= 0 {
		return errors.New(plaintext[i] + " is not a loopback address: what listens there speaks plaintext; use 127.0.0.1 or [::1]")
	}
	return nil
}

func isLoopback(address string) bool {
	host, _, _ := net.SplitHostPort(address)
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
