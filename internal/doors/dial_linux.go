package doors

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"strconv"

	"golang.org/x/sys/unix"
)

// nowhere is the index of a network interface that no system has.
const nowhere = 1 << 30

// Dial connects to the port on which a plugin of the household listens, and closes the port: plugins listen for one engine,
// and take whoever comes. It is an error if a stranger is connected already. Where the kernel does not let this process reach
// into the plugin's sockets, it only connects, and sealed is false.
//
// A closed port is a listening socket that belongs to an interface that does not exist, at which nothing arrives. The connections
// that were made before are other sockets and stay as they are.
func Dial(ctx context.Context, h Household, port uint16) (conn net.Conn, sealed bool, err error) {
	var dialer net.Dialer
	if conn, err = dialer.DialContext(ctx, "tcp4", "127.0.0.1:"+strconv.Itoa(int(port))); err != nil {
		return nil, false, err
	}
	if sealed, err = closePort(h, port); err == nil && sealed {
		err = strangers(h, port, conn.LocalAddr().(*net.TCPAddr).AddrPort())
	}
	if err != nil {
		_ = conn.Close() // nothing was said
		return nil, false, err
	}
	return conn, sealed, nil
}

// closePort closes every socket with which processes of the household listen on a port; false if this process may not.
func closePort(h Household, port uint16) (bool, error) {
	listening, err := listeners(h, port)
	if err != nil {
		return false, err
	}
	defer closeAll(listening)
	closed := len(listening) > 0
	for _, fd := range listening {
		closed = unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_BINDTOIFINDEX, nowhere) == nil && closed
	}
	return closed, nil
}

// listeners are duplicates of the sockets with which processes of the household listen on a port. There are none if this process
// may not have them.
func listeners(h Household, port uint16) (fds []int, err error) {
	for _, s := range sockets(listening, func(s socket) bool { return s.local.Port() == port }) {
		fd, err := duplicate(h, s)
		switch {
		case err == nil:
			fds = append(fds, fd)
		case !errors.Is(err, fs.ErrNotExist):
			closeAll(fds)
			return nil, nil
		}
	}
	if len(fds) == 0 {
		return nil, fmt.Errorf("none of its processes listens on port %d", port)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd)
	}
}

// duplicate is a descriptor of this process for a socket of the household; fs.ErrNotExist if it is none of the household's.
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

// strangers is an error if somebody other than the household is connected to a port.
func strangers(h Household, port uint16, own netip.AddrPort) error {
	here := netip.AddrPortFrom(own.Addr(), port)
	for _, s := range sockets(others, func(s socket) bool { return s.remote == here && s.local != own }) {
		if !owned(h, s) {
			return &StrangerError{Port: int(port), UID: s.uid}
		}
	}
	return nil
}
