package monitor

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/panics"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// maxTargets bounds the processes that serve functions of one program: its own, and those of component providers.
const maxTargets = 100

// longestCallback bounds, in bytes, what a program says about one of its functions: it is kept.
const longestCallback = 4 << 10

// callbacks are the connections through which functions of the program are called, by target. There is one connection
// for each: a process may accept no second one. It is safe for concurrent use.
type callbacks struct {
	host    Host
	mu      sync.Mutex
	targets map[string]*target
	closed  bool
}

// target is a connection to one process. Its other fields are set once ready is closed.
type target struct {
	ready chan struct{}
	conn  *pluginhost.Callbacks
	err   error
}

// check returns an error if a callback cannot be one.
func (c *callbacks) check(cb *pulumirpc.Callback) error {
	if cb.GetTarget() == "" {
		return status.Error(codes.InvalidArgument, "a function of the program must have a target")
	}
	if proto.Size(cb) > longestCallback {
		return status.Errorf(codes.InvalidArgument, "a function of the program is named in more than %d bytes",
			longestCallback)
	}
	return nil
}

// invoke calls a function of the program.
func (c *callbacks) invoke(ctx context.Context, cb *pulumirpc.Callback, request, response proto.Message) error {
	conn, err := c.connection(ctx, cb.GetTarget())
	if err != nil {
		return err
	}
	return conn.Invoke(ctx, cb.GetToken(), request, response)
}

// connection returns the connection to a target; the first call makes it.
func (c *callbacks) connection(ctx context.Context, name string) (*pluginhost.Callbacks, error) {
	c.mu.Lock()
	t, ok := c.targets[name]
	switch {
	case c.closed:
		c.mu.Unlock()
		return nil, status.Error(codes.Unavailable, "the program has ended")
	case !ok && len(c.targets) >= maxTargets:
		c.mu.Unlock()
		return nil, status.Errorf(codes.ResourceExhausted, "the program serves functions at more than %d addresses",
			maxTargets)
	case !ok:
		t = &target{ready: make(chan struct{})}
		c.targets[name] = t
		go func() {
			defer close(t.ready)
			defer panics.Into(&t.err, "connecting to the program's functions")
			t.conn, t.err = c.host.Callbacks(context.WithoutCancel(ctx), name)
		}()
	}
	c.mu.Unlock()
	select {
	case <-t.ready:
		return t.conn, t.err
	case <-ctx.Done():
		return nil, status.FromContextError(ctx.Err()).Err()
	}
}

// close ends the calls that are still open, and makes all later ones fail.
func (c *callbacks) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	for _, t := range c.targets {
		go func() {
			if <-t.ready; t.conn != nil {
				t.conn.Close()
			}
		}()
	}
	c.targets = map[string]*target{}
}
