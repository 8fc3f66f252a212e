// Package config reads the file that says how the sidecar runs (spec/sidecar.md).
package config

import (
	"errors"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Sides.
const (
	Client = "client" // plaintext in, mutual TLS out
	Broker = "broker" // mutual TLS in, plaintext out
)

// Config is the whole of it. Paths are absolute or relative to the folder of the file.
type Config struct {
	Side        string
	Kafka       *Kafka
	TCP         []TCP
	Transparent *Transparent
	TLS         TLS
	Identity    *Identity // nil: the certificate of TLS is used as it is
	Payload     *Payload  // nil: values pass as they are
	Access      *Access   // nil: everybody may do what the brokers let the sidecar do
	AdminListen string
	GracePeriod time.Duration
	Limits      Limits
	Log         Log
}

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

// TLS names PEM files.
type TLS struct {
	CA          string // whom peers' certificates must chain to
	Certificate string
	Key         string
	ServerName  string // of all upstreams, in place of the host of their address
	Peers       *policy.Principals
}

// Identity says how certificates come from the key service.
type Identity struct {
	URLs      []string
	CA        string
	TokenFile string
	JWTFile   string
	DNSNames  []string // a broker side's own
}

// Limits bound what peers may take.
type Limits struct {
	Connections int
	Handshakes  int
	InFlight    int           // requests of one connection
	Frame       int           // bytes
	Memory      int           // bytes, of all frames that are read whole
	Handshake   time.Duration // to connect and shake hands
	Stall       time.Duration // without progress, in the middle of a frame
	MaxAge      time.Duration // of a connection; 0: none
}

// Log says how the sidecar's own log looks.
type Log struct{ Format, Level string }

// Default is what holds where the file says nothing.
func Default() Config {
	return Config{
		AdminListen: "127.0.0.1:9464",
		GracePeriod: 10 * time.Second,
		Limits: Limits{
			Connections: 4096, Handshakes: 64, InFlight: 1000, Frame: 100 << 20, Memory: 512 << 20,
			Handshake: 10 * time.Second, Stall: 30 * time.Second,
		},
		Log: Log{"text", "info"},
	}
}

// Read reads a file over the defaults. Errors name the file and the line.
func Read(path string) (Config, error) {
	c := Default()
	data, err := files.ReadTrusted(path, strictyaml.MaxSize)
	if err != nil {
		return c, err
	}
	root, err := strictyaml.Parse(path, data)
	if err != nil {
		return c, err
	}
	if err := root.Members(c.fields()); err != nil {
		return c, err
	}
	if err := c.checkTogether(); err != nil {
		return c, root.Errorf("%v", err)
	}
	c.resolve(filepath.Dir(path))
	return c, nil
}

type (
	node   = strictyaml.Node
	field  = strictyaml.Field
	fields = map[string]strictyaml.Field
)

const maxPort = 65535

func (c *Config) fields() fields {
	return fields{
		"side":         strictyaml.Must(word(&c.Side, Client, Broker)),
		"kafka":        c.kafkaField(),
		"tcp":          c.tcpField(),
		"transparent":  c.transparentField(),
		"tls":          c.TLS.field(),
		"identity":     c.identityField(),
		"payload":      c.payloadField(),
		"access":       c.accessField(),
		"admin_listen": {Read: func(n node) error { return address(n, &c.AdminListen) }},
		"grace_period": strictyaml.DurationInto(&c.GracePeriod, time.Second, 10*time.Minute),
		"limits":       c.Limits.field(),
		"log": section(fields{
			"format": word(&c.Log.Format, "text", "json"),
			"level":  word(&c.Log.Level, "debug", "info", "warn", "error"),
		}),
	}
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

func (t *TLS) field() field {
	return section(fields{
		"ca":          strictyaml.TextInto(&t.CA),
		"certificate": strictyaml.TextInto(&t.Certificate),
		"key":         strictyaml.TextInto(&t.Key),
		"server_name": strictyaml.TextInto(&t.ServerName),
		"peers": {Read: func(n node) error {
			var patterns []string
			if err := texts(n, &patterns); err != nil {
				return err
			}
			peers, err := policy.NewPrincipals(patterns)
			if err != nil {
				return n.Errorf("%v", err)
			}
			t.Peers = &peers
			return nil
		}},
	})
}

func (c *Config) identityField() field {
	return field{Read: func(n node) error {
		i := &Identity{}
		c.Identity = i
		return n.Members(fields{
			"urls":       {Required: true, Read: func(n node) error { return keyServices(n, &i.URLs) }},
			"ca":         strictyaml.Must(strictyaml.TextInto(&i.CA)),
			"token_file": strictyaml.TextInto(&i.TokenFile),
			"jwt_file":   strictyaml.TextInto(&i.JWTFile),
			"dns_names":  {Read: func(n node) error { return texts(n, &i.DNSNames) }},
		})
	}}
}

func section(members fields) field {
	return field{Read: func(n node) error { return n.Members(members) }}
}

func word(target *string, words ...string) field {
	return field{Read: func(n node) error { return n.OneOf(target, words...) }}
}

func texts(n node, into *[]string) error {
	_, err := n.List(func(item node) error {
		text, err := item.Text()
		*into = append(*into, text)
		return err
	})
	return err
}

// address reads host:port.
func address(n node, into *string) error {
	text, err := n.Text()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(text)
	if number, bad := strconv.Atoi(port); err != nil || bad != nil || number < 0 || number > maxPort {
		return n.Errorf("%q is not host:port", text)
	}
	*into = text
	return nil
}

func addresses(n node, into *[]string) error {
	_, err := n.List(func(item node) error {
		var text string
		err := address(item, &text)
		*into = append(*into, text)
		return err
	})
	return err
}

// checkTogether refuses what does not go together, and fills in what follows from the rest.
func (c *Config) checkTogether() error {
	if c.Kafka == nil && len(c.TCP) == 0 && c.Transparent == nil {
		return errors.New("one of kafka, tcp and transparent is needed: else there is nothing to do")
	}
	if c.Transparent != nil && (c.Side != Client || c.Kafka != nil) {
		return errors.New("transparent goes with side: client, and without kafka: brokers' addresses stay as they are")
	}
	if c.Limits.Frame > c.Limits.Memory/2 {
		return errors.New("limits.memory must be at least twice limits.frame: it is rounded up to a power of two")
	}
	return errors.Join(c.checkKafka(), c.checkCertificate(), c.checkLoopback(), c.checkAccess(), c.checkPayload())
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

// checkCertificate wants either files or the key service.
func (c *Config) checkCertificate() error {
	t, i := c.TLS, c.Identity
	switch {
	case (t.Certificate == "") != (t.Key == ""):
		return errors.New("tls.certificate and tls.key go together")
	case i != nil:
		return i.check(t)
	case t.Certificate == "" || t.CA == "":
		return errors.New("tls.ca, tls.certificate and tls.key are needed, or identity")
	}
	return nil
}

func (i *Identity) check(t TLS) error {
	switch {
	case i.TokenFile != "" && (i.JWTFile != "" || t.Certificate != ""):
		return errors.New("identity.token_file is for those who have neither a JWT nor a certificate yet: leave one out")
	case i.TokenFile == "" && i.JWTFile == "" && t.Certificate == "":
		return errors.New("identity needs a first proof: token_file, jwt_file, or tls.certificate and tls.key")
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

// resolve makes paths relative to the file.
func (c *Config) resolve(dir string) {
	paths := []*string{&c.TLS.CA, &c.TLS.Certificate, &c.TLS.Key}
	if i := c.Identity; i != nil {
		paths = append(paths, &i.CA, &i.TokenFile, &i.JWTFile)
	}
	if a := c.Access; a != nil {
		paths = append(paths, &a.CA, &a.Audit.File)
	}
	if c.Payload != nil {
		paths = append(paths, &c.Payload.CA)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}
