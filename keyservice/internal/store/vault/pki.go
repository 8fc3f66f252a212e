// The PKI engine: it signs client certificates, and lists the CAs that it has.

package vault

import (
	"context"
	"crypto/x509"
	"encoding/pem"
	"net/netip"
	"strings"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/files"
	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

// PKI is a role of a PKI engine.
type PKI struct {
	client                  *client
	mount, role, serverRole string
}

// PKI gives two roles of a PKI engine, with the store's login: one that signs for clients, and one for servers that are
// clients too. The latter may be empty: then nothing is signed for servers.
func (s *Store) PKI(mount, role, serverRole string) *PKI {
	return &PKI{s.client, mount, role, serverRole}
}

// CheckPKI says what is wrong with the names of a mount and a role, or nil.
func CheckPKI(mount, role string) error {
	if err := checkPath(mount); err != nil {
		return err
	}
	return checkPath(role)
}

// SignRequest is what a certificate is to say. Everything else is the role's.
type SignRequest struct {
	CSR        string // PEM
	CommonName string
	URI        string   // may be empty
	DNSNames   []string // of a server, as are Addresses; may be empty
	Addresses  []netip.Addr
	Lifetime   time.Duration
}

func (r SignRequest) forServer() bool { return len(r.DNSNames)+len(r.Addresses) > 0 }

func (r SignRequest) addresses() []string {
	texts := make([]string, len(r.Addresses))
	for i, address := range r.Addresses {
		texts[i] = address.String()
	}
	return texts
}

// Sign has a request signed: a chain from the leaf up without roots, as Vault gives it. The caller checks what it says.
func (p *PKI) Sign(ctx context.Context, r SignRequest) ([]*x509.Certificate, error) {
	role := p.role
	if r.forServer() {
		role = p.serverRole
	}
	if role == "" {
		return nil, refusal.New(refusal.NotAuthorized, "this key service has no role in Vault that signs for servers (certificates.server_role)")
	}
	path := p.mount + "/sign/" + role
	request := struct {
		CSR        string `json:"csr"`
		CommonName string `json:"common_name"`
		URI        string `json:"uri_sans,omitzero"`
		DNSNames   string `json:"alt_names,omitzero"`
		Addresses  string `json:"ip_sans,omitzero"`
		TTL        string `json:"ttl"`
		NoCNInSANs bool   `json:"exclude_cn_from_sans"`
		Format     string `json:"format"`
	}{r.CSR, r.CommonName, r.URI, strings.Join(r.DNSNames, ","), strings.Join(r.addresses(), ","), r.Lifetime.String(), true, "pem"}
	var answer struct {
		Data struct {
			Certificate string   `json:"certificate"`
			Chain       []string `json:"ca_chain"`
		} `json:"data"`
	}
	if err := p.client.put(ctx, path, request, &answer); err != nil {
		return nil, noAbsence(err, "PUT "+path)
	}
	chain := []*x509.Certificate{}
	for _, text := range append([]string{answer.Data.Certificate}, answer.Data.Chain...) {
		one, err := parseCertificate("PUT "+path, text)
		if err != nil {
			return nil, err
		}
		if len(chain) == 0 || !isRoot(one) {
			chain = append(chain, one)
		}
	}
	return chain, nil
}

func parseCertificate(op, text string) (*x509.Certificate, error) {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil, &Error{Reason: BadAnswer, Op: op, Text: "it holds no certificate in PEM"}
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil, &Error{Reason: BadAnswer, Op: op, Text: "it holds a certificate that cannot be read"}
	}
	return certificate, nil
}

// maxIssuers bounds the CAs of one mount.
const maxIssuers = 16

// CAs gives the certificates of all CAs in the mount that are self-signed and not revoked: those that a rollover brings
// in as well as those that it takes out.
func (p *PKI) CAs(ctx context.Context) ([]*x509.Certificate, error) {
	var list struct {
		Data struct {
			Keys []string `json:"keys"`
		} `json:"data"`
	}
	path := p.mount + "/issuers"
	if err := p.client.get(ctx, path, map[string][]string{"list": {"true"}}, &list); err != nil {
		return nil, noAbsence(err, "LIST "+path)
	}
	if len(list.Data.Keys) > maxIssuers {
		return nil, &Error{Reason: Invalid, Op: "LIST " + path, Text: "there are more than 16 issuers: delete those that have ended"}
	}
	var roots []*x509.Certificate
	for _, id := range list.Data.Keys {
		root, err := p.root(ctx, id)
		if err != nil {
			return nil, err
		}
		if root != nil {
			roots = append(roots, root)
		}
	}
	if len(roots) == 0 {
		return nil, &Error{Reason: NoMount, Op: "LIST " + path, Text: "the PKI engine has no root CA"}
	}
	return roots, nil
}

// root gives the certificate of an issuer, or nil if it is no root that is good now.
func (p *PKI) root(ctx context.Context, id string) (*x509.Certificate, error) {
	var answer struct {
		Data struct {
			Certificate string `json:"certificate"`
			Revoked     bool   `json:"revoked"`
		} `json:"data"`
	}
	path := p.mount + "/issuer/" + id
	if err := p.client.get(ctx, path, nil, &answer); err != nil {
		return nil, noAbsence(err, "GET "+path)
	}
	all, err := files.ParseCAs([]byte(answer.Data.Certificate))
	if err != nil {
		return nil, &Error{Reason: BadAnswer, Op: "GET " + path, Text: err.Error()}
	}
	if ca := all[0]; isRoot(ca) && !answer.Data.Revoked && time.Now().Before(ca.NotAfter) {
		return ca, nil
	}
	return nil, nil
}

func isRoot(c *x509.Certificate) bool { return c.CheckSignatureFrom(c) == nil }
