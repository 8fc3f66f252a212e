// The sections jwt and certificates: who is known by what.

package config

import (
	"slices"
	"strings"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Certificates say how the key service gives certificates.
type Certificates struct {
	CA              string // CAEmbedded or CAVault
	Mount, Role     string // of Vault's PKI engine
	ServerRole      string // signs for servers; may be empty
	BootstrapTokens bool   // whether they are taken: then a client certificate is not required in the handshake
}

// The CAs.
const (
	CAEmbedded = "embedded"
	CAVault    = "vault"
)

func (c *Config) jwtField() field {
	return field{Read: func(n node) error {
		o := identity.JWTDefaults()
		c.JWT = &o
		err := n.Members(fields{
			"issuer":          strictyaml.Must(strictyaml.TextInto(&o.Issuer)),
			"audience":        strictyaml.Must(strictyaml.TextInto(&o.Audience)),
			"principal_claim": strictyaml.TextInto(&o.PrincipalClaim),
			"principals":      {Required: true, Read: func(n node) error { return readTexts(n, &o.Principals) }},
			"algorithms":      {Read: func(n node) error { return readAlgorithms(n, &o.Algorithms) }},
			"leeway":          strictyaml.DurationInto(&o.Leeway, 0, identity.MaxLeeway),
			"jwks_file":       strictyaml.TextInto(&o.File),
			"jwks_url":        strictyaml.TextInto(&o.URL),
			"ca":              strictyaml.TextInto(&o.CA),
			"refresh":         strictyaml.DurationInto(&o.Refresh, identity.MinRefresh, identity.MaxRefresh),
		})
		if err != nil {
			return err
		}
		if err := o.Check(); err != nil {
			return n.Errorf("%v", err)
		}
		return nil
	}}
}

func readAlgorithms(n node, into *[]string) error {
	*into = nil
	_, err := n.List(func(item node) error {
		var name string
		if err := item.OneOf(&name, identity.Algorithms...); err != nil {
			return err
		}
		if slices.Contains(*into, name) {
			return item.Errorf("%s is given twice", name)
		}
		*into = append(*into, name)
		return nil
	})
	return err
}

func (c *Config) certificatesField() field {
	return field{Read: func(n node) error {
		read := Certificates{Mount: "cipherlane-pki", Role: "cipherlane"}
		c.Certificates = &read
		pki := false
		err := n.Members(fields{
			"ca":               strictyaml.Must(word(&read.CA, CAEmbedded, CAVault)),
			"pki":              given(&pki, strictyaml.TextInto(&read.Mount)),
			"role":             given(&pki, strictyaml.TextInto(&read.Role)),
			"server_role":      given(&pki, strictyaml.TextInto(&read.ServerRole)),
			"bootstrap_tokens": strictyaml.TruthInto(&read.BootstrapTokens),
		})
		if err == nil && pki && read.CA != CAVault {
			err = n.Errorf("pki, role and server_role go with ca: vault only")
		}
		if err == nil {
			err = read.checkRoles(n)
		}
		return err
	}}
}

func (c *Certificates) checkRoles(n node) error {
	roles := []string{c.Role}
	if c.ServerRole != "" {
		roles = append(roles, c.ServerRole)
	}
	for _, role := range roles {
		if wrong := vault.CheckPKI(c.Mount, role); wrong != nil || strings.Contains(role, "/") {
			return n.Errorf("pki, role and server_role are a mount and names in Vault: %v", wrong)
		}
	}
	return nil
}

// given notes that a member is there.
func given(there *bool, f field) field {
	read := f.Read
	f.Read = func(n node) error {
		*there = true
		return read(n)
	}
	return f
}

// checkTogether refuses a CA that the store does not have.
func (c *Config) checkTogether(n node) error {
	if c.Certificates == nil {
		return nil
	}
	if want := map[bool]string{true: CAVault, false: CAEmbedded}[c.Store.Vault != nil]; c.Certificates.CA != want {
		return n.Errorf("certificates: this store goes with ca: %s", want)
	}
	return nil
}

// TakesTokens tells whether callers may come without a client certificate.
func (c *Config) TakesTokens() bool {
	return c.JWT != nil || c.Certificates != nil && c.Certificates.BootstrapTokens
}
