package devserver

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/gofrs/flock"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/temporal"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
)

// Temporal is a running Temporal server with the namespace Namespace in it.
type Temporal struct {
	Address string // host:port of its gRPC frontend
	// path of the certificate, its key and its authority, all in one PEM file, that a client must show
	Credentials string

	server temporal.Server
	lock   *flock.Flock
	log    *logFile
}

// StartTemporal runs the Temporal server of a home in this process and returns once it answers. It is a part of Start,
// and stands alone for tests that kill the parts one by one.
func StartTemporal(ctx context.Context, homePath string) (*Temporal, error) {
	h, err := openHome(homePath)
	if err != nil {
		return nil, err
	}
	var r reserved
	defer r.release()
	data, err := ensureData(ctx, h, Ports{}, &r)
	if err != nil {
		return nil, err
	}
	return startTemporal(ctx, h, data)
}

func startTemporal(ctx context.Context, h home, data data) (*Temporal, error) {
	lock, err := acquire(ctx, h, lockTemporal, 10*time.Second)
	if err != nil {
		return nil, fmt.Errorf("open Temporal's database in %s: %w", h.temporal(), err)
	}
	t := &Temporal{Address: address(data.ports.Temporal), Credentials: data.identity.path, lock: lock}
	if err := t.start(ctx, h, data); err != nil {
		return nil, errors.Join(err, t.Close(context.WithoutCancel(ctx)))
	}
	return t, nil
}

func (t *Temporal) start(ctx context.Context, h home, data data) error {
	database := databaseConfig(h)
	err := ensureDatabase(h, database)
	if err != nil {
		return err
	}
	if t.log, err = openLog(h, "temporal.log"); err != nil {
		return err
	}
	var inner reserved
	defer inner.release() // the server listens by then
	settings, hosts, err := temporalConfig(database, data.ports.Temporal, &inner)
	if err != nil {
		return err
	}
	server, err := temporal.NewServer(
		temporal.WithConfig(settings),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithDynamicConfigClient(tuning()),
		temporal.WithLogger(temporalLogger(t.log)),
		temporal.WithTLSConfigFactory(data.identity.everywhere()),
		temporal.WithChainedFrontendGrpcInterceptors(refuseResets),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	)
	if err != nil {
		return fmt.Errorf("set up the Temporal server: %w", err)
	}
	t.server = server
	if err := t.server.Start(); err != nil {
		return fmt.Errorf("start the Temporal server (see %s): %w", t.log.path, err)
	}
	if err := t.prepare(ctx, data.identity); err != nil {
		return fmt.Errorf("wait for the Temporal server (see %s): %w", t.log.path, err)
	}
	return nil
}

// Close ends the server. Workers and clients are to be closed before. It gives up waiting when ctx ends; what the
// server was doing then is as safe as after a kill, and the database stays locked until the process ends.
func (t *Temporal) Close(ctx context.Context) error {
	var err error
	if t.server != nil {
		stopped := make(chan error, 1)
		go func() { stopped <- t.server.Stop() }()
		select {
		case err = <-stopped:
		case <-ctx.Done():
			return fmt.Errorf("wait for the Temporal server to end: %w", ctx.Err())
		}
	}
	if t.log != nil {
		err = errors.Join(err, t.log.Close())
	}
	return errors.Join(err, t.lock.Close())
}

