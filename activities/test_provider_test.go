package activities

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/scenario"
	"github.com/deployctl/deployctl/provider"
	"github.com/deployctl/deployctl/providers"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// TestMain lets the test binary run as a plugin if it is started under the name of one.
func TestMain(m *testing.M) {
	switch filepath.Base(os.Args[0]) {
	case "pulumi-resource-toy":
		serve(func(s *grpc.Server) {
			pulumirpc.RegisterResourceProviderServer(s, &toy{world: os.Getenv("TOY_WORLD"),
				cancelled: make(chan struct{})})
		}, append(dictated(os.Getenv("TOY_WORLD")), extendable())...)
	case "pulumi-resource-parts":
		serveConvergent(provider.Package{Name: "parts", Version: "0.1.0",
			Modules: []provider.Module{parts(os.Getenv("TOY_WORLD"))}})
	case "pulumi-resource-deployctl":
		serveConvergent(providers.Package(providers.Defaults{}))
	case "pulumi-language-scenario":
		serve(func(s *grpc.Server) {
			pulumirpc.RegisterLanguageRuntimeServer(s, scenario.NewHost(os.Args[len(os.Args)-1]))
		})
	default:
		os.Exit(m.Run())
	}
}

// stackFile is the file of the world that has the id of the stack which a convergent provider was told at last.
const stackFile = ".stack"

func serveConvergent(p provider.Package) {
	told := []byte(os.Getenv(provider.StackVariable))
	if err := os.WriteFile(filepath.Join(os.Getenv("TOY_WORLD"), stackFile), told, 0o600); err != nil {
		panic(err)
	}
	if err := provider.Main(p, os.Args[1:]); err != nil {
		panic(err)
	}
}

func serve(register func(*grpc.Server), opts ...grpc.ServerOption) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(opts...)
	register(server)
	fmt.Println(listener.Addr().(*net.TCPAddr).Port)
	_ = server.Serve(listener)
}

// toy is a provider whose things are files in a directory, named by their id. Its resources do what their input "do"
// says, once: a mark records that it was done.
type toy struct {
	pulumirpc.UnimplementedResourceProviderServer
	world     string
	cancelled chan struct{}
	region    string
}

var toyMarshal = plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, KeepResources: true}

func (p *toy) Handshake(
	context.Context, *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	p.note(startedFile, "")
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true, AcceptResources: true, AcceptOutputs: true}, nil
}

// Regions with which the configuration comes back from its check with what is the engine's.
const keepsInternal, changesVersion = "internal", "version"

func (p *toy) CheckConfig(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	switch config := req.GetNews(); config.GetFields()["region"].GetStringValue() {
	case keepsInternal:
		config.Fields["__internal"] = structpb.NewStructValue(&structpb.Struct{
			Fields: map[string]*structpb.Value{"own": structpb.NewBoolValue(true)}})
	case changesVersion:
		config.Fields["version"] = structpb.NewStringValue("9.9.9")
	}
	return &pulumirpc.CheckResponse{Inputs: req.GetNews()}, nil
}

func (p *toy) DiffConfig(_ context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	resp := &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}
	if req.GetOldInputs().GetFields()["region"].GetStringValue() != req.GetNews().GetFields()["region"].GetStringValue() {
		resp.Changes, resp.Replaces = pulumirpc.DiffResponse_DIFF_SOME, []string{"region"}
	}
	return resp, nil
}

func (p *toy) Configure(_ context.Context, req *pulumirpc.ConfigureRequest) (*pulumirpc.ConfigureResponse, error) {
	p.region = req.GetArgs().GetFields()["region"].GetStringValue()
	return &pulumirpc.ConfigureResponse{AcceptSecrets: true, SupportsPreview: true}, nil
}

// checksLeft is a file in the world with the number of calls of Check, 0 to 9, before one that fails.
const checksLeft = ".checks-left"

