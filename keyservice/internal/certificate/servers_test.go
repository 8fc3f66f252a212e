// Certificates for servers: which names are given, and that a CA gives them so.

package certificate

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cipherlane/cipherlane/keyservice/internal/refusal"
)

func serverCSR(dns, ips []string) string {
	return csr(p256(), func(r *x509.CertificateRequest) {
		r.DNSNames = dns
		for _, ip := range ips {
			r.IPAddresses = append(r.IPAddresses, net.ParseIP(ip))
		}
	})
}

// [CL-IDN-026] Names that the grant allows get into the certificate, and make it one for servers too.
func TestServerNames(t *testing.T) {
	ca := must(Open(t.Context(), &documents{}))
	for name, c := range map[string]struct{ dns, ips []string }{
		"one":       {[]string{"broker-1.example.org"}, nil},
		"address":   {nil, []string{"127.0.0.1"}},
		"all":       {[]string{"localhost", "a.kafka", "broker-1.example.org"}, []string{"::1", "127.0.0.1"}},
		"repeated":  {[]string{"localhost", "localhost"}, nil},
		"v4 mapped": {nil, []string{"::ffff:127.0.0.1"}},
	} {
		r, err := ParseRequest(serverCSR(c.dns, c.ips), alice, brokers(t))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		chain := must(ca.Sign(t.Context(), r, time.Hour))
		if _, err := Issue(t.Context(), ca, r, time.Hour); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, dns := range c.dns {
			if _, err := chain[0].Verify(x509.VerifyOptions{Roots: poolOf(ca.CAs()), DNSName: dns}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(chain[0].ExtKeyUsage) != 2 || chain[0].IPAddresses != nil && chain[0].VerifyHostname(c.ips[0]) != nil {
			t.Errorf("%s: %+v", name, chain[0].ExtKeyUsage)
		}
	}
}

// [CL-IDN-026] Everything else is refused.
func TestServerNamesRefused(t *testing.T) {
	allowed := brokers(t)
	for name, text := range map[string]string{
		"another name":       serverCSR([]string{"broker-1.example.com"}, nil),
		"one of two":         serverCSR([]string{"localhost", "other"}, nil),
		"over a label":       serverCSR([]string{"broker-1.evil.example.org"}, nil),
		"longer":             serverCSR([]string{"broker-1.example.org.evil.test"}, nil),
		"a wildcard":         serverCSR([]string{"broker-*.example.org"}, nil),
		"any name":           serverCSR([]string{"*"}, nil),
		"uppercase":          serverCSR([]string{"LOCALHOST"}, nil),
		"dot at the end":     serverCSR([]string{"localhost."}, nil),
		"zero byte":          serverCSR([]string{"broker-1\x00.example.org"}, nil),
		"address as name":    serverCSR([]string{"127.0.0.1"}, nil),
		"another address":    serverCSR(nil, []string{"127.0.0.2"}),
		"unspecified":        serverCSR(nil, []string{"::"}),
		"own name as server": serverCSR([]string{"alice"}, nil),
	} {
		if r, err := ParseRequest(text, alice, allowed); r != nil || !isRefused(err, refusal.NotAuthorized) {
			t.Errorf("%s: %v", name, err)
		}
	}
	many := []string{}
	for i := range MaxServerNames + 1 {
		many = append(many, fmt.Sprintf("broker-%d.example.org", i))
	}
	if _, err := ParseRequest(serverCSR(many, nil), alice, allowed); !isRefused(err, refusal.RequestInvalid) {
		t.Error("more names than the limit:", err)
	}
	if _, err := ParseRequest(serverCSR(many[:MaxServerNames], nil), alice, allowed); err != nil {
		t.Error("as many names as the limit:", err)
	}
	if _, err := ParseRequest(serverCSR([]string{"localhost"}, nil), alice, noServers); !isRefused(err, refusal.NotAuthorized) {
		t.Error("without server_names:", err)
	}
}

// [CL-IDN-023] [CL-IDN-026] What a CA gives to a server is handed on only if it is what was asked for.
func TestServerAnswersOfTheCA(t *testing.T) {
	ca := must(Open(t.Context(), &documents{}))
	for name, change := range map[string]func(c *x509.Certificate){
		"another name":   func(c *x509.Certificate) { c.DNSNames = []string{"other"} },
		"one more":       func(c *x509.Certificate) { c.DNSNames = append(c.DNSNames, "other") },
		"none":           func(c *x509.Certificate) { c.DNSNames = nil },
		"an address":     func(c *x509.Certificate) { c.IPAddresses = []net.IP{net.IPv4(10, 0, 0, 1)} },
		"no client":      func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth} },
		"no server":      func(c *x509.Certificate) { c.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth} },
		"for mail too":   func(c *x509.Certificate) { c.ExtKeyUsage = append(c.ExtKeyUsage, x509.ExtKeyUsageEmailProtection) },
		"for everything": func(c *x509.Certificate) { c.ExtKeyUsage = nil },
	} {
		r := must(ParseRequest(serverCSR([]string{"localhost"}, nil), alice, brokers(t)))
		wrong := &bent{Embedded: ca, change: func(c *x509.Certificate) *authority { change(c); return nil }}
		if issued, err := Issue(t.Context(), wrong, r, time.Hour); err == nil {
			t.Errorf("%s: handed on: %s", name, issued.Chain)
		}
	}
}

// [CL-IDN-026] Through Vault, by a role of its own; without one, nothing is signed for servers.
func testVaultServers(t *testing.T, ca, withoutServers *Vault) {
	t.Helper()
	r := must(ParseRequest(serverCSR([]string{"localhost", "broker-1.example.org"}, []string{"127.0.0.1", "::1"}), alice, brokers(t)))
	if _, err := Issue(t.Context(), ca, r, time.Hour); err != nil {
		t.Error(err)
	}
	chain := must(ca.Sign(t.Context(), r, time.Hour))
	slices.Sort(chain[0].DNSNames)
	if strings.Join(chain[0].DNSNames, " ") != "broker-1.example.org localhost" || len(chain[0].IPAddresses) != 2 {
		t.Error(chain[0].DNSNames, chain[0].IPAddresses)
	}
	if _, err := Issue(t.Context(), withoutServers, r, time.Hour); !isRefused(err, refusal.NotAuthorized) {
		t.Error("without a role for servers:", err)
	}
}

func isRefused(err error, code refusal.Code) bool {
	refused, ok := errors.AsType[*refusal.Error](err)
	return ok && refused.Code == code
}
