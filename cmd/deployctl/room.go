package main

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi"
	"github.com/deployctl/deployctl/internal/pluginhost/process"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
	"github.com/deployctl/deployctl/providers/s3"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/worker"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// room is a service and a worker on one infrastructure.
type room struct {
	service   deployments.Service
	store     *statestore.Store
	authority grpcapi.Admins
	audit     *statestore.AuditLog
	// work carries out updates until its context ends.
	work  func(context.Context) error
	close func()
	// vitals tell whether Temporal and S3 answer.
	vitals *vitals
}

// auditPatience is how long the last entries of the audit log may take to be written.
const auditPatience = 10 * time.Second

// openRoom connects to the Temporal and the S3 of the embedded service, which are known to be whole.
func openRoom(ctx context.Context, in infrastructure) (*room, error) {
	config := in.config()
	config.SetUp = true
	connection, err := worker.Connect(ctx, config)
	if err != nil {
		return nil, err
	}
	return newRoom(ctx, in, connection), nil
}

// newRoom makes a room on a connection, which it closes.
func newRoom(ctx context.Context, in infrastructure, connection *worker.Connection) *room {
	options := worker.Options{
		Instance: in.instance, Gone: in.gone, Organizations: in.organizations, Dir: in.dir, Sandbox: in.sandbox,
		Builtin: builtin(in), Interceptors: in.metrics.work(),
		Retention: &in.retention, Collected: in.metrics.collected(),
		Deployment: in.temporal.deployment,
	}
	audit := connection.Store.OpenAudit(in.log)
	vitals, service := newVitals(connection.CheckReachable, in.log), connection.Service()
	service.Unavailable, service.Unattended = vitals.away, in.metrics.unattended()
	return &room{
		vitals:    vitals,
		service:   service,
		store:     connection.Store,
		authority: connection.Store,
		audit:     audit,
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

// builtin are the packages that are served in the worker's own process. On the embedded service, buckets are made in
// its S3 server unless the user configures another.
func builtin(in infrastructure) map[string]func(process.Environment) pulumirpc.ResourceProviderServer {
	var own s3.Config
	if in.embedded {
		own = s3.Config{Endpoint: in.s3.endpoint, Region: in.s3.region, AccessKey: in.s3.accessKey,
			SecretKey: in.s3.secretKey}
	}
	return map[string]func(process.Environment) pulumirpc.ResourceProviderServer{
		"deployctl": func(s process.Environment) pulumirpc.ResourceProviderServer {
			return provider.Server(providers.Package(providers.Defaults{S3: own, Environment: s.Env, Box: s.Box}))
		},
	}
}