func (p *toy) Check(_ context.Context, req *pulumirpc.CheckRequest) (*pulumirpc.CheckResponse, error) {
	if left, err := os.ReadFile(filepath.Join(p.world, checksLeft)); err == nil {
		if left[0] == '0' {
			_ = os.Remove(filepath.Join(p.world, checksLeft))
			return nil, status.Error(codes.Unavailable, "the cloud is away")
		}
		_ = os.WriteFile(filepath.Join(p.world, checksLeft), []byte{left[0] - 1}, 0o600)
	}
	news, err := plugin.UnmarshalProperties(req.GetNews(), toyMarshal)
	if err != nil {
		return nil, err
	}
	if _, ok := news["name"]; !ok {
		name := fmt.Sprintf("%s-%x", req.GetName(), req.GetRandomSeed()[:4])
		if news["own"].IsString() { // it makes up names, whatever the seed is
			name = "made-up-" + rand.Text()
		}
		if old := req.GetOlds().GetFields()["name"].GetStringValue(); old != "" {
			name = old
		}
		news["name"] = resource.NewProperty(name)
	}
	if _, ok := news["realm"]; !ok && news.HasValue("scope") {
		news["realm"] = resource.NewProperty("main")
	}
	inputs, err := plugin.MarshalProperties(news, toyMarshal)
	resp := &pulumirpc.CheckResponse{Inputs: inputs}
	if size := news["size"]; size.IsNumber() && size.NumberValue() < 0 {
		resp.Failures = []*pulumirpc.CheckFailure{{Property: "size", Reason: "must not be negative"}}
	}
	return resp, err
}

func (p *toy) Diff(_ context.Context, req *pulumirpc.DiffRequest) (*pulumirpc.DiffResponse, error) {
	p.note(comparedFile, req.GetUrn())
	resp := &pulumirpc.DiffResponse{Changes: pulumirpc.DiffResponse_DIFF_NONE}
	if req.GetOlds().GetFields()["do"].GetStringValue() == "differ" {
		resp.Changes = pulumirpc.DiffResponse_DIFF_SOME
	}
	for _, name := range []string{"name", "size", "zone", "do", "secret", "labels"} {
		o, n := req.GetOldInputs().GetFields()[name], req.GetNews().GetFields()[name]
		if o.String() == n.String() {
			continue
		}
		resp.Changes = pulumirpc.DiffResponse_DIFF_SOME
		resp.Diffs = append(resp.Diffs, name)
		if name == "name" || name == "zone" {
			resp.Replaces = append(resp.Replaces, name)
		}
	}
	return resp, nil
}

// indiscreet returns a text with a resource's input "secret", as a careless provider reports it.
func indiscreet(in map[string]*structpb.Value) string {
	s := in["secret"].GetStructValue().GetFields()["value"].GetStringValue()
	if s != "" {
		s = ": " + s
	}
	return s
}

// act does what a changing request asks for instead of its effect, or after it.
func (p *toy) act(do, id string, effect func() error) error {
	do, slip, _ := strings.Cut(do, ": ")
	if slip != "" {
		slip = ": " + slip
	}
	mark := filepath.Join(p.world, ".did-"+do+"-"+id)
	if _, err := os.Stat(mark); err == nil || do == "" {
		return effect()
	}
	_ = os.WriteFile(mark, nil, 0o600)
	switch do {
	case "die-before":
		os.Exit(9)
	case "die-after":
		_ = effect()
		os.Exit(9)
	case "refuse":
		return errors.New("that is not allowed" + slip)
	case "fail-before", "fail-after":
		if do == "fail-after" {
			_ = effect()
		}
		return errors.New(strings.TrimPrefix(slip, ": "))
	case "busy":
		st, _ := status.New(codes.ResourceExhausted, "slow down"+slip).WithDetails(
			&errdetails.RetryInfo{RetryDelay: durationpb.New(7 * time.Second)})
		return st.Err()
	case "half":
		_ = effect()
		st, _ := status.New(codes.Unknown, "half").WithDetails(&pulumirpc.ErrorResourceInitFailed{
			Id: id, Reasons: []string{"not ready" + slip}, Properties: &structpb.Struct{
				Fields: map[string]*structpb.Value{
					"name": structpb.NewStringValue(id),
				}},
		})
		return st.Err()
	case "hang":
		_ = effect()
		_ = os.WriteFile(filepath.Join(p.world, ".hangs"), nil, 0o600)
		p.awaitEnd()
		return nil
	}
	return effect()
}