// prepare waits until the namespace answers and has the search attributes of this version. Namespaces made by an
// earlier version have fewer.
func (t *Temporal) prepare(ctx context.Context, id *identity) error {
	conn, err := grpc.NewClient(t.Address, grpc.WithTransportCredentials(credentials.NewTLS(id.client())))
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	frontend, operator := workflowservice.NewWorkflowServiceClient(conn), operatorservice.NewOperatorServiceClient(conn)
	err = eventually(ctx, func(ctx context.Context) error {
		_, err := frontend.DescribeNamespace(ctx, &workflowservice.DescribeNamespaceRequest{Namespace: Namespace})
		return err
	})
	if err != nil {
		return err
	}
	return eventually(ctx, func(ctx context.Context) error {
		have, err := operator.ListSearchAttributes(ctx, &operatorservice.ListSearchAttributesRequest{
			Namespace: Namespace})
		if err != nil {
			return err
		}
		missing := map[string]enums.IndexedValueType{}
		for name, kind := range SearchAttributes() {
			if _, ok := have.GetCustomAttributes()[name]; !ok {
				missing[name] = kind
			}
		}
		if len(missing) == 0 {
			return nil
		}
		_, err = operator.AddSearchAttributes(ctx, &operatorservice.AddSearchAttributesRequest{
			Namespace: Namespace, SearchAttributes: missing,
		})
		return errors.Join(err, errors.New("search attributes were just added"))
	})
}

// startPatience is how long a server that was started may take until it answers.
const startPatience = 60 * time.Second

// eventually tries until try succeeds, and returns its last error when ctx ends or a start has taken too long.
func eventually(ctx context.Context, try func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, startPatience)
	defer cancel()
	for {
		attempt, cancel := context.WithTimeout(ctx, 5*time.Second)
		err := try(attempt)
		cancel()
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		case <-time.After(lockRetry):
		}
	}
}

// temporalConfig is the server's static configuration: its four services in this process, found without gossip.
func temporalConfig(
	database *config.SQL, frontend int, r *reserved,
) (*config.Config, map[primitives.ServiceName]static.Hosts, error) {
	services := map[string]config.Service{}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for _, name := range []primitives.ServiceName{
		primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService,
	} {
		port := frontend
		if name != primitives.FrontendService {
			var err error
			// nobody outside knows these: chosen at every start
			if port, err = r.choose(lowestInner, highestInner); err != nil {
				return nil, nil, err
			}
		}
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: "127.0.0.1"}}
		hosts[name] = static.SingleLocalHost(address(port))
	}
	const disabled = "disabled"
	return &config.Config{
		// the server gives each of its services twice as long to start, and 15 seconds at least
		Global:   config.Global{Membership: config.Membership{MaxJoinDuration: startPatience / 2}},
		Services: services,
		Persistence: config.Persistence{
			DefaultStore:     sqlite.PluginName,
			VisibilityStore:  sqlite.PluginName,
			NumHistoryShards: 1,
			DataStores:       map[string]config.DataStore{sqlite.PluginName: {SQL: database}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10,
			MasterClusterName:        clusterName,
			CurrentClusterName:       clusterName,
			ClusterInformation: map[string]cluster.ClusterInformation{
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address(frontend)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: address(frontend)},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: disabled},
			Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
	}, hosts, nil
}

// refuseResets refuses to reset workflows: a reset runs again what had ended, and steps would make a second time what
// they made.
func refuseResets(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	reset := false
	switch r := req.(type) {
	case *workflowservice.ResetWorkflowExecutionRequest:
		reset = true
	case *workflowservice.StartBatchOperationRequest:
		reset = r.GetResetOperation() != nil
	}
	if reset {
		return nil, status.Error(codes.PermissionDenied, "workflows of deployctl cannot be reset: a step would be "+
			"carried out twice; "+
			"cancel the update with `deployctl cancel`, or end it here, and start it again")
	}
	return handle(ctx, req)
}

// temporalLogger writes warnings and worse to file. A fatal error of the server ends the process, and says so in one
// line.
func temporalLogger(file *logFile) log.Logger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig), file, zapcore.WarnLevel)
	return log.NewZapLogger(zap.New(core, zap.WithFatalHook(dieWith{file.path})))
}

type dieWith struct{ log string }

func (d dieWith) OnWrite(entry *zapcore.CheckedEntry, _ []zapcore.Field) {
	fmt.Fprintf(os.Stderr, "the embedded Temporal server failed: %s (see %s)\n", entry.Message, d.log)
	os.Exit(1)
}
