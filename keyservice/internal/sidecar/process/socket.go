// The kernel's socket diagnostics (sock_diag(7)): one socket, by both of its addresses.

package process

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"

	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// Sizes and places in struct inet_diag_req_v2 and struct inet_diag_msg (linux/inet_diag.h), in bytes. Both hold a struct inet_diag_sockid:
// ports and addresses in network order.
const (
	requestSize = 56
	requestID   = 8
	messageSize = 72
	messageID   = 4
	uidAt       = 64
	inodeAt     = 68

	established = 1 // TCP_ESTABLISHED
	allStates   = 0xFFFFFFFF
	noCookie    = 0xFFFFFFFF

	idSize      = 48 // of inet_diag_sockid
	destination = 2  // port
	source      = 4  // address; the ports come before it
	target      = 20 // address
	cookie      = 40
)

// diagRequest implements nl.NetlinkRequestData.
type diagRequest [requestSize]byte

func (d *diagRequest) Len() int          { return requestSize }
func (d *diagRequest) Serialize() []byte { return d[:] }

// lookUp asks for the socket with these addresses. An IPv6 socket that speaks IPv4 is found by its IPv4 addresses.
func lookUp(local, remote netip.AddrPort) (inode, uid uint32, err error) {
	d, family := newRequest(local, remote)
	request := nl.NewNetlinkRequest(nl.SOCK_DIAG_BY_FAMILY, 0)
	request.AddData(d)
	answers, err := request.Execute(unix.NETLINK_INET_DIAG, 0)
	if err != nil {
		return 0, 0, err
	}
	for _, a := range answers {
		if len(a) < messageSize || a[1] != established {
			continue
		}
		if !bytes.Equal(a[messageID:messageID+source], d[requestID:requestID+source]) {
			continue
		}
		return binary.NativeEndian.Uint32(a[inodeAt:]), binary.NativeEndian.Uint32(a[uidAt:]), nil
	}
	return 0, 0, fmt.Errorf("no connection of family %d from %s to %s", family, local, remote)
}

func newRequest(local, remote netip.AddrPort) (*diagRequest, byte) {
	d := &diagRequest{unix.AF_INET6, unix.IPPROTO_TCP}
	if local.Addr().Is4() {
		d[0] = unix.AF_INET
	}
	binary.NativeEndian.PutUint32(d[4:], allStates)
	id := d[requestID : requestID+idSize]
	binary.BigEndian.PutUint16(id, local.Port())
	binary.BigEndian.PutUint16(id[destination:], remote.Port())
	copy(id[source:], local.Addr().AsSlice())
	copy(id[target:], remote.Addr().AsSlice())
	binary.NativeEndian.PutUint32(id[cookie:], noCookie)
	binary.NativeEndian.PutUint32(id[cookie+4:], noCookie)
	return d, d[0]
}

// addressesOf gives both ends of a connection within this host.
func addressesOf(client, local net.Addr) (from, to netip.AddrPort, err error) {
	c, ok1 := client.(*net.TCPAddr)
	l, ok2 := local.(*net.TCPAddr)
	if !ok1 || !ok2 {
		return from, to, ErrRemote
	}
	from, to = plain(c.AddrPort()), plain(l.AddrPort())
	if from.Addr() != to.Addr() && (!from.Addr().IsLoopback() || !to.Addr().IsLoopback()) {
		return from, to, ErrRemote // within a host both ends have one address, or loopback ones
	}
	return from, to, nil
}

func plain(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