func (p *toy) Create(_ context.Context, req *pulumirpc.CreateRequest) (*pulumirpc.CreateResponse, error) {
	in := req.GetProperties().GetFields()
	out := &structpb.Struct{Fields: map[string]*structpb.Value{"region": structpb.NewStringValue(p.region)}}
	for k, v := range in {
		out.Fields[k] = v
	}
	if req.GetPreview() {
		return &pulumirpc.CreateResponse{Properties: out}, nil
	}
	name := in["name"].GetStringValue()
	id := p.idOf(in)
	err := p.act(in["do"].GetStringValue()+indiscreet(in), name, func() error {
		if _, err := os.Stat(filepath.Join(p.world, id)); err == nil {
			return fmt.Errorf("%s exists already", id)
		}
		return p.write(id, out)
	})
	if err != nil {
		return nil, err
	}
	if in["do"].GetStringValue() == "unnamed" {
		id = ""
	}
	return &pulumirpc.CreateResponse{Id: id, Properties: out}, nil
}

// idOf returns the id of a thing: its name, or one that is made of its scope and the provider's region, or one that the
// server makes.
func (p *toy) idOf(in map[string]*structpb.Value) string {
	name := in["name"].GetStringValue()
	switch {
	case in["serverMade"].GetStringValue() != "":
		return "made-" + rand.Text()
	case in["scope"].GetStringValue() != "":
		return p.region + "_" + in["realm"].GetStringValue() + "_" + in["scope"].GetStringValue() + "_" + name
	}
	return name
}

func (p *toy) write(id string, props *structpb.Struct) error {
	data, err := json.Marshal(props.AsMap())
	if err != nil {
		return err
	}
	p.record("write " + id)
	return os.WriteFile(filepath.Join(p.world, id), data, 0o600)
}

func (p *toy) record(line string) { p.note(effectsFile, line) }

// Files of the world in which the provider notes its effects, the URNs of what it compared, and its starts.
const effectsFile, comparedFile, startedFile = ".effects", ".compared", ".started"

// note adds a line to a file of the world.
func (p *toy) note(file, line string) {
	f, err := os.OpenFile(filepath.Join(p.world, file), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err == nil {
		_, _ = f.WriteString(line + "\n")
		_ = f.Close()
	}
}

// stopListing is a file in the world that makes the next List end in the middle.
const stopListing = ".stop-listing"

// List returns one thing per page.
func (p *toy) List(req *pulumirpc.ListRequest, stream pulumirpc.ResourceProvider_ListServer) error {
	if os.Remove(filepath.Join(p.world, stopListing)) == nil {
		_ = stream.Send(&pulumirpc.ListResponse{Response: &pulumirpc.ListResponse_Result_{
			Result: &pulumirpc.ListResponse_Result{Id: "a"}}})
		return status.Error(codes.Unavailable, "the cloud is away")
	}
	p.note(askedLists, "after "+req.GetContinuationToken())
	entries, err := os.ReadDir(p.world)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || e.Name() <= req.GetContinuationToken() {
			continue
		}
		if name := req.GetQuery().GetFields()["name"].GetStringValue(); name != "" && p.nameOf(e.Name()) != name {
			continue
		}
		if err := stream.Send(&pulumirpc.ListResponse{Response: &pulumirpc.ListResponse_Result_{
			Result: &pulumirpc.ListResponse_Result{Id: e.Name()},
		}}); err != nil {
			return err
		}
		return stream.Send(&pulumirpc.ListResponse{Response: &pulumirpc.ListResponse_Continuation_{
			Continuation: &pulumirpc.ListResponse_Continuation{ContinuationToken: e.Name()},
		}})
	}
	return nil
}

