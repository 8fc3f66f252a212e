package certificate

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"net/url"
	"strings"
	"testing"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// Whatever is sent as a signing request: a refusal, or a request that is signed by its own key and names nobody else. [CL-IDN-020]
// [CL-IDN-021]
func FuzzParseRequest(f *testing.F) {
	own := csr(p256(), func(r *x509.CertificateRequest) { r.Subject.CommonName, r.URIs = "alice", []*url.URL{uri(alice)} })
	for _, text := range []string{
		own, csr(ed(), nil), csr(p256(), func(r *x509.CertificateRequest) { r.Subject.CommonName = "bob" }), own + own, own[:len(own)/2], "",
		"-----BEGIN CERTIFICATE REQUEST-----\n-----END CERTIFICATE REQUEST-----\n", strings.Replace(own, "\n", "\nKey: value\n\n", 1),
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRequest(text, alice, noServers)
		if err != nil {
			refused, ok := errors.AsType[*refusal.Error](err)
			if !ok || r != nil || refused.Code != refusal.RequestInvalid && refused.Code != refusal.NotAuthorized {
				t.Fatalf("%v, %v", r, err)
			}
			return
		}
		block, _ := pem.Decode(r.PEM)
		if block == nil {
			t.Fatal("what was accepted is not PEM")
		}
		again, err := x509.ParseCertificateRequest(block.Bytes)
		if err != nil || again.CheckSignature() != nil || len(again.DNSNames)+len(again.IPAddresses)+len(again.EmailAddresses) > 0 {
			t.Fatalf("%v, %+v", err, again)
		}
		for _, one := range again.URIs {
			if one.String() != alice {
				t.Fatalf("accepted for %s", one)
			}
		}
	})
}
