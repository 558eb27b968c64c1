package pluginhost

import (
	"context"
	"sync"

	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	codegenrpc "github.com/pulumi/pulumi/sdk/v3/proto/go/codegen"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// engineServer is the Engine service that programs and plugins call.
type engineServer struct {
	pulumirpc.UnimplementedEngineServer
	log func(Message)

	mu       sync.Mutex
	stackURN string
}

var severities = map[pulumirpc.LogSeverity]diag.Severity{
	pulumirpc.LogSeverity_DEBUG:   diag.Debug,
	pulumirpc.LogSeverity_INFO:    diag.Info,
	pulumirpc.LogSeverity_WARNING: diag.Warning,
	pulumirpc.LogSeverity_ERROR:   diag.Error,
}

func (s *engineServer) Log(_ context.Context, req *pulumirpc.LogRequest) (*emptypb.Empty, error) {
	severity, ok := severities[req.GetSeverity()]
	if !ok {
		return nil, status.Errorf(codes.InvalidArgument, "unknown severity %v", req.GetSeverity())
	}
	about, err := token.ParseURN(req.GetUrn())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s.log(Message{
		Severity: severity, URN: about, Text: req.GetMessage(),
		Stream: req.GetStreamId(), Ephemeral: req.GetEphemeral(),
	})
	return &emptypb.Empty{}, nil
}

func (s *engineServer) root() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stackURN
}

func (s *engineServer) GetRootResource(
	context.Context, *pulumirpc.GetRootResourceRequest,
) (*pulumirpc.GetRootResourceResponse, error) {
	return &pulumirpc.GetRootResourceResponse{Urn: s.root()}, nil
}

func (s *engineServer) SetRootResource(
	_ context.Context, req *pulumirpc.SetRootResourceRequest,
) (*pulumirpc.SetRootResourceResponse, error) {
	root, err := token.ParseURN(req.GetUrn())
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stackURN = string(root)
	return &pulumirpc.SetRootResourceResponse{}, nil
}

func (s *engineServer) StartDebugging(
	_ context.Context, req *pulumirpc.StartDebuggingRequest,
) (*emptypb.Empty, error) {
	s.log(Message{Severity: diag.Info, Text: req.GetMessage()})
	return &emptypb.Empty{}, nil
}

func (s *engineServer) RequirePulumiVersion(
	_ context.Context, req *pulumirpc.RequirePulumiVersionRequest,
) (*pulumirpc.RequirePulumiVersionResponse, error) {
	if err := requireVersion(req.GetPulumiVersionRange()); err != nil {
		return nil, status.Error(codes.FailedPrecondition, err.Error())
	}
	return &pulumirpc.RequirePulumiVersionResponse{}, nil
}

// requireVersion returns an error if the version of Pulumi that deployctl stands for is not in a range.
func requireVersion(versions string) error {
	return plugin.ValidatePulumiVersionRange(versions, claimedVersion)
}

// mapperServer has no mappings: only the conversion of programs from other tools needs them.
type mapperServer struct {
	codegenrpc.UnimplementedMapperServer
}

func (mapperServer) GetMapping(
	context.Context, *codegenrpc.GetMappingRequest,
) (*codegenrpc.GetMappingResponse, error) {
	return &codegenrpc.GetMappingResponse{}, nil
}
