// The sections tls and identity: the sidecar's own certificate, and whom it trusts.

package config

import (
	"errors"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

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
