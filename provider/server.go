package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/structpb"
)

// SettleMapping is the key under which GetMapping answers with the package's Settlements as JSON, so that an engine on
// the other side of a process boundary can ask for them too.
const SettleMapping = "deployctl.settle"

// Server serves a package over the provider protocol. One server is one plugin: it is configured once at a time and
// cancelled as a whole. Relative paths start from the working directory, which engines set to the program's.
func Server(p Package) pulumirpc.ResourceProviderServer { return newServer(p) }

func newServer(p Package) *server {
	s := &server{
		pkg: p, stackID: os.Getenv(StackVariable),
		resources: map[string]Resource{}, components: map[string]Component{}, functions: map[string]Function{},
	}
	s.life, s.cancel = context.WithCancel(context.Background())
	s.calls, s.cancelCalls = context.WithCancel(s.life)
	s.dir, _ = os.Getwd() // an error leaves paths relative
	for _, m := range p.Modules {
		for _, r := range m.Resources {
			s.resources[r.token] = r
		}
		for _, c := range m.Components {
			s.components[c.token] = c
		}
		for _, f := range m.Functions {
			s.functions[f.token] = f
		}
	}
	return s
}

type server struct {
	pulumirpc.UnsafeResourceProviderServer
	pkg        Package
	stackID    string
	dir        string // the program's directory
	resources  map[string]Resource
	components map[string]Component
	functions  map[string]Function

	life   context.Context // ends with the plugin
	cancel context.CancelFunc

	mu          sync.Mutex
	calls       context.Context // of those that began since the last Cancel
	cancelCalls context.CancelFunc
}

type dirKey struct{}

// ProgramDir is the directory of the program, which relative paths start from; empty when nobody said.
func ProgramDir(ctx context.Context) string {
	dir, _ := ctx.Value(dirKey{}).(string)
	return dir
}

// scope is the context of one call: it knows the program's directory, ends with Cancel and, if the engine set a timeout
// (in seconds), then. It keeps the call's own values and end.
func (s *server) scope(ctx context.Context, timeout float64) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, dirKey{}, s.dir)
	ctx, cancel := context.WithCancel(ctx)
	s.mu.Lock()
	stop := context.AfterFunc(s.calls, cancel)
	s.mu.Unlock()
	end := func() { stop(); cancel() }
	if timeout <= 0 {
		return ctx, end
	}
	ctx, cancelTimeout := context.WithTimeout(ctx, time.Duration(timeout*float64(time.Second)))
	return ctx, func() { cancelTimeout(); end() }
}

// unmarshal reads a bag off the wire: unknown values and secrets stay what they are, assets have their hash.
func unmarshal(ctx context.Context, bag *structpb.Struct) (properties, error) {
	if bag == nil {
		return nil, nil
	}
	return plugin.UnmarshalProperties(bag, plugin.MarshalOptions{
		KeepUnknowns: true, KeepSecrets: true, KeepOutputValues: true, SkipNulls: true,
		ComputeAssetHashes: true, WorkingDirectory: ProgramDir(ctx),
	})
}

func marshal(bag properties) (*structpb.Struct, error) {
	return plugin.MarshalProperties(bag, plugin.MarshalOptions{KeepUnknowns: true, KeepSecrets: true, SkipNulls: true})
}

func (s *server) Handshake(
	context.Context, *pulumirpc.ProviderHandshakeRequest,
) (*pulumirpc.ProviderHandshakeResponse, error) {
	return &pulumirpc.ProviderHandshakeResponse{AcceptSecrets: true, SupportsAutonamingConfiguration: true}, nil
}

func (s *server) Attach(context.Context, *pulumirpc.PluginAttach) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

func (s *server) GetPluginInfo(context.Context, *emptypb.Empty) (*pulumirpc.PluginInfo, error) {
	return &pulumirpc.PluginInfo{Version: s.pkg.Version}, nil
}

func (s *server) GetSchema(context.Context, *pulumirpc.GetSchemaRequest) (*pulumirpc.GetSchemaResponse, error) {
	schema, err := s.pkg.Schema()
	if err != nil {
		return nil, err
	}
	return &pulumirpc.GetSchemaResponse{Schema: string(schema)}, nil
}

func (s *server) GetMapping(
	_ context.Context, req *pulumirpc.GetMappingRequest,
) (*pulumirpc.GetMappingResponse, error) {
	if req.GetKey() != SettleMapping {
		return &pulumirpc.GetMappingResponse{}, nil
	}
	data, err := json.Marshal(s.pkg.Settlements())
	return &pulumirpc.GetMappingResponse{Provider: s.pkg.Name, Data: data}, err
}

func (s *server) GetMappings(
	_ context.Context, req *pulumirpc.GetMappingsRequest,
) (*pulumirpc.GetMappingsResponse, error) {
	if req.GetKey() != SettleMapping {
		return &pulumirpc.GetMappingsResponse{}, nil
	}
	return &pulumirpc.GetMappingsResponse{Providers: []string{s.pkg.Name}}, nil
}

// Cancel ends the calls that run. One that begins later is answered: what the others have done may be looked for.
func (s *server) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancelCalls()
	s.calls, s.cancelCalls = context.WithCancel(s.life)
	return &emptypb.Empty{}, nil
}

func (s *server) Parameterize(
	context.Context, *pulumirpc.ParameterizeRequest,
) (*pulumirpc.ParameterizeResponse, error) {
	return nil, status.Errorf(codes.Unimplemented, "package %s takes no parameters", s.pkg.Name)
}

func (s *server) Call(context.Context, *pulumirpc.CallRequest) (*pulumirpc.CallResponse, error) {
	return nil, status.Errorf(codes.Unimplemented, "package %s has no methods", s.pkg.Name)
}

// List lists what bears the mark of this server's stack. It has one page.
func (s *server) List(req *pulumirpc.ListRequest, stream pulumirpc.ResourceProvider_ListServer) error {
	r, ok := s.resources[req.GetToken()]
	if !ok {
		return status.Errorf(codes.NotFound, "package %s %s has no resource type %q", s.pkg.Name, s.pkg.Version,
			req.GetToken())
	}
	lister, ok := r.ops.lister()
	if !ok {
		return status.Errorf(codes.Unimplemented, "resources of the type %s cannot be listed", req.GetToken())
	}
	ctx, end := s.scope(stream.Context(), 0)
	defer end()
	sent := int64(0)
	err := lister.List(ctx, s.identity(""), func(id string) error {
		if sent++; req.GetLimit() > 0 && sent > req.GetLimit() {
			return errListed
		}
		return stream.Send(&pulumirpc.ListResponse{Response: &pulumirpc.ListResponse_Result_{
			Result: &pulumirpc.ListResponse_Result{Id: id}}})
	})
	if err == nil || errors.Is(err, errListed) {
		return nil
	}
	return statusOf(err)
}

// errListed ends a list that has as many resources as were asked for.
var errListed = errors.New("the list is as long as it may be")

// identity returns a URN, which is not checked, with the ID of this server's stack.
func (s *server) identity(text string) Identity {
	return Identity{URN: urn.URN(text), StackID: s.stackID}
}

// resource finds a type by the token in a URN.
func (s *server) resource(who Identity) (Resource, error) {
	if !who.URN.IsValid() {
		return Resource{}, status.Errorf(codes.InvalidArgument, "%q is not a URN", who.URN)
	}
	token := string(who.URN.Type())
	r, ok := s.resources[token]
	if !ok {
		return r, status.Error(codes.NotFound, fmt.Sprintf("package %s %s has no resource type %q", s.pkg.Name,
			s.pkg.Version, token))
	}
	return r, nil
}
