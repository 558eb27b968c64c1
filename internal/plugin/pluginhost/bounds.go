package pluginhost

import (
	"context"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
)

// What the processes of an update may have open at a port of this process, which serves others, too: connections, and
// calls of all connections together, whether they have sent anything or not.
const (
	mostConnections = 2048
	mostCalls       = 2 * pluginprotocol.MaxStreams
)

// bounded is a listener with a number of connections at a time. Further ones are closed.
type bounded struct {
	net.Listener
	places chan struct{}
	full   func()
}

func newBounded(l net.Listener, most int, log func(Message)) net.Listener {
	return &bounded{l, make(chan struct{}, most), sync.OnceFunc(func() {
		log(Message{Severity: diag.Warning, Text: fmt.Sprintf("Processes of this update have more than %d connections "+
			"to its engine: further ones are closed.", most)})
	})}
}

// Accept waits for the next connection for which there is a place.
func (b *bounded) Accept() (net.Conn, error) {
	for {
		conn, err := b.Listener.Accept()
		if err != nil {
			return nil, err
		}
		select {
		case b.places <- struct{}{}:
			return &placed{Conn: conn, leave: sync.OnceFunc(func() { <-b.places })}, nil
		default:
			_ = conn.Close()
			b.full()
		}
	}
}

// placed is a connection that has a place.
type placed struct {
	net.Conn
	leave func()
}

func (c *placed) Close() error {
	defer c.leave()
	return c.Conn.Close()
}

// openCalls counts the calls of a server that have begun: one whose request never arrives costs memory, too.
type openCalls struct {
	most int64
	open atomic.Int64
}

// admit lets a call begin.
func (c *openCalls) admit(ctx context.Context, _ *tap.Info) (context.Context, error) {
	if c.open.Add(1) > c.most {
		c.open.Add(-1)
		return nil, status.Errorf(codes.ResourceExhausted, "more than %d calls are open at once", c.most)
	}
	context.AfterFunc(ctx, func() { c.open.Add(-1) })
	return ctx, nil
}
