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

// openRoom connects to Temporal and S3; being away for a while at the start is tolerated.
func openRoom(ctx context.Context, in infrastructure) (*room, error) {
	connection, err := in.connect(ctx)
	if err != nil {
		return nil, err
	}
	options := worker.Options{
		Instance: in.instance, Gone: in.gone, Organizations: in.organizations, Dir: in.dir, Sandbox: in.sandbox, Builtin: builtin(in), Interceptors: in.metrics.work(),
		Retention: &in.retention, Collected: in.metrics.collected(),
		Deployment: in.temporal.deployment,
	}
	audit := connection.Store.OpenAudit(in.log)
	return &room{
		vitals:    newVitals(connection.Answers, in.log),
		service:   connection.Service(),
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
	}, nil
}

// silence is after how long a part that does not answer at the start is told of in the log.
const silence = 3 * time.Second

// connect connects to what is known to be whole, on the embedded service, or examines it first.
func (in infrastructure) connect(ctx context.Context) (*worker.Connection, error) {
	if in.embedded {
		return worker.Connect(ctx, in.config())
	}
	waiting := time.AfterFunc(silence, func() {
		in.log.Warn("waiting for Temporal and S3 to answer; --check tells which does not", "temporal", in.temporal.address, "bucket", in.s3.bucket, "s3", in.s3.endpoint)
	})
	defer waiting.Stop()
	connection, found := worker.Examine(ctx, in.config())
	for _, f := range found {
		if f.Err != nil && f.Tolerable {
			in.log.Warn("this should be mended: "+f.What, "error", f.Err)
		}
	}
	return connection, worker.Fatal(found)
}

// builtin are the packages that are served in the worker's own process. On the embedded service, buckets are made in its S3
// server unless the user configures another.
func builtin(in infrastructure) map[string]func(process.Surroundings) pulumirpc.ResourceProviderServer {
	var own s3.Config
	if in.embedded {
		own = s3.Config{Endpoint: in.s3.endpoint, Region: in.s3.region, AccessKey: in.s3.accessKey, SecretKey: in.s3.secretKey}
	}
	return map[string]func(process.Surroundings) pulumirpc.ResourceProviderServer{
		"deployctl": func(s process.Surroundings) pulumirpc.ResourceProviderServer {
			return provider.Server(providers.Package(providers.Defaults{S3: own, Environment: s.Env, Box: s.Box}))
		},
	}
}
