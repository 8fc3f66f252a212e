// What an administrator can set, and what is refused.

package vault

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Options say where Vault is and how the store uses it.
type Options struct {
	Addresses  []string      // https://host:port, tried in turn; http only for loopback
	CA         string        // PEM file that Vault's certificate must chain to; required for https
	Namespace  string        // Vault Enterprise or OpenBao; empty for the root namespace
	Transit    string        // mount of the transit engine
	KV         string        // mount of the KV v2 engine
	Path       string        // folder in KV under which everything is kept
	CreateKEKs bool          // whether a scope's transit key is made on first use
	Timeout    time.Duration // for everything that one call asks of Vault, retries included
	Cache      CacheOptions
	Login      Login
	Observer   Observer // may be nil
	// Wrap puts something around the connections to Vault, such as tracing. It may be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
}

// Observer sees every request to Vault when it is over. operation is a word of few: the engine and what it does; status is 0 where no
// answer came.
type Observer func(operation string, status int, took time.Duration)

// CacheOptions bound what is kept in memory.
type CacheOptions struct {
	TTL  time.Duration // nothing read from Vault is believed for longer; 0 keeps nothing
	Keys int           // unwrapped keys held at once
}

// Login is the way to a token: exactly one of them.
type Login struct {
	Token       *TokenLogin
	AppRole     *AppRoleLogin
	Kubernetes  *KubernetesLogin
	Certificate *CertificateLogin
}

// TokenLogin reads a token from a file, for example a Vault Agent's sink.
type TokenLogin struct{ File string }

// AppRoleLogin reads a role id and a secret id from files.
type AppRoleLogin struct{ Mount, RoleIDFile, SecretIDFile string }

// KubernetesLogin sends the token of the pod's service account.
type KubernetesLogin struct{ Mount, Role, TokenFile string }

// CertificateLogin shows a TLS client certificate. Role may be empty: then Vault finds the one that matches.
type CertificateLogin struct{ Mount, Role, CertificateFile, KeyFile string }

// Defaults hold where nothing is said.
func Defaults() Options {
	return Options{
		Transit: "cipherlane-transit", KV: "cipherlane", Path: "keyservice", CreateKEKs: true, Timeout: 4 * time.Second,
		Cache: CacheOptions{TTL: time.Minute, Keys: 16384},
	}
}

// Limits of what can be set.
const (
	maxAddresses = 16
	MaxTimeout   = time.Minute
	MinTimeout   = 100 * time.Millisecond
	MaxTTL       = 10 * time.Minute
	MaxKeys      = 1_000_000
)

// Check says what is wrong with the options, or nil.
func (o Options) Check() error {
	if len(o.Addresses) == 0 || len(o.Addresses) > maxAddresses {
		return fmt.Errorf("addresses: 1 to %d are needed", maxAddresses)
	}
	for _, address := range o.Addresses {
		if err := o.checkAddress(address); err != nil {
			return fmt.Errorf("addresses: %q: %w", address, err)
		}
	}
	for name, path := range map[string]string{"transit": o.Transit, "kv": o.KV, "path": o.Path} {
		if err := checkPath(path); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := errors.Join(
		within("timeout", o.Timeout, MinTimeout, MaxTimeout),
		within("cache.ttl", o.Cache.TTL, 0, MaxTTL),
		within("cache.keys", o.Cache.Keys, 1, MaxKeys),
	); err != nil {
		return err
	}
	return o.Login.check()
}

func within[T int | time.Duration](name string, value, low, high T) error {
	if value < low || value > high {
		return fmt.Errorf("%s: %v is not within %v to %v", name, value, low, high)
	}
	return nil
}

func (o Options) checkAddress(address string) error {
	u, err := url.Parse(address)
	if err != nil || u.Port() == "" || u.Hostname() == "" || strings.TrimSuffix(address, "/") != u.Scheme+"://"+u.Host {
		return errors.New("it is not of the form https://host:port")
	}
	switch u.Scheme {
	case "https":
		if o.CA == "" {
			return errors.New("https needs ca: the file of the CA that Vault's certificate chains to")
		}
		return nil
	case "http":
		return o.checkPlain(u.Hostname())
	default:
		return errors.New("the scheme is not https")
	}
}

// checkPlain allows a connection without TLS inside this machine only.
func (o Options) checkPlain(host string) error {
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return errors.New("http is for a Vault on a loopback address only (127.0.0.1); use https")
	}
	if o.Login.Certificate != nil {
		return errors.New("login.certificate needs https")
	}
	return nil
}

// checkPath allows what stands in Vault's paths without any escape.
func checkPath(path string) error {
	if path == "" || len(path) > 256 {
		return errors.New("1 to 256 characters are needed")
	}
	for part := range strings.SplitSeq(path, "/") {
		if part == "" || strings.Contains(part, "..") || strings.Trim(part, ".") == "" {
			return fmt.Errorf("%q has an empty part, or one with dots only", path)
		}
	}
	if i := strings.IndexFunc(path, func(r rune) bool { return !isPathRune(r) }); i >= 0 {
		return fmt.Errorf("%q: the character at byte %d is not one of A-Z a-z 0-9 . _ - /", path, i)
	}
	return nil
}

func isPathRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-/", r)
}

func (l Login) check() error {
	given := 0
	for _, set := range []bool{l.Token != nil, l.AppRole != nil, l.Kubernetes != nil, l.Certificate != nil} {
		if set {
			given++
		}
	}
	if given != 1 {
		return errors.New("login: exactly one of token, approle, kubernetes and certificate is needed")
	}
	return l.method().check()
}
