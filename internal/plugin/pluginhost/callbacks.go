package pluginhost

import (
	"context"
	"fmt"
	"net"
	"strconv"

	"github.com/deployctl/deployctl/internal/plugin/intake"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// Callbacks is a connection to a process of the update that serves functions of the program, such as transforms.
type Callbacks struct{ end *endpoint }

// Callbacks connects to the process of the update that serves functions at target. The target comes from the program:
// only a port on loopback on which a process of the update listens is connected to. The caller closes the connection.
func (h *Host) Callbacks(ctx context.Context, target string) (*Callbacks, error) {
	port, err := loopbackPort(target)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	e := &endpoint{name: "the program's functions", died: make(chan struct{}), tail: &tail{}}
	door := &door{box: h.opts.Box, port: port, intake: h.opts.Intake}
	dialer := func(ctx context.Context, address string) (net.Conn, error) {
		conn, err := door.dial(ctx, address)
		if err != nil {
			fail(err) // the program serves before it says where, so another attempt is no better
		}
		return conn, err
	}
	err = e.dial(ctx, "passthrough:///callbacks", grpc.WithContextDialer(dialer), grpc.WithIdleTimeout(0))
	if err != nil {
		return nil, fmt.Errorf("the address %s, at which the program says that it serves functions: %w", target, err)
	}
	if door.closed() {
		go e.keepConnected()
	}
	return &Callbacks{e}, nil
}

// loopbackPort returns the port of an address on loopback.
func loopbackPort(target string) (uint16, error) {
	host, text, err := net.SplitHostPort(target)
	port, portErr := strconv.ParseUint(text, 10, 16)
	if err != nil || portErr != nil || port == 0 || host != "127.0.0.1" && host != "localhost" {
		return 0, fmt.Errorf("functions of the program are called at 127.0.0.1:PORT only, and the program says %.100q",
			target)
	}
	return uint16(port), nil
}

// Invoke calls a function. The answer is read into response, and rejected if it has values that cannot be read.
func (c *Callbacks) Invoke(ctx context.Context, token string, request, response proto.Message) error {
	data, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	answer, err := pulumirpc.NewCallbacksClient(c.end.conn).Invoke(ctx, &pulumirpc.CallbackInvokeRequest{
		Token: token, Request: data,
	})
	if err != nil {
		return err
	}
	if err = intake.Unmarshal(answer.GetResponse(), response); err == nil {
		err = checkValues(response)
	}
	if err != nil {
		return status.Errorf(codes.Internal, "the answer cannot be read: %v", err)
	}
	return nil
}

// Close ends the calls that are still open.
func (c *Callbacks) Close() {
	close(c.end.died)
	_ = c.end.conn.Close()
}
