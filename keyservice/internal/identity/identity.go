// Package identity says who is asking (spec/identity.md). This file takes the principal from a verified client certificate.
package identity

import (
	"crypto/x509"
	"encoding/asn1"
	"net/url"
	"strings"
	"time"

	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

var oidCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}

// FromCertificate gives the principal: the one SPIFFE URI SAN, else the common name [CL-API-002]. The chain was
// verified in the handshake; the validity is looked at again, because a connection may live longer than a certificate.
//
// Errors: unauthenticated.
func FromCertificate(leaf *x509.Certificate, now time.Time) (string, error) {
	if now.Before(leaf.NotBefore) || now.After(leaf.NotAfter) {
		return "", unauthenticated("the client certificate is not valid at this time: it ends at %s", leaf.NotAfter.UTC().Format(time.RFC3339))
	}
	spiffe := spiffeURIs(leaf)
	switch len(spiffe) {
	case 0:
		return fromCommonName(leaf)
	case 1:
		return fromSPIFFE(spiffe[0])
	default:
		return "", unauthenticated("the client certificate has %d SPIFFE ids, not one", len(spiffe))
	}
}

func spiffeURIs(leaf *x509.Certificate) []*url.URL {
	var found []*url.URL
	for _, uri := range leaf.URIs {
		if strings.EqualFold(uri.Scheme, "spiffe") {
			found = append(found, uri)
		}
	}
	return found
}

func fromSPIFFE(uri *url.URL) (string, error) {
	id, err := spiffeid.FromURI(uri)
	if err != nil {
		return "", unauthenticated("the client certificate has a malformed SPIFFE id: %v", err)
	}
	if id.Path() == "" {
		return "", unauthenticated("the SPIFFE id of the client certificate names no workload: its path is empty")
	}
	return checked(id.String(), "SPIFFE id")
}

func fromCommonName(leaf *x509.Certificate) (string, error) {
	count := 0
	for _, attribute := range leaf.Subject.Names {
		if attribute.Type.Equal(oidCommonName) {
			count++
		}
	}
	name := leaf.Subject.CommonName
	switch {
	case count != 1:
		return "", unauthenticated("the client certificate has no SPIFFE id and %d common names, not one", count)
	case strings.Contains(name, "://"):
		return "", unauthenticated("the common name of the client certificate looks like a URI: a SPIFFE id belongs in a URI SAN")
	}
	return checked(name, "common name")
}

func checked(name, kind string) (string, error) {
	if err := names.CheckPrincipal(name); err != nil {
		return "", unauthenticated("the %s of the client certificate cannot be used: %v", kind, err)
	}
	return name, nil
}

func unauthenticated(format string, args ...any) error {
	return refusal.New(refusal.Unauthenticated, format, args...)
}
