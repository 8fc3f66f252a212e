// Who is let in.

package main

import (
	"bytes"
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// forge signs a client certificate with the folder's own CA, or with itself when there is none.
func forge(t *testing.T, dir string, change func(*x509.Certificate)) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(7), Subject: pkix.Name{CommonName: "forged"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	change(template)
	parent, signer := template, crypto.Signer(key)
	if dir != "" {
		parent, signer = readCA(t, dir)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func readCA(t *testing.T, dir string) (*x509.Certificate, crypto.Signer) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(filepath.Join(dir, "ca.pem"), filepath.Join(dir, "ca-key.pem"))
	if err != nil {
		t.Fatal(err)
	}
	signer, ok := pair.PrivateKey.(crypto.Signer)
	if !ok {
		t.Fatal("no signer")
	}
	return pair.Leaf, signer
}

func uris(t *testing.T, texts ...string) []*url.URL {
	t.Helper()
	var all []*url.URL
	for _, text := range texts {
		u, err := url.Parse(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, u)
	}
	return all
}

// [CL-API-001]
func TestHandshakeRefuses(t *testing.T) {
	k := start(t)
	other := start(t)
	producer := uris(t, "spiffe://dev.cipherlane/producer")
	stolen := k.tlsConfig(t, "producer").Certificates[0]
	stolen.PrivateKey = k.tlsConfig(t, "consumer").Certificates[0].PrivateKey
	with := func(c tls.Certificate) *tls.Config {
		cfg := k.tlsConfig(t, "")
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &c, nil }
		return cfg
	}
	oldTLS := k.tlsConfig(t, "producer")
	oldTLS.MinVersion, oldTLS.MaxVersion = tls.VersionTLS10, tls.VersionTLS11
	for name, cfg := range map[string]*tls.Config{
		"no certificate":   k.tlsConfig(t, ""),
		"another CA":       with(other.tlsConfig(t, "producer").Certificates[0]),
		"signed by itself": with(forge(t, "", func(c *x509.Certificate) { c.URIs = producer })),
		"another key":      with(stolen),
		"expired":          with(forge(t, k.Dir, func(c *x509.Certificate) { c.URIs, c.NotAfter = producer, time.Now().Add(-time.Minute) })),
		"not yet valid":    with(forge(t, k.Dir, func(c *x509.Certificate) { c.URIs, c.NotBefore = producer, time.Now().Add(time.Minute) })),
		"for servers only": with(forge(t, k.Dir, func(c *x509.Certificate) {
			c.URIs, c.ExtKeyUsage = producer, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
		})),
		"the server's own":       with(load(t, filepath.Join(k.Dir, "server.pem"), filepath.Join(k.Dir, "server-key.pem"))),
		"signed by a client":     with(signedByClient(t, k)),
		"TLS 1.1":                oldTLS,
		"client without our CA":  {MinVersion: tls.VersionTLS12, Certificates: k.tlsConfig(t, "producer").Certificates},
		"client with another CA": {MinVersion: tls.VersionTLS12, RootCAs: other.tlsConfig(t, "").RootCAs},
	} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, k.URL+"/v1/encryption-key", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client(t, cfg).Do(request)
		if err == nil {
			_ = response.Body.Close()
			t.Errorf("%s: answered %s", name, response.Status)
		}
	}
	if response, err := http.Get(strings.Replace(k.URL, "https:", "http:", 1) + "/v1/encryption-key"); err == nil {
		_ = response.Body.Close()
		if response.StatusCode != http.StatusBadRequest {
			t.Errorf("without TLS: %s", response.Status)
		}
	}
	if got := k.auditLog(t); len(got) > 0 {
		t.Errorf("a call got through: %+v", got)
	}
}

func load(t *testing.T, certificate, key string) tls.Certificate {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		t.Fatal(err)
	}
	return pair
}

// signedByClient has a chain over a client certificate, which is no CA.
func signedByClient(t *testing.T, k *keyService) tls.Certificate {
	t.Helper()
	parent := k.tlsConfig(t, "producer").Certificates[0]
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(8), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}, URIs: uris(t, "spiffe://dev.cipherlane/operator"),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent.Leaf, key.Public(), parent.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der, parent.Certificate[0]}, PrivateKey: key}
}

