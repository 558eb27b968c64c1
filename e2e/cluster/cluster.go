// Package cluster runs a deployctl service in parts, each a process that can be killed and brought back: what a
// production service is, on the Temporal and the S3 server of a home.
package cluster

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health/grpc_health_v1"
)

// token is the first one, for whoever starts the cluster.
const token = "the-first-token-of-this-cluster" //nolint:gosec // it is good for one test

// Home is where an embedded service keeps what its parts need.
type Home struct {
	Dir                                                                 string `json:"home"`
	TemporalAddress, TemporalCredentials, Namespace, S3Endpoint, Bucket string
	PulumiAddress, PulumiTokenFile                                      string
	// PID is the embedded service's own process, while it runs.
	PID  int
	Keys struct {
		S3AccessKey, S3SecretKey string
		Master                   []byte
	} `json:"-"`

	ports reserved
}

// ReadHome reads what `deployctl dev status --json` says, and the home's keys.
func ReadHome(status []byte) (*Home, error) {
	h := &Home{}
	if err := json.Unmarshal(status, h); err != nil {
		return nil, fmt.Errorf("read the service's status: %w", err)
	}
	keys, err := os.ReadFile(filepath.Join(h.Dir, "data", "keys.json"))
	if err != nil {
		return nil, err
	}
	return h, json.Unmarshal(keys, &h.Keys)
}

// Prepare makes a home below dir by starting the embedded service of a binary and stopping it again. The cluster that
// starts there keeps its ports.
func Prepare(ctx context.Context, binary, dir string, env []string) (*Home, error) {
	run := func(args ...string) ([]byte, error) {
		cmd := exec.CommandContext(ctx, binary, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, env, os.Stderr
		out, err := cmd.Output()
		if err != nil {
			err = fmt.Errorf("deployctl %s: %w", args, err)
		}
		return out, err
	}
	ports, err := keepPorts(env)
	if err != nil {
		return nil, err
	}
	if _, err := run("dev", "--background"); err != nil {
		return nil, err
	}
	text, err := run("dev", "status", "--json")
	if err != nil {
		return nil, err
	}
	if _, err := run("dev", "stop"); err != nil {
		return nil, err
	}
	h, err := ReadHome(text)
	if err == nil {
		h.ports = ports
	}
	return h, err
}

// Settings are the environment of serve and worker on the home's servers; S3 may be reached by way of another endpoint.
func (h *Home) Settings(s3Endpoint string) []string {
	return []string{
		"DEPLOYCTL_KEY=" + base64.StdEncoding.EncodeToString(h.Keys.Master), "DEPLOYCTL_TOKEN=" + token,
		"DEPLOYCTL_TEMPORAL_ADDRESS=" + h.TemporalAddress, "DEPLOYCTL_TEMPORAL_NAMESPACE=" + h.Namespace,
		"DEPLOYCTL_TEMPORAL_TLS_CERT=" + h.TemporalCredentials, "DEPLOYCTL_TEMPORAL_TLS_KEY=" + h.TemporalCredentials,
		"DEPLOYCTL_TEMPORAL_CA_CERT=" + h.TemporalCredentials,
		"DEPLOYCTL_S3_ENDPOINT=" + s3Endpoint, "DEPLOYCTL_S3_BUCKET=" + h.Bucket,
		"DEPLOYCTL_S3_ACCESS_KEY_ID=" + h.Keys.S3AccessKey, "DEPLOYCTL_S3_SECRET_ACCESS_KEY=" + h.Keys.S3SecretKey,
	}
}

// Cluster is a service whose parts run.
type Cluster struct {
	*Home
	S3, Temporal, Serve *Part
	Workers             []*Part
	More                []*Part  // servers of the API
	MorePulumi          []string // the URLs of their Pulumi Service API
	// Env is the environment of its clients.
	Env []string
	// Pulumi is the URL of the Pulumi Service API, and Token the token for it.
	Pulumi, Token string

	part func(name, binary string, args ...string) *Part
}

// Start starts every part, and returns when the API serves. S3 may be reached by way of another endpoint than the
// home's own.
func Start(
	ctx context.Context, binary, dir string, env []string, h *Home, s3Endpoint string, workers int,
) (*Cluster, error) {
	listen, pulumi, err := h.ports.two()
	if err != nil {
		return nil, err
	}
	settings := slices.Concat(env, h.Settings(s3Endpoint), []string{"DEPLOYCTL_LISTEN=" + listen,
		"DEPLOYCTL_PULUMI_LISTEN=" + pulumi})
	part := func(name, binary string, args ...string) *Part {
		return &Part{Name: name, path: binary, dir: dir, args: args, env: settings}
	}
	c := &Cluster{
		Home: h, S3: part("s3", binary, "dev", "s3", "--home", h.Dir),
		Temporal: part("temporal", binary, "dev", "temporal", "--home", h.Dir),
		Serve:    part("serve", binary, "serve"), Env: slices.Concat(env,
			[]string{"DEPLOYCTL_SERVER=" + listen, "DEPLOYCTL_TOKEN=" + token}),
		Pulumi: "http://" + pulumi, Token: token, part: part,
	}
	for range workers {
		c.addWorker(binary)
	}
	for _, p := range c.Parts() {
		if err := p.Start(); err != nil {
			c.Stop()
			return nil, err
		}
	}
	if err := healthy(ctx, listen); err != nil {
		c.Stop()
		return nil, fmt.Errorf("the cluster in %s does not serve: %w", dir, err)
	}
	return c, nil
}

func (c *Cluster) addWorker(binary string) *Part {
	w := c.part(fmt.Sprintf("worker-%d", len(c.Workers)+1), binary, "worker")
	c.Workers = append(c.Workers, w)
	return w
}

// AddWorker starts another worker, of a binary that may be another build.
func (c *Cluster) AddWorker(binary string) (*Part, error) {
	w := c.addWorker(binary)
	return w, w.Start()
}

// AddServe starts another server of the API.
func (c *Cluster) AddServe(ctx context.Context, binary string) error {
	listen, pulumi, err := c.ports.two()
	if err != nil {
		return err
	}
	p := c.part(fmt.Sprintf("serve-%d", len(c.More)+2), binary, "serve", "--listen", listen, "--pulumi-listen", pulumi)
	c.More, c.MorePulumi = append(c.More, p), append(c.MorePulumi, "http://"+pulumi)
	if err := p.Start(); err != nil {
		return err
	}
	return healthy(ctx, listen)
}

// Parts gives every part, those first that others stand on.
func (c *Cluster) Parts() []*Part {
	return slices.Concat([]*Part{c.S3, c.Temporal, c.Serve}, c.More, c.Workers)
}

// Stop ends every part.
func (c *Cluster) Stop() {
	for _, p := range slices.Backward(c.Parts()) {
		p.Stop()
	}
	_ = c.ports.Close()
}

// healthy returns when the API serves.
func healthy(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, waittest.Patience)
	defer cancel()
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer func() { _ = connection.Close() }()
	_, err = grpc_health_v1.NewHealthClient(connection).Check(ctx, &grpc_health_v1.HealthCheckRequest{},
		grpc.WaitForReady(true))
	return err
}
