package provider

import (
	"context"
	"net"

	"github.com/deployctl/deployctl/internal/plugin/pluginprotocol"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
)

// Client serves a provider in this process, over a connection in memory: the protocol as it is, trailers and
// cancellation included. The function ends it, cutting off calls that are still running.
func Client(s pulumirpc.ResourceProviderServer) (pulumirpc.ResourceProviderClient, func(), error) {
	const buffer = 1 << 20
	listener := bufconn.Listen(buffer)
	srv := grpc.NewServer(append(panics.ServerOptions(nil), grpc.MaxRecvMsgSize(pluginprotocol.MaxMessage))...)
	pulumirpc.RegisterResourceProviderServer(srv, s)
	go func() { _ = srv.Serve(listener) }() // ends with Stop
	conn, err := grpc.NewClient("passthrough:///in-process",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn,
			error) {
			return listener.DialContext(ctx)
		}),
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		srv.Stop()
		return nil, nil, err
	}
	return pulumirpc.NewResourceProviderClient(conn), func() { _ = conn.Close(); srv.Stop() }, nil
}
