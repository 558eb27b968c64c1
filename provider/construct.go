package provider

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/util/rpcutil"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
)

// Construct registers the component itself, lets its author register the children, and tells the engine the outputs.
func (s *server) Construct(ctx context.Context, req *pulumirpc.ConstructRequest) (*pulumirpc.ConstructResponse, error) {
	ctx, end := s.scope(ctx, 0)
	defer end()
	comp, ok := s.components[req.GetType()]
	if !ok {
		return nil, status.Errorf(codes.NotFound, "package %s %s has no component type %q", s.pkg.Name, s.pkg.Version,
			req.GetType())
	}
	conn, err := grpc.NewClient(req.GetMonitorEndpoint(),
		grpc.WithTransportCredentials(insecure.NewCredentials()), rpcutil.GrpcChannelOptions())
	if err != nil {
		return nil, fmt.Errorf("the engine's monitor at %s: %w", req.GetMonitorEndpoint(), err)
	}
	defer func() { _ = conn.Close() }()

	c := &Construction{Name: req.GetName(), Preview: req.GetDryRun(), req: req,
		monitor: pulumirpc.NewResourceMonitorClient(conn)}
	inputs, err := unmarshal(ctx, req.GetInputs())
	if err != nil {
		return nil, err
	}
	var failures []Failure
	if c.inputs, failures = comp.in.complete(inputs); len(failures) > 0 {
		return nil, status.Error(codes.InvalidArgument, sentence(c.Name, failures))
	}
	itself, err := c.register(ctx, itselfRequest(req), c.inputs)
	if err != nil {
		return nil, err
	}
	c.URN = itself.URN
	return c.finish(ctx, comp)
}

func sentence(name string, failures []Failure) string {
	var all []string
	for _, f := range once(failures) {
		all = append(all, fmt.Sprintf("%q %s", f.Property, f.Reason))
	}
	return fmt.Sprintf("inputs of %s: %s", name, strings.Join(all, "; "))
}

func (c *Construction) finish(ctx context.Context, comp Component) (*pulumirpc.ConstructResponse, error) {
	outputs, err := comp.construct(ctx, c)
	if err != nil {
		return nil, statusOf(err)
	}
	state, err := marshal(outputs)
	if err != nil {
		return nil, err
	}
	_, err = c.monitor.RegisterResourceOutputs(ctx, &pulumirpc.RegisterResourceOutputsRequest{Urn: string(c.URN),
		Outputs: state})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("outputs of %s", c.Name), err)
	}
	return &pulumirpc.ConstructResponse{Urn: string(c.URN), State: state}, nil
}

// itselfRequest hands the options that the program gave for the component on to its own registration.
func itselfRequest(req *pulumirpc.ConstructRequest) *pulumirpc.RegisterResourceRequest {
	r := &pulumirpc.RegisterResourceRequest{
		Type: req.GetType(), Name: req.GetName(), Parent: req.GetParent(), Protect: req.Protect,
		Dependencies: req.GetDependencies(), Providers: req.GetProviders(), Aliases: req.GetAliases(), AliasSpecs: true,
		AdditionalSecretOutputs: req.GetAdditionalSecretOutputs(), DeletedWith: req.GetDeletedWith(),
		DeleteBeforeReplace:        req.GetDeleteBeforeReplace(),
		DeleteBeforeReplaceDefined: req.DeleteBeforeReplace != nil,
		IgnoreChanges:              req.GetIgnoreChanges(), ReplaceOnChanges: req.GetReplaceOnChanges(),
		RetainOnDelete: req.RetainOnDelete, ReplaceWith: req.GetReplaceWith(),
		ReplacementTrigger:   req.GetReplacementTrigger(),
		AcceptSecrets:        true,
		PropertyDependencies: map[string]*pulumirpc.RegisterResourceRequest_PropertyDependencies{},
	}
	if t := req.GetCustomTimeouts(); t != nil {
		r.CustomTimeouts = &pulumirpc.RegisterResourceRequest_CustomTimeouts{
			Create: t.GetCreate(), Update: t.GetUpdate(), Delete: t.GetDelete(),
		}
	}
	for name, deps := range req.GetInputDependencies() {
		r.PropertyDependencies[name] = &pulumirpc.RegisterResourceRequest_PropertyDependencies{Urns: deps.GetUrns()}
	}
	return r
}
