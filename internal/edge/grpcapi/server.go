package grpcapi

import (
	"cmp"
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"
)

// Sizes of messages. Whatever may be larger travels in chunks.
const (
	MaxMessage = 16 << 20  // one message, either way
	MaxContent = 256 << 20 // what the chunks of one call may add up to: a file, a deployment
	chunkSize  = 1 << 20
)

// Bounds of a connection: its headers, how long it may take to be made, and to be idle.
const (
	maxHeader       = 16 << 10
	connectPatience = 10 * time.Second
	idlePatience    = 10 * time.Minute
)

// stopGrace is how long calls in flight may go on after a stop; streams end at once, their clients come back.
const stopGrace = 5 * time.Second

// Config says what is served.
type Config struct {
	Service Service
	// Authority checks tokens; every call but health needs one.
	Authority Authority
	// Auditor keeps the audit log; nil for none.
	Auditor Auditor
	// Memory is shared among the organizations, with other edges; nil: this edge has its own.
	Memory *mempool.Pool
	// Calls are those under way, with other edges; nil: this edge counts its own.
	Calls *Calls
	// TLS is nil only on loopback; see Listen.
	TLS *tls.Config
	// Unary and Stream see every call, those that are refused too; they may be nil.
	Unary  grpc.UnaryServerInterceptor
	Stream grpc.StreamServerInterceptor
	// Health, if not nil, is the health that is told; the caller may change it.
	Health *health.Server
	// Away says which part of the service does not answer now, if one does not, and returns at once; it may be nil.
	Away func() error
	// Tracing makes a span of each call of a caller who is known; nil: none.
	Tracing *tracing.Tracing
	// Log gets the errors whose text is not for callers.
	Log *slog.Logger

	recheckEvery time.Duration // the constant of this name, but in tests
}

// Serve answers calls on the listener, which it closes, until ctx ends; then it ends streams and waits a little for the
// calls in flight.
func Serve(ctx context.Context, listener net.Listener, c Config) error {
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	server, healthy, err := newServer(streams, c)
	if err != nil {
		_ = listener.Close() // nobody was served
		return err
	}
	listener = Limited(listener)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		healthy.Shutdown()
		endStreams()
		timer := time.AfterFunc(stopGrace, server.Stop)
		defer timer.Stop()
		server.GracefulStop()
	}()
	err = server.Serve(listener)
	if ctx.Err() != nil {
		<-stopped
		return nil
	}
	return err
}

// newServer makes the server; streams ends all of its streams.
func newServer(streams context.Context, c Config) (*grpc.Server, *health.Server, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	unary := map[string]bool{}
	edge := &edge{authority: c.Authority, auditor: c.Auditor, log: c.Log, streams: streams, unary: unary,
		bounds: newBounds(c.Memory), calls: cmp.Or(c.Calls, NewCalls()), away: c.Away,
		open: newCalls(mostOpen, mostOfHost, mostOfHost), entering: newEntering(),
		recheckEvery: cmp.Or(c.recheckEvery, recheckEvery), tracing: c.Tracing}
	if c.Service != nil {
		edge.mode = c.Service.Mode
	}
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MaxMessage), grpc.MaxSendMsgSize(MaxMessage), grpc.MaxConcurrentStreams(maxStreams),
		grpc.InitialWindowSize(windowSize), grpc.InitialConnWindowSize(16 * windowSize),
		grpc.MaxHeaderListSize(maxHeader), grpc.ConnectionTimeout(connectPatience),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: idlePatience, Time: 30 * time.Second,
			Timeout: 20 * time.Second}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 10 * time.Second,
			PermitWithoutStream: true}),
		grpc.ForceServerCodecV2(newCodec()), grpc.StatsHandler(readStats{}), grpc.InTapHandle(edge.enter),
		grpc.StreamInterceptor(counted(c, unary, edge.serve)),
	}
	if c.TLS != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(c.TLS)))
	}
	server := grpc.NewServer(options...)
	healthy := c.Health
	if healthy == nil {
		healthy = health.NewServer()
	}
	register(asStreams{server, unary}, c.Service, healthy)
	return server, healthy, checkRules(server.GetServiceInfo())
}

// register adds every service of the API.
func register(to grpc.ServiceRegistrar, service Service, healthy *health.Server) {
	api.RegisterDeploymentsServer(to, &updates{service: service})
	api.RegisterStacksServer(to, &stacks{service: service})
	api.RegisterBundlesServer(to, &bundles{service: service})
	api.RegisterTokensServer(to, &tokens{service: service})
	api.RegisterMembersServer(to, &members{service: service})
	api.RegisterTeamsServer(to, &teams{service: service})
	api.RegisterTrustsServer(to, &trusts{service: service})
	api.RegisterAuditServer(to, &audit{service: service})
	api.RegisterSchedulesServer(to, &schedules{service: service})
	api.RegisterWebhooksServer(to, &webhooks{service: service})
	api.RegisterProfilesServer(to, &profiles{service: service})
	api.RegisterModesServer(to, &modes{service: service})
	api.RegisterQuotasServer(to, &quotas{service: service})
	grpc_health_v1.RegisterHealthServer(to, healthy)
}
