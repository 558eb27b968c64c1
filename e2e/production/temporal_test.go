package production

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/postgrestest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/durationpb"
)

// namespace is the service's.
const namespace = "deployctl"

// cached builds a program that is not the project's own, and gives its path.
func cached(t *testing.T, module, program string) string {
	t.Helper()
	build := exec.Command(filepath.Join(harness.Root(), "tools", "cached"), module, program)
	build.Stderr = os.Stderr
	path, err := build.Output()
	harness.Must(t, err)
	return strings.TrimSpace(string(path))
}

// postgreSQL starts the server of Temporal's databases.
func postgreSQL(t *testing.T) *postgrestest.Server {
	t.Helper()
	server, err := postgrestest.StartWith(postgrestest.Durable...)
	if errors.Is(err, postgrestest.ErrNone) {
		t.Skip(err)
	}
	harness.Must(t, err)
	t.Cleanup(server.Stop)
	return server
}

// schemas makes Temporal's databases, with the tool that Temporal has for it.
func schemas(t *testing.T, postgres string) {
	t.Helper()
	host, port, err := net.SplitHostPort(postgres)
	harness.Must(t, err)
	tool := &harness.Tool{Path: cached(t, "temporal", "go.temporal.io/server/cmd/tools/sql"), Dir: t.TempDir(),
		Env: os.Environ()}
	for database, schema := range map[string]string{
		"temporal": "postgresql/v12/temporal", "temporal_visibility": "postgresql/v12/visibility",
	} {
		for _, do := range [][]string{
			{"create-database"}, {"setup-schema", "-v", "0.0"}, {"update-schema", "--schema-name", schema},
		} {
			tool.Must(t, append([]string{"--plugin", "postgres12", "--endpoint", host, "--port", port, "--user", "postgres",
				"--database", database}, do...)...)
		}
	}
}

// temporalConfig is that of a server of one process on PostgreSQL. It names no dynamic configuration: the defaults
// hold.
const temporalConfig = `log: {stdout: true, level: warn}
persistence:
  defaultStore: default
  visibilityStore: visibility
  numHistoryShards: 64
  datastores:
    default: {sql: {pluginName: postgres12, databaseName: temporal, connectAddr: %[1]q, connectProtocol: tcp,
      user: postgres, maxConns: 20, maxIdleConns: 20, maxConnLifetime: 1h}}
    visibility: {sql: {pluginName: postgres12, databaseName: temporal_visibility, connectAddr: %[1]q,
      connectProtocol: tcp, user: postgres, maxConns: 5, maxIdleConns: 5, maxConnLifetime: 1h}}
global: {membership: {maxJoinDuration: 30s, broadcastAddress: 127.0.0.1}}
services:
  frontend: {rpc: {grpcPort: %[2]s, membershipPort: %[3]s, bindOnLocalHost: true}}
  matching: {rpc: {grpcPort: %[4]s, membershipPort: %[5]s, bindOnLocalHost: true}}
  history: {rpc: {grpcPort: %[6]s, membershipPort: %[7]s, bindOnLocalHost: true}}
  worker: {rpc: {grpcPort: %[8]s, membershipPort: %[9]s, bindOnLocalHost: true}}
clusterMetadata:
  enableGlobalNamespace: false
  failoverVersionIncrement: 10
  masterClusterName: active
  currentClusterName: active
  clusterInformation:
    active: {enabled: true, initialFailoverVersion: 1, rpcName: frontend, rpcAddress: "127.0.0.1:%[2]s"}
dcRedirectionPolicy: {policy: noop}
`

// temporal starts Temporal's server, with the service's namespace, and gives its address.
func temporal(t *testing.T, dir, postgres string) (part *cluster.Part, address string) {
	t.Helper()
	values := []any{postgres}
	for range 4 {
		for _, at := range []string{porttest.Address(t), porttest.Low(t)} { // the second is kept in a smallint
			_, port, err := net.SplitHostPort(at)
			harness.Must(t, err)
			if values = append(values, port); address == "" {
				address = at
			}
		}
	}
	config := filepath.Join(dir, "temporal.yaml")
	harness.Must(t, os.WriteFile(config, fmt.Appendf(nil, temporalConfig, values...), 0o600))
	part = cluster.NewPart("temporal", dir, os.Environ(), cached(t, "temporal", "go.temporal.io/server/cmd/server"),
		"--config-file", config, "--allow-no-auth", "start")
	harness.Must(t, part.Start())
	t.Cleanup(part.Stop)
	namespaces, err := client.NewNamespaceClient(client.Options{HostPort: address, Logger: silent{}})
	harness.Must(t, err)
	defer namespaces.Close()
	waittest.Until(t, "Temporal makes the namespace", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if _, err := namespaces.Describe(ctx, namespace); err == nil {
			return true
		}
		_ = namespaces.Register(ctx, &workflowservice.RegisterNamespaceRequest{ // it answers until it is ready with errors
			Namespace: namespace, WorkflowExecutionRetentionPeriod: durationpb.New(72 * time.Hour)})
		return false
	})
	return part, address
}

// silent logs nothing.
type silent struct{}

func (silent) Debug(string, ...any) {}
func (silent) Info(string, ...any)  {}
func (silent) Warn(string, ...any)  {}
func (silent) Error(string, ...any) {}
