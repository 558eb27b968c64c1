package languagehost

import (
	"context"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/emptypb"
)

// none is the host of a project without a runtime: its program declares nothing, imports nothing and needs no package.
type none struct {
	pulumirpc.UnimplementedLanguageRuntimeServer
	say func(line string)
}

func (none) GetRequiredPackages(
	context.Context, *pulumirpc.GetRequiredPackagesRequest,
) (*pulumirpc.GetRequiredPackagesResponse, error) {
	return &pulumirpc.GetRequiredPackagesResponse{}, nil
}

func (none) InstallDependencies(
	*pulumirpc.InstallDependenciesRequest, grpc.ServerStreamingServer[pulumirpc.InstallDependenciesResponse],
) error {
	return nil
}

func (n none) Run(context.Context, *pulumirpc.RunRequest) (*pulumirpc.RunResponse, error) {
	n.say("Pulumi.yaml names no runtime, so there is no program: nothing is declared.")
	return &pulumirpc.RunResponse{}, nil
}

func (none) Cancel(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}
