package client

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"net"
	"os"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
)

// Options are those of a connection to a service.
type Options struct {
	Address string // HOST:PORT
	Token   string
	// CAFile has the certificates (PEM) that must have signed the service's; empty means the system's off loopback, and
	// a connection without TLS on loopback. There, the service must be of this user or root, where the system tells.
	CAFile string
	// Patience is how long a call tries to reach the service; 0 means one minute. A Watch that has begun retries for as
	// long as its context lasts.
	Patience time.Duration
	// FirstPatience is Patience until the service has answered once, be it that a part of it does not; 0 means the same.
	FirstPatience time.Duration
	// Missed is called after every attempt that did not reach the service, before the next one. It must return soon,
	// and may be called concurrently. It may be nil.
	Missed func()
	// Waiting is called with the part of the service that does not answer, in the service's words, once until the next
	// call succeeds, and then with "". It may be nil.
	Waiting func(why string)
	// Span, if not nil, is what the calls are for: each has a span within it, and tells the service its place.
	Span *tracing.Span
	// Unreachable is called with true when the service has not been reached for a few seconds, and with false when it
	// is reached again. It may be nil.
	Unreachable func(bool)
}

// Client is a connection to the service. It may be used concurrently.
type Client struct {
	options    Options
	connection *grpc.ClientConn
	updates    api.DeploymentsClient
	stacks     api.StacksClient
	bundles    api.BundlesClient
	tokens     api.TokensClient
	members    api.MembersClient
	teams      api.TeamsClient
	trusts     api.TrustsClient
	audit      api.AuditClient
	schedules  api.SchedulesClient
	webhooks   api.WebhooksClient
	profiles   api.ProfilesClient
	modes      api.ModesClient
	quotas     api.QuotasClient
	silence    *silence
}

var _ deployments.Service = (*Client)(nil)

const maxMessage = 16 << 20

// Dial returns a client without waiting for the service; the first call does that.
func Dial(o Options) (*Client, error) {
	if o.Patience == 0 {
		o.Patience = time.Minute
	}
	if o.FirstPatience == 0 {
		o.FirstPatience = o.Patience
	}
	host, _, err := net.SplitHostPort(o.Address)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not the address of a service; write HOST:PORT",
			o.Address)
	}
	secure := !isLoopback(host) || o.CAFile != ""
	dial := []grpc.DialOption{
		grpc.WithPerRPCCredentials(bearer{o.Token, secure}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(maxMessage), grpc.MaxCallSendMsgSize(maxMessage)),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 20 * time.Second, Timeout: 10 * time.Second,
			PermitWithoutStream: false}),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: time.Second},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
	if secure {
		roots, err := certificates(o.CAFile)
		if err != nil {
			return nil, err
		}
		dial = append(dial, grpc.WithTransportCredentials(credentials.NewTLS(
			&tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12})))
	} else {
		connect := doors.Dialer(net.Dialer{})
		dial = append(dial, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithNoProxy(),
			grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
				return connect(ctx, "tcp", address)
			}))
	}
	quiet := &silence{tell: o.Unreachable, tellPart: o.Waiting}
	dial = append(dial, grpc.WithStatsHandler(quiet), grpc.WithChainUnaryInterceptor(tracing.Unary(o.Span), encoded),
		grpc.WithChainStreamInterceptor(tracing.Streaming(o.Span), encodedStream))
	connection, err := grpc.NewClient(o.Address, dial...)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not the address of a service: %w", o.Address,
			err)
	}
	return &Client{
		options: o, connection: connection,
		updates: api.NewDeploymentsClient(connection), stacks: api.NewStacksClient(connection),
		bundles: api.NewBundlesClient(connection), tokens: api.NewTokensClient(connection),
		teams: api.NewTeamsClient(connection), trusts: api.NewTrustsClient(connection),
		members: api.NewMembersClient(connection), audit: api.NewAuditClient(connection),
		schedules: api.NewSchedulesClient(connection), webhooks: api.NewWebhooksClient(connection),
		profiles: api.NewProfilesClient(connection),
		modes:    api.NewModesClient(connection), quotas: api.NewQuotasClient(connection),
		silence: quiet,
	}, nil
}

// Close ends the connection, and with it every call.
func (c *Client) Close() error { return c.connection.Close() }

// isLoopback reports whether a host is this machine: then no TLS and no proxy are used.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// certificates reads the roots for the service's certificate.
func certificates(file string) (*x509.CertPool, error) {
	if file == "" {
		return nil, nil // the system's
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot read the service's CA certificate: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(text) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "%s holds no certificate in PEM form", file)
	}
	return roots, nil
}

// bearer sends the token with every call; off loopback only over TLS.
type bearer struct {
	token  string
	secure bool
}

func (b bearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	if b.token == "" {
		return nil, nil
	}
	return map[string]string{"authorization": "Bearer " + b.token}, nil
}

func (b bearer) RequireTransportSecurity() bool { return b.secure }
