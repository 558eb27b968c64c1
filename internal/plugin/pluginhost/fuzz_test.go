//go:build unix

package pluginhost

import (
	"bytes"
	"context"
	"math"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/blang/semver"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// rawCodec passes bytes on unchanged.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(*v.(*[]byte))}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	*v.(*[]byte) = data.Materialize()
	return nil
}

var _ encoding.CodecV2 = rawCodec{}

// parrot is a plugin that answers one method with a given answer, and every other with an empty message.
type parrot struct{ says atomic.Pointer[answer] }

// answer is a parrot's answer: bytes of a message, sent twice if the method streams, or an error with bytes as a
// detail, and with two causes.
type answer struct {
	method, detail string
	code           codes.Code
	data           []byte
}

// open starts the parrot as a plugin.
func (p *parrot) open(f testing.TB, name string) *endpoint {
	f.Helper()
	e, err := embed(name, func(*grpc.Server) {}, grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(p.serve))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { e.stop(0) })
	return e
}

func (p *parrot) serve(_ any, s grpc.ServerStream) error {
	var asked, empty []byte
	if err := s.RecvMsg(&asked); err != nil {
		return err
	}
	method, _ := grpc.MethodFromServerStream(s)
	says := p.says.Load()
	switch {
	case says == nil || !strings.HasSuffix(method, "/"+says.method):
		return s.SendMsg(&empty)
	case says.code != codes.OK:
		detail := &anypb.Any{TypeUrl: "type.googleapis.com/" + says.detail, Value: says.data}
		cause, err := anypb.New(&pulumirpc.ErrorCause{Message: "a cause"})
		if err != nil {
			return err
		}
		return status.ErrorProto(&spb.Status{Code: int32(says.code), Message: "no", //nolint:gosec // few
			Details: []*anypb.Any{detail, cause, cause}})
	}
	if method == pulumirpc.LanguageRuntime_InstallDependencies_FullMethodName {
		if err := s.SendMsg(&says.data); err != nil {
			return err
		}
	}
	return s.SendMsg(&says.data)
}

// hostileStructs are values that no plugin should send.
func hostileStructs() (all []*structpb.Struct) {
	deep := structpb.NewStringValue("deep")
	for range 3_000 {
		deep = structpb.NewListValue(&structpb.ListValue{Values: []*structpb.Value{deep}})
	}
	of := func(v *structpb.Value) {
		all = append(all, &structpb.Struct{Fields: map[string]*structpb.Value{"v": v}})
	}
	for _, v := range []*structpb.Value{
		deep, {}, structpb.NewNumberValue(math.NaN()), structpb.NewNumberValue(math.Inf(-1)),
		structpb.NewStringValue(sig.UnknownStringValue),
		structpb.NewStringValue("\x00"), structpb.NewStringValue(strings.Repeat("long", 2_000)),
		{Kind: &structpb.Value_StructValue{}},
	} {
		of(v)
	}
	for _, signature := range []string{
		sig.Secret, sig.OutputValue, sig.ResourceReference, sig.AssetSig, sig.ArchiveSig, sig.ByteString, "unheard-of",
	} {
		for _, wrong := range []*structpb.Value{
			structpb.NewBoolValue(true), structpb.NewStringValue("x"), structpb.NewStringValue(sig.UnknownStringValue),
		} {
			v := map[string]*structpb.Value{sig.Key: structpb.NewStringValue(signature)}
			for _, field := range []string{
				"value", "urn", "id", "hash", "text", "path", "uri", "assets", "secret", "dependencies",
				"packageVersion",
			} {
				v[field] = wrong
			}
			of(structpb.NewStructValue(&structpb.Struct{Fields: v}))
		}
	}
	return all
}

const (
	fuzzedURN         = resource.URN("urn:pulumi:dev::test::tiny:index:Thing::x")
	fuzzedProviderURN = resource.URN("urn:pulumi:dev::test::pulumi:providers:tiny::x")
)

var none = resource.PropertyMap{}

