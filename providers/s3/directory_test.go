package s3_test

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// monitor is an engine's side of a component: it writes down what is registered.
type monitor struct {
	pulumirpc.UnimplementedResourceMonitorServer
	mu         sync.Mutex
	registered map[string]*pulumirpc.RegisterResourceRequest
	outputs    *pulumirpc.RegisterResourceOutputsRequest
}

func (m *monitor) RegisterResource(
	_ context.Context, req *pulumirpc.RegisterResourceRequest,
) (*pulumirpc.RegisterResourceResponse, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.registered[req.GetName()] = req
	return &pulumirpc.RegisterResourceResponse{Urn: "urn:pulumi:dev::web::" + req.GetType() + "::" + req.GetName(),
		Object: req.GetObject()}, nil
}

func (m *monitor) RegisterResourceOutputs(
	_ context.Context, req *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	m.outputs = req
	return &emptypb.Empty{}, nil
}

func (m *monitor) names() []string {
	var names []string
	for name := range m.registered {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func serveMonitor(t *testing.T) (*monitor, string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m, srv := &monitor{registered: map[string]*pulumirpc.RegisterResourceRequest{}}, grpc.NewServer()
	pulumirpc.RegisterResourceMonitorServer(srv, m)
	go func() { _ = srv.Serve(listener) }()
	t.Cleanup(srv.Stop)
	return m, listener.Addr().String()
}

func site(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"www/index.html": "<p>", "www/css/a.css": "a{}", "www/.git/config": "no", "www/.DS_Store": "no", "secret": "no",
		"www/b": "",
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for link, target := range map[string]string{"inside": "index.html", "outside": "../secret", "dir": "css",
		"broken": "nowhere"} {
		if err := os.Symlink(target, filepath.Join(dir, "www", link)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func construct(t *testing.T, dir string, in props, dryRun bool) (*monitor, *pulumirpc.ConstructResponse, error) {
	t.Helper()
	t.Chdir(dir)
	e := open(t, s3test.Endpoint)
	m, address := serveMonitor(t)
	resp, err := e.Construct(t.Context(), &pulumirpc.ConstructRequest{
		Project: "web", Stack: "dev", Type: "deployctl:s3:Directory", Name: "files",
		Parent:          "urn:pulumi:dev::web::pulumi:pulumi:Stack::web-dev",
		MonitorEndpoint: address, DryRun: dryRun, Inputs: wire(t, in),
		Providers: map[string]string{"deployctl": "urn:pulumi:dev::web::pulumi:providers:deployctl::p::1"},
		InputDependencies: map[string]*pulumirpc.ConstructRequest_PropertyDependencies{
			"bucket": {Urns: []string{"urn:pulumi:dev::web::deployctl:s3:Bucket::b"}}},
	})
	return m, resp, err
}

func TestADirectoryRegistersAnObjectPerFileAndLeavesOutWhatLeadsOutside(t *testing.T) {
	in := props{"source": str("./www"), "bucket": str("bkt"), "prefix": str("v1/"), "index": str("files.html")}
	m, resp, err := construct(t, site(t), in, false)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"files", "files/b", "files/css/a.css", "files/files.html", "files/index.html", "files/inside"}
	if got := m.names(); !slices.Equal(got, want) {
		t.Fatalf("registered %v, want %v", got, want)
	}
	child := m.registered["files/css/a.css"]
	inputs := unwire(t, child.GetObject())
	source := inputs["source"].AssetValue()
	if inputs["key"].StringValue() != "v1/css/a.css" || source.Path != filepath.FromSlash("www/css/a.css") ||
		source.Hash == "" {
		t.Errorf("child %v", inputs)
	}
	if child.GetParent() != resp.GetUrn() || child.GetProvider() == "" || !child.GetCustom() ||
		!slices.Equal(child.GetPropertyDependencies()["bucket"].GetUrns(),
			[]string{"urn:pulumi:dev::web::deployctl:s3:Bucket::b"}) {
		t.Errorf("child's options %v", child)
	}
	out := unwire(t, resp.GetState())
	urls := out["urls"].ObjectValue()
	if out["count"].NumberValue() != 5 || urls["css/a.css"].StringValue() != s3test.Endpoint+"/bkt/v1/css/a.css" {
		t.Errorf("outputs %v", out)
	}
	if m.outputs.GetUrn() != resp.GetUrn() {
		t.Errorf("outputs were registered for %q", m.outputs.GetUrn())
	}
}

func TestADirectoryInABucketThatIsUnknownYetPreviewsItsFiles(t *testing.T) {
	in := props{"source": str("www"), "bucket": resource.MakeComputed(resource.NewProperty(""))}
	m, resp, err := construct(t, site(t), in, true)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.registered) != 5 || !unwire(t, m.registered["files/b"].GetObject())["bucket"].IsComputed() {
		t.Errorf("registered %v", m.names())
	}
	if out := unwire(t, resp.GetState()); !out["urls"].ContainsUnknowns() || out["count"].NumberValue() != 4 {
		t.Errorf("outputs %v", out)
	}
}

func TestADirectoryThatIsNotThereIsNamed(t *testing.T) {
	for _, in := range []props{
		{"source": str("nowhere"), "bucket": str("b")},
		{"source": str("www"), "bucket": str("b"), "index": str("index.html")},
		{"bucket": str("b")},
	} {
		if _, _, err := construct(t, site(t), in, false); err == nil {
			t.Errorf("%v was accepted", in)
		} else {
			t.Log(err)
		}
	}
}
