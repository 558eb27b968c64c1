package porttest

import (
	"fmt"
	"io"
	"syscall"
)

// held is a socket that is bound and does not listen. Unlike a file it is not closed because nobody refers to it any
// more.
type held int

func (h held) Close() error { return syscall.Close(int(h)) }

// reserve binds a socket and does not listen. The kernel then chooses the port for nobody, neither to listen on nor to
// connect from, but whoever asks for it by its number may listen there: with SO_REUSEADDR, as Go's listeners have it, a
// socket that does not listen is no conflict.
func reserve() (address string, reservation io.Closer, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("reserving a port: %w", err)
	}
	err = shared(fd)
	if err == nil {
		address, err = bind(fd, 0)
	}
	if err != nil {
		_ = syscall.Close(fd)
		return "", nil, fmt.Errorf("reserving a port: %w", err)
	}
	return address, held(fd), nil
}

// reserveLow binds a socket to a port that nobody has bound, and shares it then.
func reserveLow() (address string, reservation io.Closer, err error) {
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return "", nil, fmt.Errorf("reserving a port: %w", err)
	}
	for port := highestLow; port >= lowestLow; port-- {
		if address, err = bind(fd, port); err == nil {
			err = shared(fd)
			break
		}
	}
	if err != nil {
		_ = syscall.Close(fd)
		return "", nil, fmt.Errorf("reserving a port: %w", err)
	}
	return address, held(fd), nil
}

// shared lets others listen on the port of a socket.
func shared(fd int) error {
	return syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1)
}

// bind binds a socket to a port of loopback, 0 for one that is free, and returns the address.
func bind(fd, port int) (address string, err error) {
	if err := syscall.Bind(fd, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return "", err
	}
	bound, err := syscall.Getsockname(fd)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("127.0.0.1:%d", bound.(*syscall.SockaddrInet4).Port), nil
}