// providerMethods call a provider as an update does, and return the values of its answer.
var providerMethods = []struct {
	name string
	call func(ctx context.Context, h *Host, p *Provider) ([]resource.PropertyMap, error)
}{
	{"Handshake", func(_ context.Context, h *Host, p *Provider) ([]resource.PropertyMap, error) {
		_, err := h.openProvider(p.end, h.program.dir, nil)
		return nil, err
	}},
	{"Parameterize", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		_, err := p.parameterize(ctx, Parameter{Name: "p", Version: "1.0.0"})
		return nil, err
	}},
	{"GetSchema", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		_, err := p.GetSchema(ctx, plugin.GetSchemaRequest{SubpackageName: "p",
			SubpackageVersion: &semver.Version{Major: 1}})
		return nil, err
	}},
	{"Configure", func(ctx context.Context, h *Host, p *Provider) ([]resource.PropertyMap, error) {
		another, err := h.openProvider(p.end, h.program.dir, nil)
		if err == nil {
			_, err = another.Configure(ctx, configuration("tiny", nil))
		}
		return nil, err
	}},
	{"CheckConfig", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.CheckConfig(ctx, plugin.CheckConfigRequest{URN: fuzzedProviderURN, News: none,
			AllowUnknowns: true})
		return []resource.PropertyMap{resp.Properties}, err
	}},
	{"DiffConfig", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		_, err := p.DiffConfig(ctx, plugin.DiffConfigRequest{
			URN: fuzzedProviderURN, OldInputs: none, OldOutputs: none, NewInputs: none, AllowUnknowns: true,
		})
		return nil, err
	}},
	{"Check", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Check(ctx, plugin.CheckRequest{URN: fuzzedURN, News: none, AllowUnknowns: true})
		return []resource.PropertyMap{resp.Properties}, err
	}},
	{"Diff", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		_, err := p.Diff(ctx, plugin.DiffRequest{
			URN: fuzzedURN, ID: "x", OldInputs: none, OldOutputs: none, NewInputs: none, AllowUnknowns: true,
		})
		return nil, err
	}},
	{"Create", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Create(ctx, plugin.CreateRequest{URN: fuzzedURN, Properties: none})
		_ = p.Classify(err)
		return []resource.PropertyMap{resp.Properties}, err
	}},
	{"Update", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Update(ctx, plugin.UpdateRequest{URN: fuzzedURN, ID: "x", OldInputs: none, OldOutputs: none,
			NewInputs: none})
		_ = p.Classify(err)
		return []resource.PropertyMap{resp.Properties}, err
	}},
	{"Read", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Read(ctx, plugin.ReadRequest{URN: fuzzedURN, ID: "x"})
		found, lookup := p.Lookup(ctx, plugin.ReadRequest{URN: fuzzedURN})
		if err == nil {
			err = lookup
		}
		return []resource.PropertyMap{resp.Inputs, resp.Outputs, found.Outputs}, err
	}},
	{"Delete", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		_, err := p.Delete(ctx, plugin.DeleteRequest{URN: fuzzedURN, ID: "x", Inputs: none, Outputs: none})
		_ = p.Classify(err)
		return nil, err
	}},
	{"Construct", func(ctx context.Context, h *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Construct(ctx, plugin.ConstructRequest{
			Info: plugin.ConstructInfo{Project: "test", Stack: "dev", MonitorAddress: h.address},
			Type: "tiny:index:Thing", Name: "x", Inputs: none,
		})
		return []resource.PropertyMap{resp.Outputs}, err
	}},
	{"Invoke", func(ctx context.Context, _ *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Invoke(ctx, plugin.InvokeRequest{Tok: tokens.ModuleMember("tiny:index:ask")})
		return []resource.PropertyMap{resp.Properties}, err
	}},
	{"Call", func(ctx context.Context, h *Host, p *Provider) ([]resource.PropertyMap, error) {
		resp, err := p.Call(ctx, plugin.CallRequest{Tok: "tiny:index:Thing/ask",
			Info: plugin.CallInfo{MonitorAddress: h.address}})
		return []resource.PropertyMap{resp.Return}, err
	}},
}

