// The names in a certificate.

package certificate

import (
	"crypto/x509"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// maxCommonName is X.509's limit, in characters.
const maxCommonName = 64

// subjectNames are the names that stand in a principal's certificate [CL-IDN-022].
type subjectNames struct {
	commonName string
	uri        *url.URL // nil: the principal is a common name
}

// namesOf gives a SPIFFE id as URI, with the last segment of its path as common name, for people; other principals have
// their common name only, because a URI would make another principal of them.
func namesOf(principal string) subjectNames {
	if !strings.HasPrefix(principal, "spiffe://") {
		return subjectNames{commonName: principal}
	}
	uri, err := url.Parse(principal)
	if err != nil {
		return subjectNames{commonName: principal}
	}
	last := principal[strings.LastIndexByte(principal, '/')+1:]
	return subjectNames{commonName: last[:min(len(last), maxCommonName)], uri: uri} // ASCII, as SPIFFE says
}

// uses are those of a request's certificate: TLS clients, and servers if it has names of one.
func (r *Request) uses() []x509.ExtKeyUsage {
	if r.ForServer() {
		return []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	}
	return []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
}

// ips gives the addresses as x509 wants them.
func (r *Request) ips() []net.IP {
	var all []net.IP
	for _, address := range r.Addresses {
		all = append(all, address.AsSlice())
	}
	return all
}

// sameServers tells whether a certificate has exactly the names of servers that were asked for, in any order.
func (r *Request) sameServers(leaf *x509.Certificate) bool {
	dns := slices.Clone(leaf.DNSNames)
	slices.Sort(dns)
	addresses := make([]netip.Addr, 0, len(leaf.IPAddresses))
	for _, ip := range leaf.IPAddresses {
		address, _ := netip.AddrFromSlice(ip)
		addresses = append(addresses, address.Unmap())
	}
	slices.SortFunc(addresses, netip.Addr.Compare)
	return slices.Equal(dns, r.DNSNames) && slices.Equal(addresses, r.Addresses)
}

// uris gives the URI as x509 wants it.
func (n subjectNames) uris() []*url.URL {
	if n.uri == nil {
		return nil
	}
	return []*url.URL{n.uri}
}
