package activities

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/pluginhost"
	"github.com/deployctl/deployctl/internal/properties"
	"github.com/deployctl/deployctl/internal/runlink"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// monitor is the engine as a program, and the providers that construct components for it, see it. It belongs to one
// epoch: what it remembers is what was registered in this run of the program.
type monitor struct {
	pulumirpc.UnimplementedResourceMonitorServer
	session *session
	link    *runlink.Link
	goal    engine.Goal
	require map[string]pluginhost.Package // what the program says it needs, by package
	address string
	places  places
	server  *grpc.Server

	mu       sync.Mutex
	defaults map[string]*defaultProvider // by package, version and URL
	packages map[string]packageRequest   // by the reference given out
	configs  map[string]resource.PropertyMap
	seen     *registry
	closed   atomic.Pointer[error] // see open
	started  func()                // called when the program makes its first call
	later    atomic.Bool           // a preview has replied with outputs that the update will make known
}

// newMonitor serves a monitor on a loopback address, for the processes of the update alone. Stop it.
func newMonitor(s *session, link *runlink.Link, goal engine.Goal, require []pluginhost.Package) (*monitor, error) {
	listener, err := s.host.Listen()
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeUnavailable, "serving the program: %w", err)
	}
	m := &monitor{
		session: s, link: link, goal: goal, address: listener.Addr().String(),
		require:  map[string]pluginhost.Package{},
		defaults: map[string]*defaultProvider{}, packages: map[string]packageRequest{},
		configs: map[string]resource.PropertyMap{}, seen: newRegistry(),
		places:  placesOf(s.root(), s.programDir(), s.box),
		started: s.phases.begin(startingOf(s.project)),
	}
	for _, p := range require {
		m.require[p.Name] = p
	}
	m.server = grpc.NewServer(pluginhost.ServerOptions(m.unserved)...)
	pulumirpc.RegisterResourceMonitorServer(m.server, m)
	go func() { _ = m.server.Serve(listener) }() // ends by stop
	return m, nil
}

// stop ends every call that is still open.
func (m *monitor) stop() {
	m.started()
	m.server.Stop()
}

// features are what SupportsFeature answers yes to; anything else is no.
var features = map[string]pulumirpc.ResourceMonitorFeature{
	"secrets":            pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_SECRETS,
	"resourceReferences": pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
	"outputValues":       pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
	"aliasSpecs":         pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
	"replacementTrigger": pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
	"deletedWith":        pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_DELETED_WITH,
	"replaceWith":        pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
	"parameterization":   pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
	// These are refused when a program asks for them. Of a feature that is not claimed the monitor would never hear:
	// SDKs tell the user to update the Pulumi CLI, or leave the resource out.
	"transforms":       pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_TRANSFORMS,
	"invokeTransforms": pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
	"resourceHooks":    pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
	"errorHooks":       pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
}

// SupportsFeature answers for older SDKs.
func (m *monitor) SupportsFeature(
	_ context.Context, req *pulumirpc.SupportsFeatureRequest,
) (*pulumirpc.SupportsFeatureResponse, error) {
	m.started()
	_, ok := features[req.GetId()]
	return &pulumirpc.SupportsFeatureResponse{HasSupport: ok}, nil
}

// GetDeploymentInfo describes the update.
func (m *monitor) GetDeploymentInfo(context.Context, *emptypb.Empty) (*pulumirpc.DeploymentInfo, error) {
	m.started()
	supported := []pulumirpc.ResourceMonitorFeature{
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_BYTE_STRING,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_DEPENDS_ON,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_PARENT,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_STATE_MIGRATIONS, // refused, as some of features
	}
	for _, f := range features {
		supported = append(supported, f)
	}
	return &pulumirpc.DeploymentInfo{
		Project: m.goal.Project, Stack: m.goal.Stack, Organization: m.goal.Organization,
		Config: m.session.config.Reveal(), ConfigSecretKeys: m.session.config.SecretKeys(),
		DryRun: m.goal.DryRun, Parallel: parallel32(m.goal.Parallel), SupportedFeatures: properties.Sorted(supported),
	}, nil
}

