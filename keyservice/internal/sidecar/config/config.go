// Package config reads the file that says how the sidecar runs (spec/sidecar.md). This file holds the whole; each section has a file.
package config

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
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
	Tunnels     *Tunnels  // nil: every connection has a TLS connection of its own
	Access      *Access   // nil: everybody may do what the brokers let the sidecar do
	AdminListen string
	GracePeriod time.Duration
	Limits      Limits
	Log         Log
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
		"tunnels":      c.tunnelsField(),
		"admin_listen": {Read: func(n node) error { return address(n, &c.AdminListen) }},
		"grace_period": strictyaml.DurationInto(&c.GracePeriod, time.Second, 10*time.Minute),
		"limits":       c.Limits.field(),
		"log": section(fields{
			"format": word(&c.Log.Format, "text", "json"),
			"level":  word(&c.Log.Level, "debug", "info", "warn", "error"),
		}),
	}
}

// checkTogether refuses what does not go together, and fills in what follows from the rest.
func (c *Config) checkTogether() error {
	if c.Kafka == nil && len(c.TCP) == 0 && c.Transparent == nil {
		return errors.New("one of kafka, tcp and transparent is needed: else there is nothing to do")
	}
	if c.Transparent != nil && (c.Side != Client || c.Kafka != nil) {
		return errors.New("transparent goes with side: client, and without kafka: brokers' addresses stay as they are")
	}
	if c.Limits.Frame > c.Limits.Memory/4 {
		return errors.New("limits.memory must be at least four times limits.frame: half of it is for each direction, and a frame is rounded up to a power of two")
	}
	return errors.Join(c.checkKafka(), c.checkCertificate(), c.checkLoopback(), c.checkAccess(), c.checkPayload(), c.checkTunnels())
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
