package scenario_test

import (
	"bufio"
	"context"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	"google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// host is the language host's binary, built once for all tests.
var host string

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "scenario")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	host = filepath.Join(dir, "pulumi-language-scenario")
	if out, err := exec.Command("go", "build", "-o", host,
		"./cmd/pulumi-language-scenario").CombinedOutput(); err != nil {
		panic(string(out))
	}
	return m.Run()
}

// engine is the monitor and the engine that a script is played against. A resource gets back its properties and an arn,
// in a preview nothing else; types named Bad, Gone and Skipped fare accordingly.
type engine struct {
	rpc.UnimplementedResourceMonitorServer
	rpc.UnimplementedEngineServer

	dir    string
	dryRun bool
	wait   *sync.WaitGroup // answers no registration but the stack's before all have come; may be nil

	mu       sync.Mutex
	requests []*rpc.RegisterResourceRequest
	invokes  []string
	outputs  map[string]resource.PropertyMap // by the resource's name
	logs     []string
	packages []string
	shutdown bool
	error    string // of the program; "bail" when it bailed
}

func preview(e *engine) { e.dryRun = true }

func in(dir string) func(*engine) { return func(e *engine) { e.dir = dir } }

func together(n int) func(*engine) {
	return func(e *engine) { e.wait = &sync.WaitGroup{}; e.wait.Add(n) }
}

// play plays a script in a host process against an engine of its own.
func play(t *testing.T, script string, with ...func(*engine)) *engine {
	t.Helper()
	e := &engine{dir: t.TempDir(), outputs: map[string]resource.PropertyMap{}}
	for _, set := range with {
		set(e)
	}
	ok(t, os.WriteFile(filepath.Join(e.dir, "scenario.yaml"), []byte(script), 0o600))
	address := e.serve(t)
	runtime := launch(t, address)
	info := &rpc.ProgramInfo{RootDirectory: e.dir, ProgramDirectory: e.dir, EntryPoint: "."}
	packages, err := runtime.GetRequiredPackages(t.Context(), &rpc.GetRequiredPackagesRequest{Info: info})
	if err == nil { // a script that cannot be read says so again in Run
		for _, p := range packages.Packages {
			e.packages = append(e.packages, p.Name+" "+p.Version)
		}
	}
	res, err := runtime.Run(t.Context(), &rpc.RunRequest{
		Project: "proj", Stack: "dev", Pwd: e.dir, Info: info, MonitorAddress: address, DryRun: e.dryRun,
		Config:           map[string]string{"proj:flag": "x", "proj:n": "7", "proj:password": "hush"},
		ConfigSecretKeys: []string{"proj:password"},
	})
	ok(t, err)
	e.error = res.Error
	if res.Bail {
		e.error = "bail"
	}
	return e
}

func (e *engine) serve(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	ok(t, err)
	s := grpc.NewServer()
	rpc.RegisterResourceMonitorServer(s, e)
	rpc.RegisterEngineServer(s, e)
	grpc_health_v1.RegisterHealthServer(s, health.NewServer())
	go func() { _ = s.Serve(listener) }()
	t.Cleanup(s.Stop)
	return listener.Addr().String()
}

