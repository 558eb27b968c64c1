package production

import (
	"io"
	"net"
	"sync/atomic"
)

// balancer is a load balancer for TCP, as stands before several serve: it gives each connection to the next of them
// that accepts it.
type balancer struct {
	listener net.Listener
	targets  []string
	turn     atomic.Uint32
}

func newBalancer(targets ...string) (*balancer, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	b := &balancer{listener: l, targets: targets}
	go b.serve()
	return b, nil
}

func (b *balancer) address() string { return b.listener.Addr().String() }

func (b *balancer) close() { _ = b.listener.Close() }

func (b *balancer) serve() {
	for {
		client, err := b.listener.Accept()
		if err != nil {
			return
		}
		go b.carry(client)
	}
}

// carry carries a connection until either end closes it.
func (b *balancer) carry(client net.Conn) {
	defer func() { _ = client.Close() }()
	server := b.dial()
	if server == nil {
		return
	}
	defer func() { _ = server.Close() }()
	ended := make(chan struct{}, 2)
	carry := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		ended <- struct{}{}
	}
	go carry(server, client)
	go carry(client, server)
	<-ended
}

// dial connects to the next one that accepts, or to none.
func (b *balancer) dial() net.Conn {
	first := int(b.turn.Add(1))
	for i := range b.targets {
		if server, err := net.Dial("tcp", b.targets[(first+i)%len(b.targets)]); err == nil {
			return server
		}
	}
	return nil
}
