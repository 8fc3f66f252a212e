// What an answer must be before it is used [CL-IDN-033].

package identityclient

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/identity"
)

// Limits of one text of an answer.
const (
	maxText         = 64 << 10
	maxCertificates = 16
)

func (c *Client) check(a *answer, key *ecdsa.PrivateKey, asked time.Time) (*state, error) {
	chain, err := parse("certificate", a.Certificate)
	if err != nil {
		return nil, err
	}
	cas, err := parse("ca", a.CA)
	if err != nil {
		return nil, err
	}
	leaf := chain[0]
	if public, ok := leaf.PublicKey.(*ecdsa.PublicKey); !ok || !public.Equal(key.Public()) {
		return nil, errors.New("the certificate in the answer is not for the key that was made")
	}
	principal, err := identity.FromCertificate(leaf, time.Now())
	if err != nil {
		return nil, fmt.Errorf("the certificate in the answer: %w", err)
	}
	if err := c.verify(chain, cas, principal); err != nil {
		return nil, fmt.Errorf("the certificate in the answer: %w", err)
	}
	pair := tls.Certificate{PrivateKey: key, Leaf: leaf}
	for _, certificate := range chain {
		pair.Certificate = append(pair.Certificate, certificate.Raw)
	}
	trusted := poolOf(cas)
	for _, root := range c.roots {
		trusted.AddCert(root)
	}
	return &state{Material{pair, poolOf(cas), principal}, trusted, jittered(asked, refresh(a.RefreshIn, time.Until(leaf.NotAfter)))}, nil
}

// refresh gives the time of the answer if that makes sense, else two thirds of what is left.
func refresh(seconds int64, left time.Duration) time.Duration {
	if seconds < 1 || seconds > int64(left/time.Second) {
		return left * 2 / 3
	}
	return time.Duration(seconds) * time.Second
}

// verify wants the principal to be the same as before, the chain to lead to a CA of the same answer, and the names of servers that
// were asked for to be there.
func (c *Client) verify(chain, cas []*x509.Certificate, principal string) error {
	if before := c.current.Load(); before != nil && before.Principal != principal {
		return fmt.Errorf("it is for %q, not for %q", principal, before.Principal)
	}
	options := x509.VerifyOptions{Roots: poolOf(cas), Intermediates: poolOf(chain[1:]), KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}
	if len(c.o.DNSNames) > 0 {
		options.KeyUsages = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	}
	if _, err := chain[0].Verify(options); err != nil {
		return err
	}
	for _, name := range c.o.DNSNames {
		if err := chain[0].VerifyHostname(name); err != nil {
			return err
		}
	}
	return nil
}

// parse reads PEM certificates, at least one, and nothing else.
func parse(what, text string) ([]*x509.Certificate, error) {
	if len(text) > maxText {
		return nil, fmt.Errorf("%s in the answer has more than %d bytes", what, maxText)
	}
	var all []*x509.Certificate
	for rest := []byte(text); ; {
		var block *pem.Block
		block, rest = pem.Decode(rest)
		if block == nil && strings.TrimSpace(string(rest)) == "" && len(all) > 0 {
			return all, nil
		}
		if block == nil || block.Type != "CERTIFICATE" || len(all) == maxCertificates {
			return nil, fmt.Errorf("%s in the answer is not 1 to %d certificates in PEM form", what, maxCertificates)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("%s in the answer: %w", what, err)
		}
		all = append(all, certificate)
	}
}