// addAnswers adds hostile answers of every method that returns values.
func addAnswers(f *testing.F) {
	f.Helper()
	add := func(method string, code codes.Code, m proto.Message) {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		for i, known := range providerMethods {
			if known.name == method {
				f.Add(uint8(i), uint8(code), data) //nolint:gosec // few
			}
		}
	}
	for i, s := range hostileStructs() {
		add("Check", codes.OK, &pulumirpc.CheckResponse{Inputs: s,
			Failures: []*pulumirpc.CheckFailure{{Property: "v", Reason: "\x1b[2J"}}})
		add("Create", codes.OK, &pulumirpc.CreateResponse{Id: "x", Properties: s})
		add([]string{"Create", "Update", "Read"}[i%3], codes.Unknown, &pulumirpc.ErrorResourceInitFailed{
			Id: "x", Reasons: []string{""}, Properties: s, Inputs: s,
		})
	}
	add("Diff", codes.OK, &pulumirpc.DiffResponse{
		Changes: 99, Replaces: []string{"", "a["}, Diffs: []string{"[0]"}, HasDetailedDiff: true,
		DetailedDiff: map[string]*pulumirpc.PropertyDiff{"": {Kind: 77}, "a[": {}, "__proto__": {InputDiff: true}},
	})
	add("Construct", codes.OK, &pulumirpc.ConstructResponse{
		Urn: "x", StateDependencies: map[string]*pulumirpc.ConstructResponse_PropertyDependencies{
			"v": {Urns: []string{""}}},
	})
	add("GetSchema", codes.OK, &pulumirpc.GetSchemaResponse{Schema: "{"})
	for i := range providerMethods {
		f.Add(uint8(i), uint8(codes.ResourceExhausted), bytes.Repeat([]byte{0xff}, 20)) //nolint:gosec // few
		f.Add(uint8(i), uint8(codes.OK), []byte{})                                      //nolint:gosec // few
	}
}

func FuzzProviderAnswers(f *testing.F) {
	addAnswers(f)
	h, err := New(Options{RootDir: f.TempDir(), PulumiHome: f.TempDir()})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close(context.Background()) })
	bird := &parrot{}
	p, err := h.openProvider(bird.open(f, "provider tiny"), h.program.dir, nil)
	if err != nil {
		f.Fatal(err)
	}
	if _, err := p.Configure(f.Context(), configuration("tiny", nil)); err != nil {
		f.Fatal(err)
	}
	values := &bags.Codec{Key: []byte("key")}
	f.Fuzz(func(t *testing.T, method, code uint8, data []byte) {
		m := providerMethods[int(method)%len(providerMethods)]
		says := &answer{method: m.name, data: data, code: codes.Code(code % 17),
			detail: "pulumirpc.ErrorResourceInitFailed"}
		bird.says.Store(says)
		defer bird.says.Store(nil)
		ctx := waittest.Context(t)
		answered, err := m.call(ctx, h, p)
		wellSaid(ctx, t, err)
		if err != nil {
			return
		}
		for _, properties := range answered {
			bag, err := values.Encode(ctx, properties)
			if err == nil {
				_, err = values.Decode(ctx, bag)
			}
			wellSaid(ctx, t, err)
		}
	})
}

// wellSaid fails the test if a call was not answered, or made the service fail internally.
func wellSaid(ctx context.Context, t *testing.T, err error) {
	t.Helper()
	switch {
	case ctx.Err() != nil:
		t.Fatalf("not answered: %v", err)
	case err != nil && strings.Contains(err.Error(), "deployctl failed internally"):
		t.Fatal(err)
	}
}