func (p *toy) Read(_ context.Context, req *pulumirpc.ReadRequest) (*pulumirpc.ReadResponse, error) {
	data, err := os.ReadFile(filepath.Join(p.world, req.GetId()))
	if err != nil {
		return &pulumirpc.ReadResponse{}, nil
	}
	switch text := string(data); {
	case text == "forbidden":
		return nil, errors.New("AccessDenied: status code 403")
	case strings.HasPrefix(text, "away"):
		return nil, errors.New("reading a thing: 503 Service Unavailable")
	}
	var props map[string]any
	if err := json.Unmarshal(data, &props); err != nil {
		return nil, err
	}
	out, err := structpb.NewStruct(props)
	if err != nil {
		return nil, err
	}
	in := &structpb.Struct{Fields: map[string]*structpb.Value{}}
	for k, v := range out.GetFields() {
		if k != "region" {
			in.Fields[k] = v
		}
	}
	id := req.GetId()
	if other := out.GetFields()["knownAs"].GetStringValue(); other != "" { // an import has another id than the resource
		id = other
	}
	return &pulumirpc.ReadResponse{Id: id, Properties: out, Inputs: in}, nil
}

func (p *toy) Update(_ context.Context, req *pulumirpc.UpdateRequest) (*pulumirpc.UpdateResponse, error) {
	out := &structpb.Struct{Fields: map[string]*structpb.Value{"region": structpb.NewStringValue(p.region)}}
	for k, v := range req.GetNews().GetFields() {
		out.Fields[k] = v
	}
	if req.GetPreview() {
		return &pulumirpc.UpdateResponse{Properties: out}, nil
	}
	do := out.Fields["do"].GetStringValue()
	if do != "" {
		do = "update-" + do
	}
	err := p.act(strings.TrimPrefix(do, "update-"), req.GetId()+"-update",
		func() error { return p.write(req.GetId(), out) })
	return &pulumirpc.UpdateResponse{Properties: out}, err
}

func (p *toy) Delete(_ context.Context, req *pulumirpc.DeleteRequest) (*emptypb.Empty, error) {
	p.record("delete " + req.GetId())
	var was struct{ Do string }
	if data, err := os.ReadFile(filepath.Join(p.world, req.GetId())); err == nil {
		_ = json.Unmarshal(data, &was)
	}
	if text, ok := strings.CutPrefix(was.Do, "delete-fails: "); ok {
		_ = os.Remove(filepath.Join(p.world, req.GetId()))
		if text == codes.NotFound.String() {
			return nil, status.Error(codes.NotFound, "there is no such thing")
		}
		return nil, errors.New(text)
	}
	err := os.Remove(filepath.Join(p.world, req.GetId()))
	if errors.Is(err, os.ErrNotExist) {
		err = nil
	}
	return &emptypb.Empty{}, err
}

// nameOf returns the name of the thing with an id.
func (p *toy) nameOf(id string) string {
	var was struct{ Name string }
	data, err := os.ReadFile(filepath.Join(p.world, id))
	if err == nil {
		err = json.Unmarshal(data, &was)
	}
	if err != nil {
		return ""
	}
	return was.Name
}

// askedLists is the file of the world that has the pages of lists which were asked for.
const askedLists = ".lists"

// declaring is the file of the world that has what the provider declares about settling.
const declaring = ".declared"

// askedMappings is the file of the world that has the keys of mappings which were asked for.
const askedMappings = ".mappings"

func (p *toy) GetMapping(
	_ context.Context, req *pulumirpc.GetMappingRequest,
) (*pulumirpc.GetMappingResponse, error) {
	p.note(askedMappings, req.GetKey())
	if text, err := os.ReadFile(filepath.Join(p.world, declaring)); err == nil && req.GetKey() == provider.SettleMapping {
		return &pulumirpc.GetMappingResponse{Provider: "toy", Data: text}, nil
	}
	return &pulumirpc.GetMappingResponse{}, nil
}

// askedFunctions is the file of the world that has the functions which were called for rules.
const askedFunctions = ".functions"