// promises reports that a preview shows outputs which are not known as known after the update. Of one with targets they
// may be of resources that it leaves out: then it promises nothing before a resource that it does not leave out has
// such outputs.
func (m *monitor) promises() bool {
	return m.goal.DryRun && (len(m.goal.Targets) == 0 || m.later.Load())
}

// RegisterResourceOutputs attaches outputs to a component or the stack.
func (m *monitor) RegisterResourceOutputs(
	ctx context.Context, req *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	resp, err := m.registerOutputs(ctx, req)
	return resp, m.refuse(ctx, err, engine.Refused{})
}

func (m *monitor) registerOutputs(
	ctx context.Context, req *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	u, err := urn.Parse(req.GetUrn())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "registering outputs: %v", err)
	}
	outputs, err := plugin.UnmarshalProperties(req.GetOutputs(), m.unmarshalOptions("outputs of "+string(u)))
	if err == nil {
		err = m.hashAssets(ctx, outputs)
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "outputs of %s: %v", u, err)
	}
	outputs = properties.WithoutOutputs(outputs)
	if !m.promises() {
		if outputs, err = m.session.lastKnown(ctx, u, outputs); err != nil {
			return nil, rpcError(err)
		}
	}
	bag, err := m.session.values.Encode(ctx, outputs)
	if err != nil {
		return nil, rpcError(err)
	}
	reply, err := m.ask(ctx, func(epoch, seq int) deployments.Message {
		return deployments.Message{OutputsRegistered: &engine.OutputsRegistered{Epoch: epoch, Seq: seq, URN: u,
			Outputs: bag}}
	})
	if err == nil && reply.Error != "" { // unlike a registration's, it does not end the update by itself
		err = status.Error(codes.InvalidArgument, reply.Error)
	} else {
		err = m.refusal(reply, err)
	}
	if err != nil {
		return nil, err
	}
	m.seen.outputs(u, bag)
	return &emptypb.Empty{}, nil
}

// SignalAndWaitForShutdown lets the program go: nothing calls back into it after its last registration was answered.
func (m *monitor) SignalAndWaitForShutdown(context.Context, *emptypb.Empty) (*emptypb.Empty, error) {
	return &emptypb.Empty{}, nil
}

// RegisterStackTransform refuses: see features.
func (m *monitor) RegisterStackTransform(ctx context.Context, _ *pulumirpc.Callback) (*emptypb.Empty, error) {
	return m.forgo(ctx, "stack transforms")
}

// RegisterStackInvokeTransform refuses: see features.
func (m *monitor) RegisterStackInvokeTransform(ctx context.Context, _ *pulumirpc.Callback) (*emptypb.Empty, error) {
	return m.forgo(ctx, "invoke transforms")
}

// RegisterResourceHook refuses: see features.
func (m *monitor) RegisterResourceHook(
	ctx context.Context, req *pulumirpc.RegisterResourceHookRequest,
) (*emptypb.Empty, error) {
	return m.forgo(ctx, fmt.Sprintf("resource hooks (%.100q)", req.GetName()))
}

// RegisterErrorHook refuses: see features.
func (m *monitor) RegisterErrorHook(
	ctx context.Context, req *pulumirpc.RegisterErrorHookRequest,
) (*emptypb.Empty, error) {
	return m.forgo(ctx, fmt.Sprintf("error hooks (%.100q)", req.GetName()))
}

// unmarshalOptions read what programs send: nothing in it is lost.
func (m *monitor) unmarshalOptions(label string) plugin.MarshalOptions {
	return plugin.MarshalOptions{
		Label: label, KeepUnknowns: true, KeepSecrets: true, KeepResources: true,
		WorkingDirectory: m.session.programDir(),
	}
}

// rpcError gives an error of ours to a program.
func rpcError(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unknown, err.Error())
}

func parallel32(n int) int32 {
	return int32(min(n, 1<<30)) //nolint:gosec // bounded
}
