package doors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"
)

// nowhere is the index of a network interface that no system has.
const nowhere = 1 << 30

// Dial connects to the port on which a plugin of the household listens, and closes the port to others: a plugin serves
// one engine, but accepts every connection. It fails with a StrangerError if another process is connected already. If
// the kernel does not give this process access to the plugin's sockets, Dial only connects, and sealed is false.
//
// A port is closed by binding its listening socket to a network interface that does not exist, so that nothing arrives
// there. Existing connections are other sockets and are not affected.
func Dial(ctx context.Context, h Household, port uint16) (conn net.Conn, sealed bool, err error) {
	var dialer net.Dialer
	if conn, err = dialer.DialContext(ctx, "tcp4", "127.0.0.1:"+strconv.Itoa(int(port))); err != nil {
		return nil, false, err
	}
	var at []netip.Addr
	if at, sealed, err = closePort(h, port); err == nil && sealed {
		err = strangers(h, port, at, conn.LocalAddr().(*net.TCPAddr).AddrPort())
	}
	if err != nil {
		_ = conn.Close() // nothing was sent
		return nil, false, err
	}
	return conn, sealed, nil
}

// closePort closes every socket with which processes of the household listen on a port, and returns the addresses of
// these sockets. closed is false if this process has no access to one of them.
func closePort(h Household, port uint16) (at []netip.Addr, closed bool, err error) {
	at, listening, err := listeners(h, port)
	if err != nil {
		return nil, false, err
	}
	defer closeAll(listening)
	closed = len(listening) > 0
	for _, fd := range listening {
		closed = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere) == nil && closed
	}
	return at, closed, nil
}

// listeners returns duplicates of the sockets with which processes of the household listen on a port, and their
// addresses; none if this process has no access to one of them. It fails if none of the household listens there: a
// socket of another user is never the household's.
func listeners(h Household, port uint16) (at []netip.Addr, fds []int, err error) {
	for _, s := range sockets(listening, func(s socket) bool { return s.local.Port() == port }) {
		fd, err := duplicate(h, s)
		switch {
		case err == nil:
			at, fds = append(at, s.local.Addr()), append(fds, fd)
		case !errors.Is(err, fs.ErrNotExist) && s.uid == h.UID():
			closeAll(fds)
			return nil, nil, nil
		}
	}
	if len(fds) == 0 {
		return nil, nil, fmt.Errorf("none of its processes listens on port %d", port)
	}
	return at, fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// duplicate returns a descriptor in this process for a socket of the household; fs.ErrNotExist if no process of the
// household has the socket.
func duplicate(h Household, s socket) (int, error) {
	result := fs.ErrNotExist
	for pid := range members(h.Processes()) {
		fd, err := descriptor(pid, s)
		if err == nil {
			if fd, err = get(pid, fd); err == nil {
				return fd, nil
			}
		}
		if !errors.Is(err, fs.ErrNotExist) {
			result = err
		}
	}
	return -1, result
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
	all := sockets(others&^waiting, func(s socket) bool {
		return s.local != own && s.remote != own && (s.local.Port() == port && listensAt(at, s.local.Addr()) ||
			s.remote.Port() == port && listensAt(at, s.remote.Addr()) && ofThisMachine(s.remote.Addr()))
	})
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
