package doors

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// Open listens on HOST:PORT. The name localhost is opened at both of its addresses, or not at all: clients call
// whichever they try first, and nobody else shall listen there.
func Open(address string) (net.Listener, error) {
	if host, port, err := net.SplitHostPort(address); err == nil && host == "localhost" {
		return listenBoth(port)
	}
	return open("tcp", address)
}

// open listens as net.Listen does, but without Multipath TCP: a connection of several paths is known by the first one's
// addresses, and goes on when that path has ended and somebody else has them.
func open(network, address string) (net.Listener, error) {
	var config net.ListenConfig
	config.SetMultipathTCP(false)
	return config.Listen(context.Background(), network, address)
}

// listenBoth listens on a port of both loopback addresses, or of IPv4's where the machine has no IPv6.
func listenBoth(port string) (net.Listener, error) {
	four, err := open("tcp4", net.JoinHostPort("127.0.0.1", port))
	if err != nil {
		return nil, err
	}
	_, port, _ = net.SplitHostPort(four.Addr().String()) // it may have been 0
	six, err := open("tcp6", net.JoinHostPort("::1", port))
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		return four, nil
	}
	if err != nil {
		_ = four.Close() // nobody has connected
		return nil, err
	}
	b := &both{Listener: four, six: six, accepted: make(chan accepted), closed: make(chan struct{})}
	go b.accept(four)
	go b.accept(six)
	return b, nil
}

// both are two listeners as one, whose address is the first one's.
type both struct {
	net.Listener
	six      net.Listener
	accepted chan accepted
	closed   chan struct{}
	closing  sync.Once
	err      error // of Close
}

type accepted struct {
	conn net.Conn
	err  error
}

func (b *both) accept(from net.Listener) {
	for {
		conn, err := from.Accept()
		select {
		case b.accepted <- accepted{conn, err}:
			if errors.Is(err, net.ErrClosed) {
				return
			}
		case <-b.closed:
			if err == nil {
				_ = conn.Close() // nobody waits for it
			}
			return
		}
	}
}

func (b *both) Accept() (net.Conn, error) {
	select {
	case a := <-b.accepted:
		return a.conn, a.err
	case <-b.closed:
		return nil, net.ErrClosed
	}
}

func (b *both) Close() error {
	b.closing.Do(func() {
		close(b.closed)
		b.err = errors.Join(b.Listener.Close(), b.six.Close())
	})
	return b.err
}
