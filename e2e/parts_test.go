package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// TestTheServiceInPartsOfItsOwn runs what a production service is, on the Temporal and the S3 server of a home: serve
// and worker are processes of their own, and clients have tokens.
func TestTheServiceInPartsOfItsOwn(t *testing.T) {
	t.Parallel()
	h := newHome(t)
	h.in(h.dir).must(t, "dev", "--background")
	settings, status := h.parts(t)
	h.in(h.dir).must(t, "dev", "stop")
	listen, serveMetrics, workerMetrics := porttest.Address(t), porttest.Address(t), porttest.Address(t)
	service := h.in(h.dir, settings...)
	service.start(t, "dev", "s3", "--home", status.Home)
	service.start(t, "dev", "temporal", "--home", status.Home)
	served := service.start(t, "serve", "--listen", listen, "--metrics-listen", serveMetrics)
	worked := service.start(t, "worker", "--metrics-listen", workerMetrics)
	served.says(t, "serving")
	healthy(t, listen)
	eventually(t, "the worker has a guard before it has anything to do", func() bool {
		return len(processesNamed(t, worked.cmd.Process.Pid, "deployctl-guard")) == 1
	})

	first := h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=the-first-token")
	token := strings.TrimSpace(first.must(t, "token", "create", "ann", "--role", "deployer"))
	s := newStage(t, h, "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN="+token)
	s.must(t, "config", "set", "fake:endpoint", s.cloud.URL()) // a service does not get the client's environment
	gate := s.gate(t, "named-2", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	if text := scraped(t, workerMetrics); !strings.Contains(text, "deployctl_updates_running 1\n") {
		t.Errorf("no update runs:\n%s", text)
	}
	served.interrupt(t) // the API restarts, nobody notices
	served.mustEnd(t, 0)
	served = service.start(t, "serve", "--listen", listen, "--metrics-listen", serveMetrics)
	must(t, gate.Open(t.Context()))
	up.mustEnd(t, 0)
	s.asIfNothingHappened(t)
	if text := scraped(t, serveMetrics); !strings.Contains(text,
		`deployctl_calls_total{code="OK",edge="grpc",method="/deployctl.v1.Deployments/Watch"}`) {
		t.Errorf("no Watch is counted:\n%s", text)
	}
	if history := s.must(t, "stack", "history", "--json"); !strings.Contains(history, `"initiator": "ann"`) {
		t.Errorf("the history does not say who: %s", history)
	}
	stranger := h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=nobodys")
	stranger.fails(t, 6, []string{"token"}, "token", "ls")
	for _, part := range []*ran{served, worked} {
		part.interrupt(t)
		part.mustEnd(t, 0)
	}
}

// healthy asks as a load balancer does, without a token.
func healthy(t *testing.T, address string) {
	t.Helper()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	must(t, err)
	defer func() { _ = connection.Close() }()
	answer, err := grpc_health_v1.NewHealthClient(connection).Check(waiting(t), &grpc_health_v1.HealthCheckRequest{})
	must(t, err)
	if answer.GetStatus() != grpc_health_v1.HealthCheckResponse_SERVING {
		t.Errorf("the service is %s", answer.GetStatus())
	}
}

func TestTheSecretKeyOfTheBucketIsReadAgainFromItsFile(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := newHome(t)
	h.in(h.dir).must(t, "dev", "--background")
	settings, status := h.parts(t)
	h.in(h.dir).must(t, "dev", "stop")
	keys, keyFile := filepath.Join(h.state(), "data", "keys.json"), filepath.Join(t.TempDir(), "secret")
	text, err := os.ReadFile(keys)
	must(t, err)
	known := map[string]any{}
	must(t, json.Unmarshal(text, &known))
	must(t, os.WriteFile(keyFile, []byte(known["s3SecretKey"].(string)), 0o600))
	listen := porttest.Address(t)
	service := h.in(h.dir, append(settings, "DEPLOYCTL_S3_SECRET_ACCESS_KEY=",
		"DEPLOYCTL_S3_SECRET_ACCESS_KEY_FILE="+keyFile)...)
	s3 := service.start(t, "dev", "s3", "--home", status.Home)
	service.start(t, "dev", "temporal", "--home", status.Home)
	service.start(t, "serve", "--listen", listen).says(t, "serving")
	healthy(t, listen)
	client := h.in(t.TempDir(), "DEPLOYCTL_SERVER="+listen, "DEPLOYCTL_TOKEN=the-first-token")
	client.must(t, "stack", "ls", "--all")
	s3.interrupt(t)
	s3.wait(t)
	known["s3SecretKey"] = "another-secret-key-of-the-same-user"
	text, err = json.Marshal(known)
	must(t, err)
	must(t, os.WriteFile(keys, text, 0o600))
	must(t, os.WriteFile(keyFile, []byte("another-secret-key-of-the-same-user"), 0o600))
	service.start(t, "dev", "s3", "--home", status.Home)
	eventually(t, "the service has read the new key", func() bool {
		return client.run(t, "stack", "ls", "--all").code == 0
	})
}
