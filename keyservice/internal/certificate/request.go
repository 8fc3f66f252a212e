// Package certificate gives principals short-lived certificates for the name that they have, and for no other
// (spec/identity.md). This file reads signing requests.
package certificate

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/cipherlane/cipherlane/keyservice/internal/policy"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// MaxCSR is the longest signing request in bytes of PEM (spec/limits.md).
const MaxCSR = 16 << 10

// Request is a signing request that was checked.
type Request struct {
	Principal string
	PEM       []byte
	DNSNames  []string // of a server, as are Addresses; sorted, without repeats
	Addresses []netip.Addr
	publicKey any // *ecdsa.PublicKey on P-256, or ed25519.PublicKey
}

// MaxServerNames bounds names and addresses of a server in one request (spec/limits.md).
const MaxServerNames = 16

// ForServer tells whether the certificate is to be for TLS servers too.
func (r *Request) ForServer() bool { return len(r.DNSNames)+len(r.Addresses) > 0 }

var (
	oidCommonName = asn1.ObjectIdentifier{2, 5, 4, 3}
	oidAltNames   = asn1.ObjectIdentifier{2, 5, 29, 17}
)

// ParseRequest reads a signing request of a principal. The names in it, if any, must be his own [CL-IDN-020], or those
// of servers that his grant allows [CL-IDN-026]; what else it asks for is not looked at, because nothing of it gets into
// the certificate.
//
// Errors: request-invalid, not-authorized.
func ParseRequest(text, principal string, allowed policy.ServerNames) (*Request, error) {
	if len(text) > MaxCSR {
		return nil, invalid("csr: it has more than %d bytes", MaxCSR)
	}
	block, rest := pem.Decode([]byte(text))
	if block == nil || block.Type != "CERTIFICATE REQUEST" || len(block.Headers) > 0 || strings.TrimSpace(string(rest)) != "" ||
		!strings.HasPrefix(text, "-----BEGIN") {
		return nil, invalid("csr: it is not one PEM block of type CERTIFICATE REQUEST")
	}
	csr, err := x509.ParseCertificateRequest(block.Bytes)
	if err != nil {
		return nil, refusal.Because(refusal.RequestInvalid, err, "csr: it is not a certification request (PKCS #10)")
	}
	if err := checkKey(csr.PublicKey); err != nil {
		return nil, err
	}
	if err := csr.CheckSignature(); err != nil {
		return nil, refusal.Because(refusal.RequestInvalid, err, "csr: its signature does not verify: it was not made by the owner of the key")
	}
	if err := checkNames(csr, principal); err != nil {
		return nil, err
	}
	r := &Request{Principal: principal, PEM: pem.EncodeToMemory(block), publicKey: csr.PublicKey}
	if err := r.takeServerNames(csr, allowed); err != nil {
		return nil, err
	}
	return r, nil
}

// checkKey takes keys on P-256 and Ed25519 only [CL-IDN-021].
func checkKey(key any) error {
	switch k := key.(type) {
	case *ecdsa.PublicKey:
		if k.Curve == elliptic.P256() {
			return nil
		}
	case ed25519.PublicKey:
		return nil
	}
	return invalid("csr: the key must be ECDSA on P-256, or Ed25519")
}

func checkNames(csr *x509.CertificateRequest, principal string) error {
	own := namesOf(principal)
	if utf8.RuneCountInString(own.commonName) > maxCommonName {
		return invalid("a certificate has no room for a common name of more than %d characters: use a SPIFFE id", maxCommonName)
	}
	for _, attribute := range csr.Subject.Names {
		name, _ := attribute.Value.(string)
		if !attribute.Type.Equal(oidCommonName) || name != own.commonName && name != principal {
			return notOwn(principal, "subject")
		}
	}
	if len(csr.EmailAddresses) > 0 {
		return notOwn(principal, "subject alternative names")
	}
	for _, uri := range csr.URIs {
		if own.uri == nil || uri.String() != principal {
			return notOwn(principal, "URI")
		}
	}
	return checkOtherNames(csr.Extensions, len(csr.URIs)+len(csr.DNSNames)+len(csr.IPAddresses), principal)
}

// checkOtherNames refuses kinds of alternative names that x509 passes over.
func checkOtherNames(extensions []pkix.Extension, known int, principal string) error {
	for _, extension := range extensions {
		if !extension.Id.Equal(oidAltNames) {
			continue
		}
		var all []asn1.RawValue
		if rest, err := asn1.Unmarshal(extension.Value, &all); err != nil || len(rest) > 0 || len(all) != known {
			return notOwn(principal, "subject alternative names")
		}
	}
	return nil
}

// takeServerNames takes over the names of servers that the grant allows, and refuses others.
func (r *Request) takeServerNames(csr *x509.CertificateRequest, allowed policy.ServerNames) error {
	if len(csr.DNSNames)+len(csr.IPAddresses) > MaxServerNames {
		return invalid("csr: it has more than %d names of servers", MaxServerNames)
	}
	for _, name := range csr.DNSNames {
		if !allowed.AllowsDNS(name) {
			return notGranted(name)
		}
		r.DNSNames = append(r.DNSNames, name)
	}
	for _, ip := range csr.IPAddresses {
		address, ok := netip.AddrFromSlice(ip)
		if !ok || !allowed.AllowsAddress(address.Unmap()) {
			return notGranted(ip.String())
		}
		r.Addresses = append(r.Addresses, address.Unmap())
	}
	slices.Sort(r.DNSNames)
	slices.SortFunc(r.Addresses, netip.Addr.Compare)
	r.DNSNames, r.Addresses = slices.Compact(r.DNSNames), slices.Compact(r.Addresses)
	return nil
}

func notGranted(name string) error {
	return refusal.New(refusal.NotAuthorized, "csr: %q is not among the server_names of the grant: the policy must name it", name)
}

func notOwn(principal, where string) error {
	return refusal.New(refusal.NotAuthorized, "csr: its %s names somebody else: a certificate is given for %q only; leave names out of the request", where, principal)
}

func invalid(format string, args ...any) error {
	return refusal.New(refusal.RequestInvalid, format, args...)
}
