//go:build unix

package attack

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/deployctl/deployctl/e2e/harness"
)

// liar is a hostile provider and policy pack.
type liar struct {
	pulumirpc.UnimplementedResourceProviderServer
	lie string
}

// lies returns what makes the test binary a liar.
func lies(lie string) func(*program) {
	return func(*program) {
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			panic(err)
		}
		server := grpc.NewServer()
		pulumirpc.RegisterResourceProviderServer(server, &liar{lie: lie})
		pulumirpc.RegisterAnalyzerServer(server, liarPack{})
		fmt.Println(listener.Addr().(*net.TCPAddr).Port)
		panic(server.Serve(listener))
	}
}

func (l *liar) Configure(context.Context, *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	if l.lie != "causes" {
		return &pulumirpc.ConfigureResponse{}, nil
	}
	cause := &pulumirpc.ErrorCause{Message: "of two causes"}
	s, err := status.New(codes.Unknown, "refused").WithDetails(cause, cause)
	if err != nil {
		panic(err)
	}
	return nil, s.Err()
}

func (l *liar) Check(context.Context, *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	name, v := strings.Repeat("n", 5<<10), structpb.NewNullValue()
	for range 495 {
		v = structpb.NewStructValue(&structpb.Struct{Fields: map[string]*structpb.Value{name: v}})
	}
	return &pulumirpc.CheckResponse{Inputs: v.GetStructValue(), Failures: []*pulumirpc.CheckFailure{{Reason: "refused"}}},
		nil
}

// liarPack is a policy pack whose schema doubles the work of a validation at each of its levels.
type liarPack struct {
	pulumirpc.UnimplementedAnalyzerServer
}

func (liarPack) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: "1.0.0"}, nil
}

func (liarPack) GetAnalyzerInfo(context.Context, *emptypb.Empty) (*pulumirpc.AnalyzerInfo, error) {
	const levels = 40
	schemas := map[string]any{fmt.Sprint("p", levels): map[string]any{"type": "integer"}}
	for i := range levels {
		next := map[string]any{"$ref": fmt.Sprint("#/properties/p", i+1)}
		schemas[fmt.Sprint("p", i)] = map[string]any{"allOf": []any{next, next}, "default": "x"}
	}
	properties, err := structpb.NewStruct(schemas)
	if err != nil {
		panic(err)
	}
	return &pulumirpc.AnalyzerInfo{Name: "liar", SupportsConfig: true, Policies: []*pulumirpc.PolicyInfo{{
		Name: "p", EnforcementLevel: pulumirpc.EnforcementLevel_ADVISORY,
		ConfigSchema: &pulumirpc.PolicyConfigSchema{Properties: properties},
	}}}, nil
}

// logURNs logs short messages about what no resource can be called.
func (p *program) logURNs() {
	engine := pulumirpc.NewEngineClient(dialVariable("PULUMI_ENGINE"))
	for range p.calls {
		_, err := engine.Log(context.Background(), &pulumirpc.LogRequest{Severity: pulumirpc.LogSeverity_INFO, Message: "x",
			Urn: strings.Repeat("u", 20<<20)})
		if p.note("a message about a text of 20 MiB", err, false); status.Code(err) != codes.InvalidArgument {
			fmt.Printf("WRONG: it is answered with %.300v\n", err)
		}
	}
	fmt.Println("hostile:", p.seen)
}

// refused has a stack updated with what lies, which fails with a text. The service goes on as the same process.
func (f *field) refused(t *testing.T, lie, text string, files harness.Files, args ...string) {
	t.Helper()
	self, err := os.Executable()
	harness.Must(t, err)
	before := f.status(t).PID
	tool := f.project(t, "lie-"+lie, "packages: [{name: liar, version: 0.1.0}]\nsteps: [{register: x, type: "+
		"liar:index:X}]\n")
	script := fmt.Sprintf("%s=%s %s=0 exec '%s'\n", playVariable, lie, callsVariable, self)
	f.plugin(t, "liar", script)
	files["liar"] = "#!/bin/sh\n" + script
	files.Write(t, tool.Dir)
	harness.Must(t, os.Chmod(filepath.Join(tool.Dir, "liar"), 0o700)) //nolint:gosec // it is run
	end := command(t, tool, append([]string{"up", "--yes", "--skip-preview"}, args...)...)
	if end.Code == 0 || !strings.Contains(end.Said(), text) {
		t.Errorf("the update ends with %d: %s", end.Code, end.Said())
	}
	if after := f.status(t).PID; after != before {
		t.Errorf("the service was process %d and is %d", before, after)
	}
}

func twoCauses(t *testing.T, f *field) {
	f.refused(t, "causes", "of two causes", harness.Files{})
}

// deepNames has a provider answer with values whose names, taken as paths, would fill the memory.
func deepNames(t *testing.T, f *field) {
	before := f.peak(t)
	f.refused(t, "names", "refused", harness.Files{})
	if grown := f.peak(t) - before; grown > 512<<10 {
		t.Errorf("the service took %d KiB more for an answer of 2.5 MiB", grown)
	}
}

// peak is the largest memory of the service so far, in KiB; 0 where nothing tells.
func (f *field) peak(t *testing.T) int {
	t.Helper()
	if runtime.GOOS != "linux" {
		return 0
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", f.status(t).PID))
	harness.Must(t, err)
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	size, err := strconv.Atoi(strings.Fields(rest)[0])
	harness.Must(t, err)
	return size
}

func doublingSchema(t *testing.T, f *field) {
	f.refused(t, "schema", "refers to another one", harness.Files{
		"Pulumi.yaml": "name: lie-schema\nruntime: scenario\nplugins:\n" +
			"  analyzers: [{name: policy-liar, path: ./liar}]\n",
		"pack/PulumiPolicy.yaml": "runtime: liar\nversion: 1.0.0\n", "scenario.yaml": "steps: []\n",
	}, "--policy-pack", "pack")
}

func longURNs(t *testing.T, f *field) { f.run(t, "urns", 10) }

// endlessTools has an interpreter of the program's own, which is asked for its packages, print without end: lines, one
// line, and complaints. The service keeps little of it, and ends it.
func endlessTools(t *testing.T, f *field) {
	before, pid := f.peak(t), f.status(t).PID
	for name, says := range map[string]string{
		"lines":      "exec yes " + strings.Repeat("l", 1<<10),
		"one-line":   "exec cat /dev/zero",
		"complaints": "yes " + strings.Repeat("c", 1<<10) + " | head -c 700000000 >&2; exit 1",
	} {
		tool := f.project(t, "endless-"+name, "steps: []\n")
		harness.Files{
			"Pulumi.yaml": "name: endless-" + name + "\nruntime: {name: python, options: {virtualenv: tools}}\n",
			"__main__.py": "", "tools/pyvenv.cfg": "", "tools/bin/python": "#!/bin/sh\n" + says + "\n",
		}.Write(t, tool.Dir)
		harness.Must(t, os.Chmod(filepath.Join(tool.Dir, "tools", "bin", "python"), 0o700)) //nolint:gosec // it is run
		if end := tool.Run(t, "up", "--yes", "--skip-preview"); end.Code == 0 {
			t.Errorf("%s: the update ends well: %s", name, end.Said())
		}
	}
	if grown := f.peak(t) - before; grown > 256<<10 {
		t.Errorf("the service took %d KiB more for what the tools have printed", grown)
	}
	if after := f.status(t).PID; after != pid {
		t.Errorf("the service was process %d and is %d", pid, after)
	}
}
