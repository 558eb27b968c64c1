package servers

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"

	"github.com/deployctl/deployctl/internal/devserver/parts"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/membership/static"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	"go.temporal.io/server/common/rpc/encryption"
	"go.temporal.io/server/temporal"
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
	settings, hosts := temporalConfig(database, t)
	server, err := temporal.NewServer(
		temporal.WithConfig(settings),
		temporal.ForServices(temporal.DefaultServices),
		temporal.WithStaticHosts(hosts),
		temporal.WithDynamicConfigClient(tuning()),
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
	for name, port := range map[primitives.ServiceName]int{
		primitives.FrontendService: t.Frontend, primitives.HistoryService: t.Inner[0],
		primitives.MatchingService: t.Inner[1], primitives.WorkerService: t.Inner[2],
	} {
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: port, BindOnIP: loopback}}
		hosts[name] = static.SingleLocalHost(address(port))
	}
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
				clusterName: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: address(t.Frontend)},
			},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		PublicClient:        config.PublicClient{HostPort: address(t.Frontend)},
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
