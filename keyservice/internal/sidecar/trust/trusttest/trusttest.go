// Package trusttest makes sources of trust for tests.
package trusttest

import (
	"crypto/tls"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/sidecar/trust"
	"github.com/cipherlane/cipherlane/keyservice/internal/testservice"
)

// Source is of a peer with a certificate of that life, who trusts the CA and takes the protocol; an empty one is none.
func Source(t *testing.T, pki *testservice.PKI, name string, life time.Duration, protocol string) *trust.Source {
	t.Helper()
	pair := pki.Issue(t, name, "spiffe://example.org/"+name, life)
	certificate, err := tls.LoadX509KeyPair(pair.Certificate, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	cas, err := files.ReadCAs(pki.CA)
	if err != nil {
		t.Fatal(err)
	}
	s := trust.New(nil, protocol)
	s.Set(trust.Material{Certificate: certificate, CAs: cas})
	return s
}
