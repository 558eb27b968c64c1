package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"os"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"go.temporal.io/api/workflowservice/v1"
	sdkworker "go.temporal.io/sdk/worker"
	"go.temporal.io/server/chasm"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/headers"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/serialization"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/pprof"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/resource"
	"go.temporal.io/server/common/rpc/encryption"
	"go.temporal.io/server/service/frontend"
	"go.temporal.io/server/service/history"
	"go.temporal.io/server/service/history/replication"
	"go.temporal.io/server/service/matching"
	"go.temporal.io/server/service/worker"
	"go.temporal.io/server/temporal"
	"go.uber.org/fx"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// StartTemporal implements parts.Servers.
func (All) StartTemporal(t parts.Temporal) (stop func() error, err error) {
	database := databaseConfig(t.Database)
	if err := ensureNamespace(database, t); err != nil {
		return nil, err
	}
	sdkworker.SetBinaryChecksum(headers.ServerVersion) // of its own workers; else the SDK hashes the binary each time
	settings, hosts := temporalConfig(database, t)
	server, err := temporal.NewServerFx(
		listeningAt(t),
		temporal.WithConfig(settings),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithDynamicConfigClient(Tuning()),
		temporal.WithLogger(temporalLogger(t)),
		temporal.WithTLSConfigFactory(everywhere(t.Server, t.Client)),
		temporal.WithChainedFrontendGrpcInterceptors(refuseResets),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()),
		temporal.WithClaimMapper(func(*config.Config) authorization.ClaimMapper {
			return authorization.NewNoopClaimMapper()
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("set up the Temporal server: %w", err)
	}
	if err := server.Start(); err != nil {
		err = fmt.Errorf("start the Temporal server (see %s): %w", t.LogPath, err)
		return nil, errors.Join(err, server.Stop())
	}
	return server.Stop, nil
}

// listeningAt is temporal.TopLevelModule, but for the listeners of its services: those are t's.
func listeningAt(t parts.Temporal) fx.Option {
	type params = temporal.ServiceProviderParamsCommon
	type provider = func(params) (temporal.ServicesGroupOut, error)
	service := func(name primitives.ServiceName, listener net.Listener, module func(params) fx.Option) provider {
		return func(p params) (temporal.ServicesGroupOut, error) {
			app := fx.New(p.GetCommonServiceOptions(name), module(p),
				fx.Decorate(func() net.Listener { return listener }))
			return temporal.NewService(app, name, p.Logger), app.Err()
		}
	}
	is := func(modules ...fx.Option) func(params) fx.Option {
		return func(params) fx.Option { return fx.Options(modules...) }
	}
	return fx.Options(
		fx.Provide(
			temporal.NewServerFxImpl, temporal.ServerOptionsProvider, resource.ArchivalMetadataProvider,
			temporal.TaskCategoryRegistryProvider, temporal.ApplyClusterMetadataConfigProvider,
			service(primitives.FrontendService, t.Frontend, func(p params) fx.Option {
				return fx.Options(fx.Supply(p.CustomFrontendInterceptors), frontend.Module)
			}),
			service(primitives.HistoryService, t.Inner[0], is(history.QueueModule, history.Module, replication.Module)),
			service(primitives.MatchingService, t.Inner[1], is(matching.Module)),
			service(primitives.WorkerService, t.Inner[2], is(worker.Module)),
		),
		dynamicconfig.Module, pprof.Module, temporal.TraceExportModule, chasm.Module, serialization.Module,
		temporal.FxLogAdapter, fx.Invoke(temporal.ServerLifetimeHooks),
	)
}

// everywhere has every port of the Temporal server ask for the identity, those between its own parts included.
func everywhere(server, client *tls.Config) encryption.TLSConfigProvider {
	return &encryption.FixedTLSConfigProvider{
		InternodeServerConfig: server, InternodeClientConfig: client,
		FrontendServerConfig: server, FrontendClientConfig: client,
	}
}

// temporalConfig is the server's static configuration: its four services in this process, found without gossip.
func temporalConfig(
	database *config.SQL, t parts.Temporal,
) (*config.Config, map[primitives.ServiceName]static.Hosts) {
	services := map[string]config.Service{}
	hosts := map[primitives.ServiceName]static.Hosts{}
	for name, listener := range map[primitives.ServiceName]net.Listener{
		primitives.FrontendService: t.Frontend, primitives.HistoryService: t.Inner[0],
		primitives.MatchingService: t.Inner[1], primitives.WorkerService: t.Inner[2],
	} {
		at := listener.Addr().(*net.TCPAddr)
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: at.Port, BindOnIP: at.IP.String()}}
		hosts[name] = static.SingleLocalHost(at.String())
	}
	entrance := t.Frontend.Addr().String()
	const disabled = "disabled"
	return &config.Config{
		// the server gives each of its services twice as long to start, and 15 seconds at least
		Global:   config.Global{Membership: config.Membership{MaxJoinDuration: t.StartLimit / 2}},
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
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: entrance},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: entrance},
		Archival: config.Archival{
			History:    config.HistoryArchival{State: disabled},
			Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History:    config.HistoryArchivalNamespaceDefaults{State: disabled},
			Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
	}, hosts
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

// temporalLogger writes warnings and worse to the log. A fatal error of the server ends the process, and says so in one
// line.
func temporalLogger(t parts.Temporal) log.Logger {
	core := zapcore.NewCore(zapcore.NewJSONEncoder(log.DefaultZapEncoderConfig), zapcore.AddSync(t.Log),
		zapcore.WarnLevel)
	return log.NewZapLogger(zap.New(core, zap.WithFatalHook(dieWith{t.LogPath})))
}

type dieWith struct{ log string }

func (d dieWith) OnWrite(entry *zapcore.CheckedEntry, _ []zapcore.Field) {
	fmt.Fprintf(os.Stderr, "the embedded Temporal server failed: %s (see %s)\n", entry.Message, d.log)
	os.Exit(1)
}
