package doors

import (
	"context"
	"net"
	"net/netip"
	"os"
	"slices"
	"time"
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

// ofThisUser reports whether a connection on loopback was made by this process's user or by root. It returns false if
// the other end is closed already.
func ofThisUser(conn net.Conn) bool {
	if !knows() {
		return true
	}
	s, ok := connection(end(conn.RemoteAddr()), end(conn.LocalAddr()))
	return ok && s.mine()
}

// servedByThisUser returns nil if the process that has accepted a connection is of this user or root. Until somebody
// has accepted it, it waits: the user of a socket is the one who accepted it, whoever listens by then.
func servedByThisUser(ctx context.Context, conn net.Conn) error {
	if !knows() {
		return nil
	}
	there, here := end(conn.RemoteAddr()), end(conn.LocalAddr())
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		s, ok := connection(there, here)
		switch {
		case ok && s.mine():
			return nil
		case ok && s.inode != "0":
			return &ServerError{Address: there.String(), UID: s.uid}
		case !ok: // it was closed, or is not on this machine
			return &ServerError{Address: there.String(), UID: -1}
		}
		select {
		case <-ctx.Done():
			return &ServerError{Address: there.String(), UID: -1}
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
	for _, s := range sockets(listening, func(s socket) bool {
		at := s.local.Addr()
		return int(s.local.Port()) == port && (at.IsLoopback() || at.IsUnspecified())
	}) {
		if !slices.Contains(uids, s.uid) {
			uids = append(uids, s.uid)
		}
	}
	return uids, true
}