// FuzzLanguageHostAnswers tests arbitrary answers of a language host, from the handshake to the end of its program.
func FuzzLanguageHostAnswers(f *testing.F) {
	methods := []string{"Handshake", "GetRequiredPackages", "GetRequiredPlugins", "InstallDependencies", "Run",
		"GetPluginInfo"}
	for i, m := range []proto.Message{
		&pulumirpc.LanguageHandshakeResponse{},
		&pulumirpc.GetRequiredPackagesResponse{Packages: []*pulumirpc.PackageDependency{
			{}, {Kind: "resource", Name: "../x", Version: "vvv", Parameterization: &pulumirpc.PackageParameterization{
				Version: "x"}},
		}},
		&pulumirpc.GetRequiredPluginsResponse{Plugins: []*pulumirpc.PluginDependency{{},
			{Kind: "resource", Name: "\x00", Version: "v-1"}}},
		&pulumirpc.InstallDependenciesResponse{Stdout: []byte("\x1b[2J\r\n\xff"),
			Stderr: bytes.Repeat([]byte("x"), 100_000)},
		&pulumirpc.RunResponse{Error: "exit code: -1", Bail: true},
		&pulumirpc.PluginInfo{Version: "x"},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		for code := range uint8(2) {
			f.Add(uint8(i), code*12, data) //nolint:gosec // few
			f.Add(uint8(i), code, data)    //nolint:gosec // few
		}
	}
	said := func(m Message) { _ = string(m.Severity) + m.Text }
	h, err := New(Options{RootDir: f.TempDir(), PulumiHome: f.TempDir(), Log: said})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close(context.Background()) })
	bird := &parrot{}
	end := bird.open(f, "language host strange")
	l := &Language{host: h, runtime: "strange", end: end, client: pulumirpc.NewLanguageRuntimeClient(end.conn),
		info: &pulumirpc.ProgramInfo{}}
	f.Fuzz(func(t *testing.T, method, code uint8, data []byte) {
		// Not Unavailable: that code means the end of the host, for which the caller waits.
		bird.says.Store(&answer{
			method: methods[int(method)%len(methods)], data: data, code: codes.Code(code % 14),
			detail: "pulumirpc.ErrorCause",
		})
		defer bird.says.Store(nil)
		ctx := waittest.Context(t)
		wellSaid(ctx, t, l.handshake(ctx))
		packages, err := l.RequiredPackages(ctx)
		wellSaid(ctx, t, err)
		for _, p := range packages {
			_, err := h.finder.find(p.request())
			wellSaid(ctx, t, err)
		}
		wellSaid(ctx, t, l.InstallDependencies(ctx, ""))
		wellSaid(ctx, t, l.run(ctx, RunRequest{}))
	})
}

// FuzzEngine sends arbitrary requests to the services that programs and plugins call, other than the monitor.
func FuzzEngine(f *testing.F) {
	methods := []string{
		pulumirpc.Engine_Log_FullMethodName, pulumirpc.Engine_GetRootResource_FullMethodName,
		pulumirpc.Engine_SetRootResource_FullMethodName,
		pulumirpc.Engine_StartDebugging_FullMethodName, pulumirpc.Engine_RequirePulumiVersion_FullMethodName,
		codegenrpc.Loader_GetSchema_FullMethodName, codegenrpc.Mapper_GetMapping_FullMethodName,
		"/pulumirpc.Engine/Nothing",
	}
	for i, m := range []proto.Message{
		&pulumirpc.LogRequest{Severity: 3, Message: "\x1b[2J", Urn: "urn:", StreamId: -1},
		&pulumirpc.GetRootResourceRequest{},
		&pulumirpc.SetRootResourceRequest{Urn: strings.Repeat("u", 10_000)},
		&pulumirpc.StartDebuggingRequest{Message: "\x00"},
		&pulumirpc.RequirePulumiVersionRequest{PulumiVersionRange: ">=1 <x || ~^"},
		&codegenrpc.GetSchemaRequest{
			Package: "../../x", Version: "1.0.0\x00", DownloadUrl: "::",
			Parameterization: &codegenrpc.Parameterization{Version: "x"},
		},
		&codegenrpc.GetMappingRequest{Provider: "x"}, &pulumirpc.LogRequest{Severity: 99},
	} {
		data, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(uint8(i), data)                                //nolint:gosec // few
		f.Add(uint8(i), bytes.Repeat([]byte{0x0a, 0xff}, 9)) //nolint:gosec // few
	}
	h, err := New(Options{RootDir: f.TempDir(), PulumiHome: f.TempDir(), Env: []string{"PATH=" + f.TempDir()}})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { h.Close(context.Background()) })
	conn, err := grpc.NewClient(h.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = conn.Close() })
	f.Fuzz(func(t *testing.T, method uint8, data []byte) {
		ctx := waittest.Context(t)
		var answered []byte
		err := conn.Invoke(ctx, methods[int(method)%len(methods)], &data, &answered, grpc.ForceCodecV2(rawCodec{}))
		wellSaid(ctx, t, err)
		if status.Code(err) == codes.Unavailable {
			t.Fatalf("the engine is gone: %v", err)
		}
	})
}
