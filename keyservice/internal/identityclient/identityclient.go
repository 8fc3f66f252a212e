// Package identityclient gets this process's certificate from the key service and renews it while the process runs (spec/identity.md,
// "Clients that renew their certificate"). Private keys are made here, in memory, and never leave it.
package identityclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
	"github.com/cipherlane/cipherlane/keyservice/internal/operator"
)

// Options say where the key service is and what proves at first who this is: a token, a JWT, or a certificate and its key.
type Options struct {
	URLs        []string // https://host:port, tried in turn
	CA          string   // PEM file: whom the key service's certificate must chain to
	Certificate string   // PEM file
	Key         string   // PEM file
	TokenFile   string   // with a bootstrap token
	JWTFile     string   // read anew for each call
	DNSNames    []string // of a server: DNS names and addresses that the certificate must hold
	Log         *slog.Logger

	// Renewed is called with each new certificate, from one goroutine, before it is used for anything else.
	Renewed func(Material)
}

// Material is a certificate and what came with it.
type Material struct {
	Certificate tls.Certificate // with Leaf
	CAs         *x509.CertPool  // that peers must chain to
	Principal   string
}

// Client has the certificate of now. It is safe for concurrent use; make it with Open.
type Client struct {
	o       Options
	roots   []*x509.Certificate // of the file CA
	current atomic.Pointer[state]
	spent   string // the token that was answered; only Run's goroutine uses it
	next    int    // the address to begin with

	addresses []string // of the key service, those that are IP addresses
}

// state is a certificate, and which CAs the key service may chain to.
type state struct {
	Material
	keyService *x509.CertPool
	again      time.Time // when to ask for the next one
}

// ErrNone means that there is no certificate that holds [CL-IDN-036].
var ErrNone = errors.New("there is no certificate that holds; the log says why none was given. Put a new token, JWT or certificate " +
	"into the file that is configured for it: it is read again without a restart")

// Open reads the files; it does not connect. A certificate of a file is used at once.
func Open(o Options) (*Client, error) {
	c := &Client{o: o}
	for _, text := range o.URLs {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.User != nil {
			return nil, fmt.Errorf("the address of the key service is https://host:port, not %q", text)
		}
		if net.ParseIP(u.Hostname()) != nil {
			c.addresses = append(c.addresses, u.Hostname())
		}
	}
	data, err := files.ReadTrusted(o.CA, maxPEM)
	if err != nil {
		return nil, fmt.Errorf("CA of the key service: %w", err)
	}
	if c.roots, err = files.ParseCAs(data); err != nil {
		return nil, fmt.Errorf("CA of the key service: %s: %w", o.CA, err)
	}
	if o.Certificate != "" {
		err = c.useFile()
	}
	return c, err
}

// useFile takes the certificate of the files, if that holds.
func (c *Client) useFile() error {
	cfg, err := operator.TLSConfig("", c.o.Certificate, c.o.Key)
	if err != nil {
		return err
	}
	pair := cfg.Certificates[0]
	principal, err := identity.FromCertificate(pair.Leaf, time.Now())
	if err != nil {
		return err
	}
	pool := poolOf(c.roots)
	c.use(&state{Material: Material{pair, pool, principal}, keyService: pool})
	return nil
}

func (c *Client) use(s *state) {
	c.current.Store(s)
	if c.o.Renewed != nil {
		c.o.Renewed(s.Material)
	}
}

// valid gives the state if its certificate holds.
func (c *Client) valid() *state {
	if s := c.current.Load(); s != nil && time.Now().Before(s.Certificate.Leaf.NotAfter) {
		return s
	}
	return nil
}

// Principal gives the name in the certificate of now, or "".
func (c *Client) Principal() string {
	if s := c.valid(); s != nil {
		return s.Principal
	}
	return ""
}

// TLSConfig is for calling the key service: every handshake goes by the certificate and the CAs of its time [CL-IDN-034].
func (c *Client) TLSConfig() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			if s := c.valid(); s != nil {
				return &s.Certificate, nil
			}
			return nil, ErrNone
		},
		InsecureSkipVerify: true, // #nosec G402 -- VerifyConnection verifies, against the CAs of now
		VerifyConnection:   c.verifyServer,
	}
}

// verifyServer does what crypto/tls would. For an address that is an IP address crypto/tls keeps no server name: there the certificate
// must be for one of the IP addresses of the key service.
func (c *Client) verifyServer(s tls.ConnectionState) error {
	if len(s.PeerCertificates) == 0 {
		return errors.New("the key service showed no certificate")
	}
	names := []string{s.ServerName}
	if s.ServerName == "" {
		names = c.addresses
	}
	err := errors.New("the key service has no such address")
	for _, name := range names {
		options := x509.VerifyOptions{Roots: c.keyServiceCAs(), DNSName: name, Intermediates: poolOf(s.PeerCertificates[1:])}
		if _, err = s.PeerCertificates[0].Verify(options); err == nil {
			return nil
		}
	}
	return err
}

func (c *Client) keyServiceCAs() *x509.CertPool {
	if s := c.current.Load(); s != nil {
		return s.keyService
	}
	return poolOf(c.roots)
}

func poolOf(certificates []*x509.Certificate) *x509.CertPool {
	pool := x509.NewCertPool()
	for _, certificate := range certificates {
		pool.AddCert(certificate)
	}
	return pool
}

// Pauses after a failure [CL-IDN-032].
const (
	firstPause = 500 * time.Millisecond
	longPause  = time.Minute
	jitter     = 0.2
)

// Run gets certificates until ctx ends. What fails is logged and tried again.
func (c *Client) Run(ctx context.Context) {
	pause := firstPause
	for {
		wait := time.Duration(0)
		if s := c.valid(); s != nil {
			wait = time.Until(s.again)
		}
		if !sleep(ctx, wait) {
			return
		}
		err := c.renew(ctx)
		if err == nil {
			pause = firstPause
			continue
		}
		if ctx.Err() != nil {
			return
		}
		c.failed(err)
		if !sleep(ctx, spread(pause)) {
			return
		}
		pause = min(2*pause, longPause)
	}
}

func (c *Client) failed(err error) {
	if s := c.valid(); s != nil {
		c.o.Log.Warn("the certificate could not be renewed; the one before is used on", "until", s.Certificate.Leaf.NotAfter, "error", err)
		return
	}
	c.o.Log.Error("there is no certificate", "error", err)
}

func spread(d time.Duration) time.Duration {
	return time.Duration(float64(d) * (1 - jitter + 2*jitter*rand.Float64())) // #nosec G404 -- no secret
}

func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(max(d, 0))
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// serverNames parts names from addresses.
func serverNames(all []string) (names []string, addresses []net.IP) {
	for _, name := range all {
		if ip := net.ParseIP(name); ip != nil {
			addresses = append(addresses, ip)
			continue
		}
		names = append(names, name)
	}
	return names, addresses
}
