package doors

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// nowhere is the index of a network interface that no system has.
const nowhere = 1 << 30

// Dial connects to the port on which a plugin of the household listens, and closes the port to others: a plugin serves
// one engine, but accepts every connection. It fails if no process of the household is seen to listen there, with a
// StrangerError if another process is connected already, and if another process has accepted the connection: others can
// listen beside a plugin, at another address or, by the name of an interface, at a closed port. If the kernel does not
// let this process duplicate the listening socket, the port stays open, and sealed is false.
//
// A port is closed by binding its listening socket to a network interface that does not exist, so that nothing arrives
// there. Existing connections are other sockets and are not affected.
func Dial(ctx context.Context, h Household, port uint16) (conn net.Conn, sealed bool, err error) {
	var dialer net.Dialer
	if conn, err = dialer.DialContext(ctx, "tcp4", "127.0.0.1:"+strconv.Itoa(int(port))); err != nil {
		return nil, false, err
	}
	var at []netip.Addr
	if at, sealed, err = closePort(h, port); err == nil {
		err = strangers(h, port, at, conn.LocalAddr().(*net.TCPAddr).AddrPort())
	}
	if err == nil {
		err = reached(ctx, h, conn)
	}
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, false, err
	}
	return conn, sealed, nil
}

// reached returns an error unless a process of the household has accepted a connection.
func reached(ctx context.Context, h Household, conn net.Conn) error {
	if !knows() {
		return nil
	}
	if s, ok := server(ctx, conn); !ok || !owned(h, s) {
		return fmt.Errorf("none of its processes has accepted the connection to %s", conn.RemoteAddr())
	}
	return nil
}

// closePort closes every socket with which processes of the household listen on a port, and returns the addresses of
// these sockets. It fails if none listens there. closed is false if one of the sockets cannot be closed.
func closePort(h Household, port uint16) (at []netip.Addr, closed bool, err error) {
	all, err := sockets(listening, func(s socket) bool { return s.local.Port() == port })
	if err != nil {
		return nil, false, err
	}
	closed = true
	for _, s := range all {
		pid, fd, err := holder(h, s)
		if err != nil {
			continue // another's, or one that nobody shows
		}
		at, closed = append(at, s.local.Addr()), closeListener(pid, fd) == nil && closed
	}
	if len(at) == 0 {
		return nil, false, fmt.Errorf("none of its processes listens on port %d", port)
	}
	return at, closed, nil
}

// closeListener closes the listening socket that a process has under a descriptor.
func closeListener(pid, fd int) error {
	listener, err := get(pid, fd)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(listener) }()
	return unix.SetsockoptInt(listener, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere)
}

func get(pid, fd int) (int, error) {
	process, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return -1, err
	}
	defer func() { _ = unix.Close(process) }()
	return unix.PidfdGetfd(process, fd, 0)
}

// strangers returns a StrangerError if a process outside the household is connected to a port on which the household
// listens, at any of its addresses. A process that has closed its end is still noticed while the household has the
// other end open. Connections that both sides have closed are ignored: they may belong to an earlier user of the port.
func strangers(h Household, port uint16, at []netip.Addr, own netip.AddrPort) error {
	own = netip.AddrPortFrom(own.Addr().Unmap(), own.Port())
	all, err := sockets(others&^waiting, func(s socket) bool {
		return s.local != own && s.remote != own && (s.local.Port() == port && listensAt(at, s.local.Addr()) ||
			s.remote.Port() == port && listensAt(at, s.remote.Addr()) && ofThisMachine(s.remote.Addr()))
	})
	if err != nil {
		return err
	}
	ours := map[[2]netip.AddrPort]bool{} // the ends of the household's own connections to itself
	for _, s := range all {
		if s.remote.Port() == port && owned(h, s) {
			ours[[2]netip.AddrPort{s.remote, s.local}] = true
		}
	}
	for _, s := range all {
		if !ours[[2]netip.AddrPort{s.local, s.remote}] && !ours[[2]netip.AddrPort{s.remote, s.local}] {
			return &StrangerError{Port: int(port), UID: s.user(port)}
		}
	}
	return nil
}

// user returns the user id of the process that connected to a port; -1 if the socket is the port's end of the
// connection, or no process has it any more.
func (s socket) user(port uint16) int {
	if s.inode == "0" || s.remote.Port() != port {
		return -1
	}
	return s.uid
}

// listensAt reports whether a connection to an address reaches a socket that listens at one of the addresses.
func listensAt(at []netip.Addr, address netip.Addr) bool {
	return slices.ContainsFunc(at, func(a netip.Addr) bool { return a.IsUnspecified() || a == address })
}

// ofThisMachine reports whether an address belongs to this machine. In doubt it returns true.
func ofThisMachine(address netip.Addr) bool {
	known, err := net.InterfaceAddrs()
	return err != nil || address.IsLoopback() || slices.ContainsFunc(known, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err != nil || prefix.Addr().Unmap() == address.WithZone("")
	})
}
