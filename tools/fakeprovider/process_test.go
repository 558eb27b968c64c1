package fakeprovider_test

import (
	"bufio"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// bin holds the provider's and the cloud's binaries, built once for all tests.
var bin string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	var err error
	if bin, err = os.MkdirTemp("", "fakeprovider"); err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(bin) }()
	for dir, pkg := range map[string]string{".": "./cmd/pulumi-resource-fake",
		"../..": "./e2e/fakecloud/cmd/fakecloud"} {
		build := exec.Command("go", "-C", dir, "build", "-o", filepath.Join(bin, filepath.Base(pkg)), pkg)
		if dir != "." {
			build.Env = append(os.Environ(), "GOWORK=auto") // of the workspace, as this module is not
		}
		if out, err := build.CombinedOutput(); err != nil {
			panic(string(out))
		}
	}
	return m.Run()
}

// process is a provider process that is configured for a cloud process of its own.
type process struct {
	rpc.ResourceProviderClient
	t     *testing.T
	cloud string
}

// props are properties in a test's own notation.
type props map[string]any

func start(t *testing.T) *process {
	t.Helper()
	p := &process{t: t, cloud: launch(t, "fakecloud", "-until-stdin-closes")}
	port := launch(t, "pulumi-resource-fake")
	conn, err := grpc.NewClient("127.0.0.1:"+port, grpc.WithTransportCredentials(insecure.NewCredentials()))
	ok(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	p.ResourceProviderClient = rpc.NewResourceProviderClient(conn)
	_, err = p.Handshake(t.Context(), &rpc.ProviderHandshakeRequest{})
	ok(t, err)
	p.configure(props{"endpoint": p.cloud})
	return p
}

// launch starts a binary and returns its first line; it ends with the test.
func launch(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, name), args...)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	_, err = cmd.StdinPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	ok(t, err)
	return strings.TrimSpace(line)
}

func (p *process) configure(config props) resource.PropertyMap {
	p.t.Helper()
	checked, err := p.CheckConfig(p.t.Context(), &rpc.CheckRequest{News: bag(p.t, config)})
	ok(p.t, err)
	_, err = p.Configure(p.t.Context(), &rpc.ConfigureRequest{Args: checked.Inputs})
	ok(p.t, err)
	return unbag(p.t, checked.Inputs)
}

// check gives the checked inputs and the properties that failed.
func (p *process) check(typ string, olds, news props) (resource.PropertyMap, []string) {
	p.t.Helper()
	res, err := p.Check(p.t.Context(), &rpc.CheckRequest{Urn: urn(typ), Olds: bag(p.t, olds), News: bag(p.t, news),
		RandomSeed: []byte("seed")})
	ok(p.t, err)
	var failed []string
	for _, f := range res.Failures {
		failed = append(failed, f.Property)
	}
	return unbag(p.t, res.Inputs), failed
}

func (p *process) autoname(seed []byte, olds props, proposal *rpc.CheckRequest_AutonamingOptions) string {
	p.t.Helper()
	res, err := p.Check(p.t.Context(), &rpc.CheckRequest{
		Urn: urn("Auto"), Olds: bag(p.t, olds), News: bag(p.t, props{}), RandomSeed: seed, Autonaming: proposal})
	ok(p.t, err)
	return unbag(p.t, res.Inputs)["name"].StringValue()
}

func (p *process) create(typ string, in resource.PropertyMap) (*rpc.CreateResponse, error) {
	return p.Create(p.t.Context(), &rpc.CreateRequest{Urn: urn(typ), Properties: bag(p.t, in)})
}

// admin makes a request to the cloud's admin API.
func (p *process) admin(method, path, body string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), method, p.cloud+"/admin/"+path, strings.NewReader(body))
	ok(p.t, err)
	res, err := http.DefaultClient.Do(req)
	ok(p.t, err)
	_, err = io.Copy(io.Discard, res.Body)
	ok(p.t, err)
	ok(p.t, res.Body.Close())
	if res.StatusCode != http.StatusOK {
		p.t.Fatalf("%s %s: %s", method, path, res.Status)
	}
}

var keepAll = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true}

func bag[M props | resource.PropertyMap](t *testing.T, m M) *structpb.Struct {
	t.Helper()
	var bag resource.PropertyMap
	switch m := any(m).(type) {
	case props:
		bag = resource.NewPropertyMapFromMap(m)
	case resource.PropertyMap:
		bag = m
	}
	s, err := plugin.MarshalProperties(bag, keepAll)
	ok(t, err)
	return s
}

func unbag(t *testing.T, s *structpb.Struct) resource.PropertyMap {
	t.Helper()
	m, err := plugin.UnmarshalProperties(s, keepAll)
	ok(t, err)
	return m
}

func urn(typ string) string { return "urn:pulumi:stack::project::fake:index:" + typ + "::res" }

// detail is the detail of type D in a gRPC error, or its zero.
func detail[D any](err error) (none D) {
	for _, d := range status.Convert(err).Details() {
		if found, is := d.(D); is {
			return found
		}
	}
	return none
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