// [CL-API-002] Certificates of the right CA that name nobody.
func TestUnusableNames(t *testing.T) {
	k := start(t)
	for name, change := range map[string]func(*x509.Certificate){
		"two SPIFFE ids": func(c *x509.Certificate) {
			c.URIs = uris(t, "spiffe://dev.cipherlane/producer", "spiffe://dev.cipherlane/consumer")
		},
		"malformed":       func(c *x509.Certificate) { c.URIs = uris(t, "spiffe://dev.cipherlane/producer/") },
		"upper case host": func(c *x509.Certificate) { c.URIs = uris(t, "spiffe://DEV.cipherlane/producer") },
		"URI as name":     func(c *x509.Certificate) { c.Subject.CommonName = "spiffe://dev.cipherlane/producer" },
		"no name":         func(c *x509.Certificate) { c.Subject.CommonName = "" },
		"not printable":   func(c *x509.Certificate) { c.Subject.CommonName = "producer\u202e" },
	} {
		certificate := forge(t, k.Dir, change)
		cfg := k.tlsConfig(t, "")
		cfg.Certificates = []tls.Certificate{certificate}
		a := k.postWith(t, client(t, cfg), "/v1/encryption-key", `{"topic":"claims"}`)
		refuses(t, a, 401, "unauthenticated")
		if !k.audited(t, a.text("request_id"), "unauthenticated") {
			t.Errorf("%s: not in the audit log", name)
		}
	}
}

// [CL-API-002] [CL-API-003] A common name is a principal too, but not that of a SPIFFE id that looks alike.
func TestCommonNames(t *testing.T) {
	policy := strings.Replace(testPolicy, `"spiffe://dev.cipherlane/producer"`, `"batch-*"`, 1)
	k := startIn(t, newFolder(t, policy))
	for name, status := range map[string]int{"batch-7": 200, "batch": 403, "producer": 403, "batch-7/x": 403} {
		cfg := k.tlsConfig(t, "")
		cfg.Certificates = []tls.Certificate{forge(t, k.Dir, func(c *x509.Certificate) { c.Subject.CommonName = name })}
		if a := k.postWith(t, client(t, cfg), "/v1/encryption-key", `{"topic":"claims"}`); a.Status != status {
			t.Errorf("%s: %d %s", name, a.Status, a.Body)
		}
	}
	refuses(t, k.post(t, "producer", "/v1/encryption-key", `{"topic":"claims"}`), 403, "not-authorized")
}

// A connection that was made with a certificate does not outlive it.
func TestCertificateEndsOnAnOpenConnection(t *testing.T) {
	k := start(t)
	cfg := k.tlsConfig(t, "")
	end := time.Now().Add(2 * time.Second)
	cfg.Certificates = []tls.Certificate{forge(t, k.Dir, func(c *x509.Certificate) {
		c.URIs, c.NotAfter = uris(t, "spiffe://dev.cipherlane/producer"), end
	})}
	c := client(t, cfg)
	if a := k.postWith(t, c, "/v1/encryption-key", `{"topic":"claims"}`); a.Status != 200 {
		t.Fatal(a.Status)
	}
	time.Sleep(time.Until(end.Truncate(time.Second).Add(time.Second + 100*time.Millisecond)))
	refuses(t, k.postWith(t, c, "/v1/encryption-key", `{"topic":"claims"}`), 401, "unauthenticated")
}

// By HTTP/1 and HTTP/2 the caller reads why its connection ends, and does so at once.
func TestStrangersConnectionEnds(t *testing.T) {
	k := start(t)
	for _, protocol := range []string{"http/1.1", "h2"} {
		cfg := k.tlsConfig(t, "")
		cfg.Certificates = []tls.Certificate{forge(t, k.Dir, func(c *x509.Certificate) { c.Subject.CommonName = "" })}
		cfg.NextProtos = []string{protocol}
		var connections atomic.Int32
		transport := &http.Transport{ForceAttemptHTTP2: protocol == "h2", DialTLSContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			connections.Add(1)
			return (&tls.Dialer{Config: cfg}).DialContext(ctx, network, address)
		}}
		c := &http.Client{Transport: transport}
		for range 2 {
			refuses(t, k.postWith(t, c, "/v1/encryption-key", `{"topic":"claims"}`), 401, "unauthenticated")
			time.Sleep(time.Second)
		}
		transport.CloseIdleConnections()
		if n := connections.Load(); n != 2 {
			t.Errorf("%s: %d connections for two requests", protocol, n)
		}
	}
}

func TestServerCertificateIsPEMOfTheFolder(t *testing.T) {
	k := start(t)
	conn := k.dial(t)
	tlsConn, ok := conn.(*tls.Conn)
	if !ok {
		t.Fatal("no TLS")
	}
	file, err := os.ReadFile(filepath.Join(k.Dir, "server.pem"))
	if err != nil {
		t.Fatal(err)
	}
	block, _ := pem.Decode(file)
	if got := tlsConn.ConnectionState().PeerCertificates[0].Raw; !bytes.Equal(got, block.Bytes) {
		t.Fatal("another certificate")
	}
}
