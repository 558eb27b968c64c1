package languagehost

import (
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sys/panics"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
)

// Main is the plugin pulumi-language-RUNTIME: it serves on a loopback port, prints that port, and runs until it is told
// to end by a signal or by the end of its stdin. The last argument is the address of the engine; flags are accepted and
// ignored. It returns the exit code.
func Main(runtime string, args []string) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := serve(ctx, runtime, args); err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "pulumi-language-%s: %v\n", runtime, err)
		return 1
	}
	return 0
}

func serve(ctx context.Context, runtime string, args []string) error {
	if len(args) == 0 || strings.HasPrefix(args[len(args)-1], "-") {
		return fmt.Errorf("the address of the engine is missing: this program is started by deployctl or pulumi")
	}
	host, ok := New(runtime, Options{
		Engine: args[len(args)-1], Env: os.Environ(),
		Stdout: func(line string) { _, _ = fmt.Fprintln(os.Stdout, line) },
		Stderr: func(line string) { _, _ = fmt.Fprintln(os.Stderr, line) },
	})
	if !ok {
		return fmt.Errorf("there is no such language host")
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := grpc.NewServer(append(panics.ServerOptions(nil), // its Stop waits for programs to be killed
		grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage), grpc.MaxSendMsgSize(pluginprotocol.MaxMessage),
		grpc.WaitForHandlers(true))...)
	pulumirpc.RegisterLanguageRuntimeServer(server, host)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)

	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	select {
	case err := <-served:
		return err
	case <-ctx.Done():
	case <-ownerGone():
	}
	server.Stop()
	return <-served
}

// ownerGone is closed when stdin ends, if it is a pipe: then whoever started us holds the other end.
func ownerGone() <-chan struct{} {
	info, err := os.Stdin.Stat()
	if err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		close(gone)
	}()
	return gone
}
