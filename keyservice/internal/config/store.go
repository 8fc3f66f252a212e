// The section store: where data keys are kept.

package config

import (
	"github.com/cipherlane/cipherlane/keyservice/internal/store/vault"
	"github.com/cipherlane/cipherlane/keyservice/internal/strictyaml"
)

// Store says where data keys are kept: in Vault if that is not nil, else in the embedded store.
type Store struct {
	Embedded Embedded
	Vault    *vault.Options
}

// Embedded names the two files of the embedded store.
type Embedded struct {
	Path string
	KEK  string
}

// paths gives all paths in it.
func (s *Store) paths() []*string {
	if s.Vault != nil {
		return vaultPaths(s.Vault)
	}
	return []*string{&s.Embedded.Path, &s.Embedded.KEK}
}

func vaultPaths(o *vault.Options) []*string {
	paths := []*string{}
	if o.CA != "" {
		paths = append(paths, &o.CA)
	}
	switch login := &o.Login; {
	case login.Token != nil:
		return append(paths, &login.Token.File)
	case login.AppRole != nil:
		return append(paths, &login.AppRole.RoleIDFile, &login.AppRole.SecretIDFile)
	case login.Kubernetes != nil:
		return append(paths, &login.Kubernetes.TokenFile)
	default:
		return append(paths, &login.Certificate.CertificateFile, &login.Certificate.KeyFile)
	}
}

func (s *Store) field() field {
	return field{Required: true, Read: func(n node) error {
		count := 0
		err := n.Members(fields{
			"embedded": counted(&count, func(n node) error {
				return n.Members(fields{
					"path": strictyaml.Must(strictyaml.TextInto(&s.Embedded.Path)),
					"kek":  strictyaml.Must(strictyaml.TextInto(&s.Embedded.KEK)),
				})
			}),
			"vault": counted(&count, s.readVault),
		})
		if err == nil && count != 1 {
			return n.Errorf("exactly one of \"embedded\" and \"vault\" is needed")
		}
		return err
	}}
}

// counted counts the members of which there may be one only.
func counted(count *int, read func(node) error) field {
	return field{Read: func(n node) error {
		*count++
		return read(n)
	}}
}

func (s *Store) readVault(n node) error {
	o := vault.Defaults()
	s.Vault = &o
	err := n.Members(fields{
		"addresses":   {Required: true, Read: func(n node) error { return readTexts(n, &o.Addresses) }},
		"ca":          strictyaml.TextInto(&o.CA),
		"namespace":   strictyaml.TextInto(&o.Namespace),
		"transit":     strictyaml.TextInto(&o.Transit),
		"kv":          strictyaml.TextInto(&o.KV),
		"path":        strictyaml.TextInto(&o.Path),
		"create_keks": strictyaml.TruthInto(&o.CreateKEKs),
		"timeout":     strictyaml.DurationInto(&o.Timeout, vault.MinTimeout, vault.MaxTimeout),
		"cache": section(false, fields{
			"ttl":  strictyaml.DurationInto(&o.Cache.TTL, 0, vault.MaxTTL),
			"keys": strictyaml.IntegerInto(&o.Cache.Keys, 1, vault.MaxKeys),
		}),
		"login": {Required: true, Read: func(n node) error { return readLogin(n, &o.Login) }},
	})
	if err != nil {
		return err
	}
	if err := o.Check(); err != nil {
		return n.Errorf("%v", err)
	}
	return nil
}

func readTexts(n node, into *[]string) error {
	_, err := n.List(func(n node) error {
		text, err := n.Text()
		*into = append(*into, text)
		return err
	})
	return err
}

func readLogin(n node, l *vault.Login) error {
	count := 0
	err := n.Members(fields{
		"token": counted(&count, func(n node) error {
			l.Token = &vault.TokenLogin{}
			return n.Members(fields{"file": strictyaml.Must(strictyaml.TextInto(&l.Token.File))})
		}),
		"approle": counted(&count, func(n node) error {
			l.AppRole = &vault.AppRoleLogin{Mount: "approle"}
			return n.Members(fields{
				"mount":          strictyaml.TextInto(&l.AppRole.Mount),
				"role_id_file":   strictyaml.Must(strictyaml.TextInto(&l.AppRole.RoleIDFile)),
				"secret_id_file": strictyaml.Must(strictyaml.TextInto(&l.AppRole.SecretIDFile)),
			})
		}),
		"kubernetes": counted(&count, func(n node) error {
			l.Kubernetes = &vault.KubernetesLogin{Mount: "kubernetes", TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token"} // #nosec G101 -- a path
			return n.Members(fields{
				"mount":      strictyaml.TextInto(&l.Kubernetes.Mount),
				"role":       strictyaml.Must(strictyaml.TextInto(&l.Kubernetes.Role)),
				"token_file": strictyaml.TextInto(&l.Kubernetes.TokenFile),
			})
		}),
		"certificate": counted(&count, func(n node) error {
			l.Certificate = &vault.CertificateLogin{Mount: "cert"}
			return n.Members(fields{
				"mount":       strictyaml.TextInto(&l.Certificate.Mount),
				"role":        strictyaml.TextInto(&l.Certificate.Role),
				"certificate": strictyaml.Must(strictyaml.TextInto(&l.Certificate.CertificateFile)),
				"key":         strictyaml.Must(strictyaml.TextInto(&l.Certificate.KeyFile)),
			})
		}),
	})
	if err == nil && count != 1 {
		return n.Errorf("exactly one of \"token\", \"approle\", \"kubernetes\" and \"certificate\" is needed")
	}
	return err
}
