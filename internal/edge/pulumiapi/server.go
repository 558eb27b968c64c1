package pulumiapi

import (
	"context"
	"crypto/tls"
	"errors"
	"iter"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/statestore"
)

// Service is what the edge needs of the service.
type Service interface {
	grpcapi.Service
	deployments.Leases
	deployments.LeaseTokens
	deployments.LeasedState
	deployments.RemoteDeployments
	// Exchange gives a token for an identity token.
	Exchange(ctx context.Context, e deployments.Exchange) (deployments.Exchanged, error)
	// ImportAsIs imports a deployment whose secrets the service may not be able to read.
	ImportAsIs(ctx context.Context, r deployments.ImportRequest) (int, error)
	// CreateAsIs creates a stack with such a deployment, or not at all.
	CreateAsIs(ctx context.Context, r deployments.ImportRequest, tags map[string]string) error
	// ReplaceSchedule gives a schedule other times or another effect; CodeNotFound when there is none.
	ReplaceSchedule(ctx context.Context, s deployments.Schedule) error
	// StackBriefly describes a stack without what waits for the update that has it, and how far that is.
	StackBriefly(ctx context.Context, s deployments.StackName) (deployments.StackInfo, error)
	// Head returns what the store knows of a stack, without asking its workflow.
	Head(ctx context.Context, s deployments.StackName) (statestore.Head, error)
	// NoPlace says why an update of an organization would have to wait for others of it; empty if it would not.
	NoPlace(ctx context.Context, organization string) string
	// UpdatesOf returns the stack's updates, the newest first, as far as they are asked for.
	UpdatesOf(ctx context.Context, s deployments.StackName) iter.Seq2[deployments.UpdateInfo, error]
	// HistoryPage returns a page of the stack's updates, the newest first.
	HistoryPage(ctx context.Context, s deployments.StackName, p deployments.Page) ([]deployments.UpdateInfo, error)
	// LatestPreviews returns the latest previews of a stack, the newest first.
	LatestPreviews(ctx context.Context, s deployments.StackName, limit int) ([]deployments.UpdateInfo, error)
	// Info describes an update, Request returns what was asked for; CodeNotFound when that is not known.
	Info(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error)
	Request(ctx context.Context, u deployments.UpdateName) (deployments.UpdateRequest, error)
	// Push starts the deployment that a message of a git server asks for, or says why there is none. It reads the body
	// when nothing in the header speaks against it, and calls checked once it has checked the signature.
	Push(ctx context.Context, s deployments.StackName, h http.Header, read func() (body []byte, checked func(),
		err error)) (deployments.Deployment, string, error)
}

// Config says what is served.
type Config struct {
	Service Service
	// Authority checks tokens.
	Authority grpcapi.Authority
	// Issuer is the service as an OpenID Connect issuer; nil: it is none.
	Issuer Issuer
	// Auditor keeps the audit log; nil: there is none.
	Auditor grpcapi.Auditor
	// Memory is shared among the organizations, with the edge of grpcapi; nil: this edge has its own.
	Memory *mempool.Pool
	// Calls are those under way, with other edges; nil: this edge counts its own.
	Calls *grpcapi.Calls
	// TLS is nil only on loopback; see grpcapi.Listen.
	TLS *tls.Config
	// Since, if not zero, is when the address began to be this service's: a token of a lease from before was shown to
	// others, and is refused.
	Since time.Time
	// Callback, if not nil, reports why the token of a login with a browser may not be sent to a port of loopback, where
	// the CLI is said to listen.
	Callback func(port int) error
	// Console, if not nil, answers browsers below /console/, where the pages lead that the stock CLI names.
	Console http.Handler
	// Tracing makes a span of each call of a caller who is known; nil: none.
	Tracing *tracing.Tracing
	Log     *slog.Logger
	// Counted, if not nil, is called with each call that has ended: the method and the path of its route, "unknown" for
	// a path without one, the status of the answer, and how long it took.
	Counted func(route string, status int, took time.Duration)
}

// Bounds of a connection. A request that waits for a busy stack may take long, so answers have no time limit.
const (
	headerPatience = 10 * time.Second
	bodyPatience   = 5 * time.Minute
	idlePatience   = 2 * time.Minute
	maxHeader      = 32 << 10
	maxStreams     = 64 // of one connection, at a time
	// stopGrace is how long calls in flight may continue after a stop.
	stopGrace = 5 * time.Second
)

// Serve answers calls on the listener, which it closes, until ctx ends; then it waits a little for the calls in flight.
func Serve(ctx context.Context, listener net.Listener, c Config) error {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	handler, err := Handler(c)
	if err != nil {
		_ = listener.Close()
		return err
	}
	listener = grpcapi.Limited(listener)
	calls, endCalls := context.WithCancel(context.WithoutCancel(ctx))
	defer endCalls()
	server := &http.Server{
		Handler: grpcapi.Reading(handler), TLSConfig: c.TLS, ReadHeaderTimeout: headerPatience, ReadTimeout: bodyPatience,
		IdleTimeout: idlePatience, MaxHeaderBytes: maxHeader,
		HTTP2:       &http.HTTP2Config{MaxConcurrentStreams: maxStreams},
		ErrorLog:    slog.NewLogLogger(c.Log.Handler(), slog.LevelDebug),
		BaseContext: func(net.Listener) context.Context { return calls }, ConnContext: grpcapi.OnConnection,
	}
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), stopGrace)
		defer cancel()
		if server.Shutdown(grace) != nil {
			endCalls()
			_ = server.Close()
		}
	}()
	if c.TLS != nil {
		err = server.ServeTLS(listener, "", "")
	} else {
		err = server.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		<-stopped
		return nil
	}
	return err
}
