// The section audit: where the audit log goes (spec/audit.md).

package config

import (
	"slices"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/audit"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Audit says where records go and which sinks must accept them.
type Audit struct {
	Name    string        // of the chain; empty for the one that the file has, or the host's
	File    string        // path, or empty
	MaxSize int           // bytes at which the file is rotated
	MaxAge  time.Duration // age at which it is, 0 for never
	Stdout  bool
	Syslog  *Syslog

	RequireStdout, RequireSyslog bool // whether these must accept a record too; the file always must
}

// Syslog names a syslog server. The files are PEM and for tls:// only.
type Syslog struct {
	Address     string
	CA          string
	Certificate string
	Key         string
}

const (
	minRotateSize = 64 << 10
	maxRotateSize = 1 << 40
)

func (a *Audit) field() field {
	return field{Required: true, Read: func(n node) error {
		if err := n.Members(a.members()); err != nil {
			return err
		}
		return a.check(n)
	}}
}

func (a *Audit) members() fields {
	return fields{
		"name":     strictyaml.TextInto(&a.Name),
		"file":     strictyaml.TextInto(&a.File),
		"max_size": strictyaml.IntegerInto(&a.MaxSize, minRotateSize, maxRotateSize),
		"max_age":  strictyaml.DurationInto(&a.MaxAge, time.Minute, 366*24*time.Hour),
		"stdout":   strictyaml.TruthInto(&a.Stdout),
		"syslog": {Read: func(n node) error {
			a.Syslog = &Syslog{}
			return a.Syslog.read(n)
		}},
		"require": {Read: func(n node) error {
			_, err := n.List(a.require)
			return err
		}},
	}
}

func (a *Audit) require(n node) error {
	sink := ""
	if err := n.OneOf(&sink, "stdout", "syslog"); err != nil {
		return err
	}
	a.RequireStdout = a.RequireStdout || sink == "stdout"
	a.RequireSyslog = a.RequireSyslog || sink == "syslog"
	return nil
}

func (a *Audit) check(n node) error {
	switch {
	case a.File == "" && !a.Stdout && a.Syslog == nil:
		return n.Errorf("\"file\" is missing: the audit log must go somewhere (file, stdout or syslog)")
	case a.RequireStdout && !a.Stdout:
		return n.Errorf("stdout is required and not switched on")
	case a.RequireSyslog && a.Syslog == nil:
		return n.Errorf("syslog is required and not configured")
	}
	return nil
}

func (s *Syslog) read(n node) error {
	err := n.Members(fields{
		"address":     strictyaml.Must(strictyaml.TextInto(&s.Address)),
		"ca":          strictyaml.TextInto(&s.CA),
		"certificate": strictyaml.TextInto(&s.Certificate),
		"key":         strictyaml.TextInto(&s.Key),
	})
	if err != nil {
		return err
	}
	if err := audit.CheckSyslogAddress(s.Address); err != nil {
		return n.Errorf("%v", err)
	}
	if (s.Certificate == "") != (s.Key == "") {
		return n.Errorf("certificate and key go together")
	}
	return nil
}

func (a *Audit) paths() []*string {
	all := []*string{&a.File}
	if a.Syslog != nil {
		all = append(all, &a.Syslog.CA, &a.Syslog.Certificate, &a.Syslog.Key)
	}
	return slices.DeleteFunc(all, func(path *string) bool { return *path == "" })
}