func launch(t *testing.T, engine string) rpc.LanguageRuntimeClient {
	t.Helper()
	cmd := exec.Command(host, engine)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	ok(t, err)
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	port, err := bufio.NewReader(stdout).ReadString('\n')
	ok(t, err)
	conn, err := grpc.NewClient("127.0.0.1:"+strings.TrimSpace(port),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	ok(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return rpc.NewLanguageRuntimeClient(conn)
}

func (e *engine) SupportsFeature(context.Context, *rpc.SupportsFeatureRequest) (*rpc.SupportsFeatureResponse, error) {
	return &rpc.SupportsFeatureResponse{HasSupport: true}, nil
}

func (e *engine) SetRootResource(context.Context, *rpc.SetRootResourceRequest) (*rpc.SetRootResourceResponse, error) {
	return &rpc.SetRootResourceResponse{}, nil
}

func (e *engine) RegisterResource(
	_ context.Context, req *rpc.RegisterResourceRequest,
) (*rpc.RegisterResourceResponse, error) {
	e.mu.Lock()
	e.requests = append(e.requests, req)
	e.mu.Unlock()
	if e.wait != nil && req.Type != "pulumi:pulumi:Stack" {
		e.wait.Done()
		e.wait.Wait()
	}
	res := &rpc.RegisterResourceResponse{Urn: e.urn(req.Name), Object: &structpb.Struct{
		Fields: maps.Clone(req.Object.GetFields())}}
	switch req.Type {
	case "fake:index:Bad":
		return nil, status.Error(codes.Unknown, "no such type")
	case "fake:index:Gone":
		return nil, status.Error(codes.Unavailable, "the monitor has shut down")
	case "fake:index:Skipped":
		res.Result = 2
	}
	if !e.dryRun {
		if res.Object.Fields == nil {
			res.Object.Fields = map[string]*structpb.Value{}
		}
		res.Object.Fields["arn"] = structpb.NewStringValue("arn-of-" + req.Name)
		if req.Custom {
			res.Id = "id-of-" + req.Name
		}
	}
	return res, nil
}

func (e *engine) RegisterPackage(
	_ context.Context, req *rpc.RegisterPackageRequest,
) (*rpc.RegisterPackageResponse, error) {
	return &rpc.RegisterPackageResponse{Ref: req.Name + "+" + req.Extension.GetName()}, nil
}

func (e *engine) ReadResource(_ context.Context, req *rpc.ReadResourceRequest) (*rpc.ReadResourceResponse, error) {
	return &rpc.ReadResourceResponse{Urn: e.urn(req.Name), Properties: req.Properties}, nil
}

func (e *engine) Invoke(_ context.Context, req *rpc.ResourceInvokeRequest) (*rpc.ResourceInvokeResponse, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.invokes = append(e.invokes, req.Tok)
	return &rpc.ResourceInvokeResponse{Return: req.Args}, nil
}

func (e *engine) Call(_ context.Context, req *rpc.ResourceCallRequest) (*rpc.CallResponse, error) {
	return &rpc.CallResponse{Return: req.Args}, nil
}

func (e *engine) RegisterResourceOutputs(
	_ context.Context, req *rpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	bag, err := plugin.UnmarshalProperties(req.Outputs, keepAll)
	e.outputs[req.Urn[strings.LastIndex(req.Urn, "::")+2:]] = bag
	return &emptypb.Empty{}, err
}

func (e *engine) SignalAndWaitForShutdown(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.shutdown = true
	return &emptypb.Empty{}, nil
}

func (e *engine) Log(_ context.Context, req *rpc.LogRequest) (*emptypb.Empty, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.logs = append(e.logs, req.Severity.String()+" "+req.Message)
	return &emptypb.Empty{}, nil
}

func (e *engine) urn(name string) string { return "urn:pulumi:dev::proj::t::" + name }

// names are those of the registrations, in the order in which they came.
func (e *engine) names() []string {
	var all []string
	for _, r := range e.requests {
		all = append(all, r.Name)
	}
	return all
}

func (e *engine) order() string { return strings.Join(e.names(), " ") }

func (e *engine) sorted() string { return strings.Join(slices.Sorted(slices.Values(e.names())), " ") }

func (e *engine) request(name string) *rpc.RegisterResourceRequest {
	i := slices.Index(e.names(), name)
	if i < 0 {
		return &rpc.RegisterResourceRequest{}
	}
	return e.requests[i]
}

var keepAll = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true, KeepOutputValues: true}

func (e *engine) props(name string) resource.PropertyMap {
	bag, err := plugin.UnmarshalProperties(e.request(name).Object, keepAll)
	if err != nil {
		panic(err)
	}
	return bag
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
