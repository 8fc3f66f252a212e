// The names of servers that a grant allows in a certificate.

package policy

import (
	"net/netip"
	"slices"

	"github.com/cipherlane/cipherlane/keyservice/internal/names"
)

// ServerNames is a set of patterns of DNS names, and of addresses. The empty set allows no name.
type ServerNames struct {
	given     bool
	dns       []glob
	addresses []netip.Addr
}

// AllowsDNS tells whether a name may stand in a certificate. A wildcard matches within one label.
func (s ServerNames) AllowsDNS(name string) bool {
	return names.CheckServer(name) == nil && matchesAny(s.dns, name)
}

// AllowsAddress tells whether an address may; there are no patterns of addresses.
func (s ServerNames) AllowsAddress(address netip.Addr) bool {
	return slices.Contains(s.addresses, address)
}

func (s *ServerNames) read(n node) error {
	s.given = true
	_, err := n.List(func(item node) error {
		text, err := item.Text()
		if err != nil {
			return err
		}
		if address, err := netip.ParseAddr(text); err == nil && address.Zone() == "" {
			s.addresses = append(s.addresses, address.Unmap())
			return nil
		}
		if err := names.CheckServerPattern(text); err != nil {
			return item.Errorf("invalid name of a server %q: %v", text, err)
		}
		s.dns = append(s.dns, newGlob(text, inServer))
		return nil
	})
	return err
}
