package provider

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// parentCheck is how often a plugin process looks whether the process that started it is still there.
const parentCheck = time.Second

// Main is a plugin process: it serves the package on a loopback port, prints the port as its first line, and returns
// when it is told to end (SIGTERM, SIGINT) or has lost the engine that started it. args are the command line without
// the program's name; the first that is no flag is the engine's address.
func Main(p Package, args []string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go watchParent(ctx, cancel)
	for _, arg := range args {
		if len(arg) > 0 && arg[0] != '-' {
			// A wrong address is not fatal: the parent is watched too.
			_ = rpcutil.Healthcheck(ctx, arg, time.Minute, cancel)
			break
		}
	}
	return Serve(ctx, p, os.Stdout)
}

// Serve serves the package on a loopback port until the context ends, having written the port as a line. Relative paths
// start from the working directory, which engines set to the program's.
func Serve(ctx context.Context, p Package, port io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("listening for the engine: %w", err)
	}
	s := newServer(p)
	srv := grpc.NewServer(append(panics.ServerOptions(nil), grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage))...)
	pulumirpc.RegisterResourceProviderServer(srv, s)
	if _, err := fmt.Fprintf(port, "%d\n", listener.Addr().(*net.TCPAddr).Port); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() {
		s.cancel() // what runs ends, and with it the call
		srv.Stop()
	})
	defer stop()
	return srv.Serve(listener)
}

// watchParent cancels when this process has been handed to another parent.
func watchParent(ctx context.Context, cancel context.CancelFunc) {
	parent := os.Getppid()
	tick := time.NewTicker(parentCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if os.Getppid() != parent {
				cancel()
				return
			}
		}
	}
}
