// Where a connection was going to before the kernel redirected it here (REDIRECT of nftables or iptables).

package gateway

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"unsafe"

	"golang.org/x/sys/unix"
)

// soOriginalDst is of linux/netfilter_ipv4.h and, with the same number, linux/netfilter_ipv6/ip6_tables.h.
const soOriginalDst = 80

// ErrNotRedirected means that a connection was made to the listener itself.
var ErrNotRedirected = errors.New("the connection was not redirected here by the kernel: it would go round in a circle")

// OriginalDestination asks the kernel. It refuses connections to the listener's own address.
func OriginalDestination(c *net.TCPConn) (netip.AddrPort, error) {
	raw, err := c.SyscallConn()
	if err != nil {
		return netip.AddrPort{}, err
	}
	local, err := netip.ParseAddrPort(c.LocalAddr().String())
	if err != nil {
		return netip.AddrPort{}, err
	}
	var at netip.AddrPort
	var failed error
	err = raw.Control(func(fd uintptr) {
		if local.Addr().Unmap().Is4() {
			at, failed = original4(int(fd)) // #nosec G115 -- a descriptor
		} else {
			at, failed = original6(int(fd)) // #nosec G115 -- a descriptor
		}
	})
	switch {
	case err != nil || failed != nil:
		return netip.AddrPort{}, fmt.Errorf("%w: %w", ErrNotRedirected, errors.Join(err, failed))
	case at == netip.AddrPortFrom(local.Addr().Unmap(), local.Port()):
		return netip.AddrPort{}, ErrNotRedirected
	}
	return at, nil
}

// original4 reads a sockaddr_in: golang.org/x/sys/unix has no call for this option, but one that gives as many bytes.
func original4(fd int) (netip.AddrPort, error) {
	got, err := unix.GetsockoptIPv6Mreq(fd, unix.SOL_IP, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	p := got.Multiaddr // 2 bytes family, 2 bytes port, 4 bytes address
	return netip.AddrPortFrom(netip.AddrFrom4([4]byte(p[4:8])), binary.BigEndian.Uint16(p[2:4])), nil
}

// original6 reads a sockaddr_in6, in the same way.
func original6(fd int) (netip.AddrPort, error) {
	got, err := unix.GetsockoptIPv6MTUInfo(fd, unix.SOL_IPV6, soOriginalDst)
	if err != nil {
		return netip.AddrPort{}, err
	}
	port := (*[2]byte)(unsafe.Pointer(&got.Addr.Port)) // #nosec G103 -- in the order of the network, whatever this machine's
	return netip.AddrPortFrom(netip.AddrFrom16(got.Addr.Addr), binary.BigEndian.Uint16(port[:])), nil
}
