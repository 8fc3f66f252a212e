// Package config reads the file that says how the key service runs. What may be done with it is in the policy file.
package config

import (
	"errors"
	"path/filepath"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
	"github.com/cipherlane/cipherlane/keyservice/internal/tracing"
)

// Config is the whole of it. Paths are absolute or relative to the folder of the file.
type Config struct {
	Listen      string // host:port of the API, mutual TLS
	AdminListen string // host:port of health and metrics, no TLS
	TLS         TLS
	Policy      string
	Store       Store
	Audit       Audit
	GracePeriod time.Duration // from SIGTERM to the end
	Timeouts    Timeouts
	Limits      Limits
	Log         Log
	Tracing     Tracing

	JWT          *identity.JWTOptions // nil: none are taken
	Certificates *Certificates        // nil: none are given
}

// Tracing says where traces go; nowhere if Endpoint is empty.
type Tracing struct {
	Endpoint string
	CA       string // PEM; the system's if empty
	OneIn    int    // one call of so many is traced
}

// TLS names PEM files.
type TLS struct {
	Certificate string // the server's chain
	Key         string // its private key, mode 0600
	ClientCA    string // CAs that client certificates must chain to
}

// Timeouts of one connection or call.
type Timeouts struct {
	Headers time.Duration // to read the headers of a request, handshake included
	Request time.Duration // to read the whole request
	Answer  time.Duration // from the headers to the end of the answer
	Idle    time.Duration // without a request
}

// Limits bound what callers may take: all together, and each principal.
type Limits struct {
	Connections    int
	InFlight       int
	PrincipalRate  int // calls a second
	PrincipalBurst int // calls at once
}

// Log says how the service's own log looks.
type Log struct {
	Format string // text or json
	Level  string // debug, info, warn or error
}

// Default is what holds where the file says nothing.
func Default() Config {
	return Config{
		Listen:      "127.0.0.1:8443",
		AdminListen: "127.0.0.1:9443",
		GracePeriod: 10 * time.Second,
		Timeouts:    Timeouts{Headers: 5 * time.Second, Request: 10 * time.Second, Answer: 15 * time.Second, Idle: time.Minute},
		Limits:      Limits{Connections: 4096, InFlight: 1024, PrincipalRate: 200, PrincipalBurst: 5000},
		Log:         Log{Format: "text", Level: "info"},
		Audit:       Audit{MaxSize: 1 << 30},
		Tracing:     Tracing{OneIn: 100},
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
	if err := errors.Join(root.Members(c.fields()), c.checkTogether(root)); err != nil {
		return c, err
	}
	c.resolve(filepath.Dir(path))
	return c, nil
}

type (
	node   = strictyaml.Node
	field  = strictyaml.Field
	fields = map[string]strictyaml.Field
)

func (c *Config) fields() fields {
	return fields{
		"listen":       strictyaml.TextInto(&c.Listen),
		"admin_listen": strictyaml.TextInto(&c.AdminListen),
		"tls": section(true, fields{
			"certificate": strictyaml.Must(strictyaml.TextInto(&c.TLS.Certificate)),
			"key":         strictyaml.Must(strictyaml.TextInto(&c.TLS.Key)),
			"client_ca":   strictyaml.Must(strictyaml.TextInto(&c.TLS.ClientCA)),
		}),
		"jwt":          c.jwtField(),
		"certificates": c.certificatesField(),
		"policy":       strictyaml.Must(strictyaml.TextInto(&c.Policy)),
		"store":        c.Store.field(),
		"audit":        c.Audit.field(),
		"grace_period": strictyaml.DurationInto(&c.GracePeriod, time.Second, 10*time.Minute),
		"timeouts": section(false, fields{
			"headers": strictyaml.DurationInto(&c.Timeouts.Headers, 100*time.Millisecond, time.Minute),
			"request": strictyaml.DurationInto(&c.Timeouts.Request, 100*time.Millisecond, time.Minute),
			"answer":  strictyaml.DurationInto(&c.Timeouts.Answer, 2*time.Second, time.Minute),
			"idle":    strictyaml.DurationInto(&c.Timeouts.Idle, time.Second, time.Hour),
		}),
		"limits": section(false, fields{
			"connections": strictyaml.IntegerInto(&c.Limits.Connections, 1, 1_000_000),
			"in_flight":   strictyaml.IntegerInto(&c.Limits.InFlight, 1, 100_000),
			"principal": section(false, fields{
				"rate":  strictyaml.IntegerInto(&c.Limits.PrincipalRate, 1, 1_000_000),
				"burst": strictyaml.IntegerInto(&c.Limits.PrincipalBurst, 1, 10_000_000),
			}),
		}),
		"tracing": section(false, fields{
			"endpoint": strictyaml.Must(field{Read: func(n node) error { return readEndpoint(n, &c.Tracing.Endpoint) }}),
			"ca":       strictyaml.TextInto(&c.Tracing.CA),
			"one_in":   strictyaml.IntegerInto(&c.Tracing.OneIn, 1, 1_000_000),
		}),
		"log": section(false, fields{
			"format": word(&c.Log.Format, "text", "json"),
			"level":  word(&c.Log.Level, "debug", "info", "warn", "error"),
		}),
	}
}

func readEndpoint(n node, target *string) error {
	text, err := n.Text()
	if err != nil {
		return err
	}
	if err := tracing.CheckEndpoint(text); err != nil {
		return n.Errorf("%v", err)
	}
	*target = text
	return nil
}

func section(required bool, members fields) field {
	return field{Required: required, Read: func(n node) error { return n.Members(members) }}
}

func word(target *string, words ...string) field {
	return field{Read: func(n node) error { return n.OneOf(target, words...) }}
}

// resolve makes paths relative to the file, not to where the service is started.
func (c *Config) resolve(dir string) {
	paths := append(c.Store.paths(), &c.TLS.Certificate, &c.TLS.Key, &c.TLS.ClientCA, &c.Policy)
	paths = append(paths, c.Audit.paths()...)
	paths = append(paths, &c.Tracing.CA)
	if c.JWT != nil {
		paths = append(paths, &c.JWT.File, &c.JWT.CA)
	}
	for _, path := range paths {
		if *path != "" && !filepath.IsAbs(*path) {
			*path = filepath.Join(dir, *path)
		}
	}
}