func (p *toy) Invoke(_ context.Context, req *pulumirpc.InvokeRequest) (*pulumirpc.InvokeResponse, error) {
	switch req.GetTok() {
	case "toy:index:getAccount":
		p.note(askedFunctions, req.GetTok())
		out, err := structpb.NewStruct(map[string]any{"account": "north", "secret": "s"})
		return &pulumirpc.InvokeResponse{Return: out}, err
	case "toy:index:getThings":
		p.note(askedFunctions, req.GetTok())
		entries, err := os.ReadDir(p.world)
		found := []any{}
		for _, e := range entries {
			text, _ := os.ReadFile(filepath.Join(p.world, e.Name()))
			asked := req.GetArgs().GetFields()
			if strings.HasPrefix(e.Name(), ".") { // a note of its own
				continue
			}
			if mark := asked["mark"].GetStringValue(); mark != "" && strings.Contains(string(text), mark) ||
				asked["all"].GetStringValue() != "" || mark == "" && p.nameOf(e.Name()) == asked["name"].GetStringValue() {
				found = append(found, map[string]any{"arn": "toy/thing/" + e.Name()})
			}
		}
		out, _ := structpb.NewStruct(map[string]any{"things": found})
		return &pulumirpc.InvokeResponse{Return: out}, err
	case "toy:index:broken":
		return nil, errors.New("access is denied: 403 Forbidden")
	}
	out, err := structpb.NewStruct(map[string]any{"region": p.region,
		"asked": req.GetArgs().GetFields()["ask"].GetStringValue()})
	return &pulumirpc.InvokeResponse{Return: out}, err
}

// endingFile ends calls that hang, as a cancel does.
const endingFile = ".ends"

// awaitEnd waits until the calls are cancelled, or the file is there.
func (p *toy) awaitEnd() {
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-p.cancelled:
			return
		case <-tick.C:
			if _, err := os.Stat(filepath.Join(p.world, endingFile)); err == nil {
				return
			}
		}
	}
}

// Cancel ends calls that hang.
func (p *toy) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	select {
	case <-p.cancelled:
		return &emptypb.Empty{}, nil
	default:
		close(p.cancelled)
	}
	return &emptypb.Empty{}, nil
}

// Construct creates a component of one thing.
func (p *toy) Construct(ctx context.Context, req *pulumirpc.ConstructRequest) (*pulumirpc.ConstructResponse, error) {
	conn, err := grpc.NewClient("passthrough:///"+req.GetMonitorEndpoint(),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	monitor := pulumirpc.NewResourceMonitorClient(conn)
	component, err := monitor.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{
		Type: req.GetType(), Name: req.GetName(), Parent: req.GetParent(), Providers: req.GetProviders(),
	})
	if err != nil {
		return nil, err
	}
	child, err := monitor.RegisterResource(ctx, &pulumirpc.RegisterResourceRequest{
		Type: "toy:index:Thing", Name: req.GetName() + "-child", Custom: true, Parent: component.GetUrn(),
		Object: req.GetInputs(), AcceptSecrets: true, SupportsPartialValues: true,
	})
	if err != nil {
		return nil, err
	}
	state := &structpb.Struct{Fields: map[string]*structpb.Value{"made": child.GetObject().GetFields()["name"]}}
	_, err = monitor.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{Urn: component.GetUrn(),
		Outputs: state})
	return &pulumirpc.ConstructResponse{
		Urn: component.GetUrn(), State: state,
		StateDependencies: map[string]*pulumirpc.ConstructResponse_PropertyDependencies{
			"made": {Urns: []string{child.GetUrn()}}},
	}, err
}

func (p *toy) GetSchema(context.Context, *pulumirpc.GetSchemaRequest) (*pulumirpc.GetSchemaResponse, error) {
	return &pulumirpc.GetSchemaResponse{Schema: `{"name": "toy", "version": "1.0.0", "resources": {"toy:index:Thing": {
		"properties": {"name": {"type": "string"}}, "inputProperties": {"name": {"type": "string"}}
	}}}`}, nil
}

// endHang lets calls that hang answer.
func (h *house) endHang() error { return os.WriteFile(filepath.Join(h.world, endingFile), nil, 0o600) }
