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

// Dial connects to the port on which a plugin of the household listens, and closes the port: plugins listen for one
// engine, and take whoever comes. It is an error if a stranger is connected already. Where the kernel does not let this
// process reach into the plugin's sockets, it only connects, and sealed is false.
//
// A closed port is a listening socket that belongs to an interface that does not exist, at which nothing arrives. The
// connections that were made before are other sockets and stay as they are.
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
		_ = conn.Close() // nothing was said
		return nil, false, err
	}
	return conn, sealed, nil
}

// closePort closes every socket with which processes of the household listen on a port, and returns the addresses at
// which they do; false if this process may not.
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

// listeners are duplicates of the sockets with which processes of the household listen on a port. There are none if
// this process may not have them.
func listeners(h Household, port uint16) (at []netip.Addr, fds []int, err error) {
	for _, s := range sockets(listening, func(s socket) bool { return s.local.Port() == port }) {
		fd, err := duplicate(h, s)
		switch {
		case err == nil:
			at, fds = append(at, s.local.Addr()), append(fds, fd)
		case !errors.Is(err, fs.ErrNotExist):
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

// duplicate is a descriptor of this process for a socket of the household; fs.ErrNotExist if it is none of the
// household's.
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

// strangers is an error if somebody other than the household is connected to a port on which it listens, at whatever
// address. One who has gone already is noticed while the household has its end open. Connections that both have closed
// are not looked at: they may be of whoever had the port before.
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

// user is the user id of who connected to a port; -1 if it is the port's end of the connection, or no process has it
// any more.
func (s socket) user(port uint16) int {
	if s.inode == "0" || s.remote.Port() != port {
		return -1
	}
	return s.uid
}

// listensAt tells whether what comes to an address reaches who listens at some.
func listensAt(at []netip.Addr, address netip.Addr) bool {
	return slices.ContainsFunc(at, func(a netip.Addr) bool { return a.IsUnspecified() || a == address })
}

// ofThisMachine tells whether an address is one of this machine's. Those that cannot be told from others are.
func ofThisMachine(address netip.Addr) bool {
	known, err := net.InterfaceAddrs()
	return err != nil || address.IsLoopback() || slices.ContainsFunc(known, func(a net.Addr) bool {
		prefix, err := netip.ParsePrefix(a.String())
		return err != nil || prefix.Addr().Unmap() == address.WithZone("")
	})
}
