package doors

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// knows reports whether the kernel has tables of sockets; a system that only resembles Linux does not.
func knows() bool {
	_, err := os.Stat("/proc/net/tcp")
	return err == nil
}

// mine reports whether a process of this user, or root, has a socket open.
func (s socket) mine() bool { return s.inode != "0" && (s.uid == 0 || s.uid == os.Getuid()) }

// end returns the address of one end of a connection.
func end(a net.Addr) netip.AddrPort {
	at := a.(*net.TCPAddr).AddrPort()
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port())
}

// established reports whether a connection is open in both directions, so that no other one has its addresses.
func established(conn net.Conn) bool {
	c, ok := conn.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return false
	}
	open := false
	err = raw.Control(func(fd uintptr) {
		protocol, err := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_PROTOCOL)
		if err != nil || protocol != unix.IPPROTO_TCP { // see open
			return
		}
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		open = err == nil && info.State == stateEstablished
	})
	return err == nil && open
}

// peer returns the socket at the other end of a connection within this machine; false if there is none, or none any
// more.
func peer(conn net.Conn) (socket, bool) {
	s, ok := connection(end(conn.RemoteAddr()), end(conn.LocalAddr()))
	return s, ok && s.state == stateEstablished && established(conn) // in this order
}

// ofThisUser reports whether a connection on loopback was made by this process's user or by root. It returns false if
// the other end is closed already.
func ofThisUser(conn net.Conn) bool {
	if !knows() {
		return true
	}
	s, ok := peer(conn)
	return ok && s.mine()
}

// servedByThisUser returns nil if the process that has accepted a connection is of this user or root. The user of a
// socket is the one who accepted it, whoever listens by then.
func servedByThisUser(ctx context.Context, conn net.Conn) error {
	if !knows() {
		return nil
	}
	s, ok := server(ctx, conn)
	switch {
	case ok && s.mine():
		return nil
	case ok:
		return &ServerError{Address: end(conn.RemoteAddr()).String(), UID: s.uid}
	default:
		return &ServerError{Address: end(conn.RemoteAddr()).String(), UID: -1}
	}
}

// server returns the other end of a connection that this process has made, once somebody has accepted it; false if
// nobody did before ctx ended, it was closed, or is not on this machine.
func server(ctx context.Context, conn net.Conn) (socket, bool) {
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		s, ok := connection(end(conn.RemoteAddr()), end(conn.LocalAddr()))
		switch {
		case !ok || !established(conn):
			return socket{}, false
		case s.inode != "0":
			return s, s.state == stateEstablished
		}
		select {
		case <-ctx.Done():
			return socket{}, false
		case <-time.After(pause):
		}
	}
}

// Holders returns the users whose processes listen on a TCP port of loopback, or of all addresses; known is false
// where the system does not tell.
func Holders(port int) (uids []int, known bool) {
	if !knows() {
		return nil, false
	}
	all, err := sockets(listening, func(s socket) bool {
		at := s.local.Addr()
		return int(s.local.Port()) == port && (at.IsLoopback() || at.IsUnspecified())
	})
	if err != nil {
		return nil, false
	}
	for _, s := range all {
		if !slices.Contains(uids, s.uid) {
			uids = append(uids, s.uid)
		}
	}
	return uids, true
}
