package app

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/internal/service/identity"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/providers"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/worker"
)

// node is a service and a worker on one infrastructure.
type node struct {
	service   grpcapi.Service
	stock     *service.Service // for the edge of the stock CLI
	store     *statestore.Store
	authority grpcapi.Admins
	audit     *access.AuditLog
	// work executes updates until its context ends.
	work  func(context.Context) error
	close func()
	pages *pages           // nil: no console is served
	login *identity.Client // logs people in to it; nil: they need a token
	// readiness reports whether Temporal and S3 answer.
	readiness *readiness
}

// auditPatience is how long the last entries of the audit log may take to be written.
const auditPatience = 10 * time.Second

// openNode connects to the Temporal and the S3 of the embedded service, which are running.
func openNode(ctx context.Context, in infrastructure) (*node, error) {
	config := in.config()
	config.SetUp = true
	connection, err := worker.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	return newNode(ctx, in, connection), nil
}

// newNode returns a node on a connection, which it closes.
func newNode(ctx context.Context, in infrastructure, connection *worker.Connection) *node {
	options := worker.Options{
		Instance: in.instance, Gone: in.gone, Organizations: in.organizations, Dir: in.dir, Sandbox: in.sandbox,
		Included: map[string][]string{providers.Name: in.defaults.Environment()},
		Plugins:  in.plugins, Sources: in.sources, Webhooks: in.webhooks,
		Interceptors: in.metrics.work(), Retention: &in.retention, Collected: in.metrics.collected(),
		Settled:    in.metrics.settled(),
		Taken:      in.heap.Count,
		Hosts:      in.metrics.hosts(),
		Deployment: in.temporal.deployment,
	}
	connection.Store.Access.Issuer.SetAddress(in.issuer)
	audit := connection.Store.Access.OpenAudit(in.log)
	audit.Failed = in.metrics.auditFailed()
	readiness, served := newReadiness(connection.CheckReachable, in.log), connection.Service()
	served.Unavailable, served.Unattended = readiness.away, in.metrics.unattended()
	served.PreviewEnded = in.metrics.previewEnded()
	served.LeaseDuration = in.lease
	verifier := identity.New(&outbound.Guard{What: "keys of issuers are taken",
		Setting: string(settings.TrustPrivateHosts), Private: in.embedded, Hosts: in.issuers})
	served.Identities = verifier
	var login *identity.Client
	if in.pages != nil && in.pages.login != nil {
		login = verifier.Client(*in.pages.login)
	}
	return &node{
		readiness: readiness,
		service:   served,
		stock:     served,
		store:     connection.Store,
		authority: connection.Store.Access,
		audit:     audit,
		pages:     in.pages,
		login:     login,
		work:      func(ctx context.Context) error { return connection.Run(ctx, options) },
		close: func() {
			flushing, cancel := context.WithTimeout(context.WithoutCancel(ctx), auditPatience)
			defer cancel()
			if err := audit.Flush(flushing); err != nil {
				in.log.Error("the audit log was not written to its end", "error", err)
			}
			connection.Close()
		},
	}
}
