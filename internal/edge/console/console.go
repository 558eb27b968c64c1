package console

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service/identity"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/sys/tracing"
)

// Purpose is what the box of a console seals.
const Purpose = "console"

// Root is the path of the console, which all of its paths begin with.
const Root = "/console/"

// Service is what the console needs of the service.
type Service interface {
	deployments.Service
	// HistoryPage returns a page of the stack's updates, the newest first.
	HistoryPage(ctx context.Context, s deployments.StackName, p deployments.Page) ([]deployments.UpdateInfo, error)
	// Info describes an update; CodeNotFound when it is not known.
	Info(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error)
	// Exchange gives a token for an identity token, and Admitting returns the organizations that would.
	Exchange(ctx context.Context, e deployments.Exchange) (deployments.Exchanged, error)
	Admitting(ctx context.Context, token string) ([]string, error)
}

// Box seals what a browser keeps. Others can neither read nor make it.
type Box interface {
	Seal(plain []byte, context string) []byte
	Open(sealed []byte, context string) ([]byte, error)
}

// Config says what is shown.
type Config struct {
	Service Service
	// Authority checks tokens.
	Authority grpcapi.Authority
	// Auditor keeps the audit log; nil: there is none.
	Auditor grpcapi.Auditor
	// Memory is shared among the organizations, with other edges; nil: this edge has its own.
	Memory *mempool.Pool
	// Calls are those under way, with other edges; nil: this edge counts its own.
	Calls *grpcapi.Calls
	// Box seals sessions, with the same key in every process of the service.
	Box Box
	// Temporal is where Temporal's Web UI shows the namespace, such as https://temporal.internal/namespaces/default;
	// empty: it is not linked.
	Temporal string
	// TokenHint says where a reader finds a token; empty: an admin gives one.
	TokenHint string
	// Provider logs people in whom an organization trusts; nil: they need a token.
	Provider *identity.Client
	// Tracing makes a span of each call of a caller who is known; nil: none.
	Tracing *tracing.Tracing
	Log     *slog.Logger
	// Counted, if not nil, is called with each call that has ended, as that of pulumiapi.Config.
	Counted func(route string, status int, took time.Duration)
}

// Console answers browsers.
type Console struct {
	Config
	gate *grpcapi.Gate
	mux  *http.ServeMux
	runs *runs
	now  func() time.Time
}

// New returns the console. What it follows for its readers ends with ctx.
func New(ctx context.Context, c Config) (*Console, error) {
	if c.Log == nil {
		c.Log = slog.Default()
	}
	k := &Console{Config: c, gate: grpcapi.NewGate(c.Authority, c.Memory, c.Calls), mux: http.NewServeMux(),
		now: time.Now}
	k.runs = newRuns(ctx, c.Service.Watch)
	table := routes()
	if c.Provider != nil {
		table = append(table, providerRoutes()...)
	}
	for _, r := range table {
		if err := r.resolve(); err != nil {
			return nil, err
		}
		k.mux.Handle(r.method+" "+r.path, routed{k, r})
	}
	return k, nil
}

// ServeHTTP implements http.Handler. The mux alone would redirect unclean paths and answer unknown ones with text.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	handler, _ := k.mux.Handler(r)
	if _, ours := handler.(routed); !ours {
		routed{k, &route{}}.ServeHTTP(w, r)
		return
	}
	k.mux.ServeHTTP(w, r) // sets the values of the path
}
