package monitor

import (
	"context"
	"net"
	"sync"
	"sync/atomic"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/assets"
	"github.com/deployctl/deployctl/internal/host/autonaming"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/emptypb"
)

// Host is what a monitor needs of the session that hosts the update.
type Host interface {
	// Listen returns a loopback listener that only processes of the update can reach.
	Listen() (net.Listener, error)
	// Provider returns the configured provider with a reference, extended unless the extension is empty.
	Provider(
		ctx context.Context, reference string, config resource.PropertyMap, extension engine.Bag,
	) (*pluginhost.Provider, error)
	// LastKnown returns outputs of a component or of the stack in which the stack's values before the update replace
	// what is unknown.
	LastKnown(ctx context.Context, u urn.URN, outputs resource.PropertyMap) (resource.PropertyMap, error)
	// Callbacks connects to the process of the update that serves functions of the program at a target.
	Callbacks(ctx context.Context, target string) (*pluginhost.Callbacks, error)
	// Redact replaces the secrets of the stack's configuration in a text.
	Redact(ctx context.Context, text string) string
}

// Options say what a monitor serves. All fields but Required are set.
type Options struct {
	Host     Host
	Link     *runlink.Link // its epoch is the monitor's
	Goal     engine.Goal
	Values   *bags.Codec
	Config   stackconfig.Config
	Names    *autonaming.Rules
	Project  Project
	Required []pluginhost.Package // what the program says it needs
	Refusals *Refusals
	Hooks    *Hooks
	// Span is what the program's calls are within; nil: it is not exported.
	Span *tracing.Span
	// Started is called with the program's first call and when the monitor stops, so more than once.
	Started func()
}

// Project is where the files of a program are.
type Project struct {
	Root       string         // the directory of Pulumi.yaml
	ProgramDir string         // the directory that the program runs in
	Box        *sandbox.Box   // what its processes are started in; nil without a sandbox
	Assets     *assets.Hasher // of what the program names there
}

// Monitor is the engine as a program, and the providers that construct components for it, see it. It belongs to one
// epoch: what it remembers is what was registered in this run of the program.
type Monitor struct {
	pulumirpc.UnimplementedResourceMonitorServer
	host     Host
	link     *runlink.Link
	goal     engine.Goal
	values   *bags.Codec
	config   stackconfig.Config
	names    *autonaming.Rules
	project  Project
	required map[string]pluginhost.Package // by package
	refusals *Refusals
	started  func()
	address  string
	places   places
	server   *grpc.Server

	callbacks  *callbacks
	transforms transforms
	hooks      *Hooks
	hooked     *hookedProgram

	mu       sync.Mutex
	defaults map[string]*defaultProvider // by package, version and URL
	packages map[string]packageRequest   // by reference
	configs  map[string]resource.PropertyMap
	registry *registry

	packageBytes int // of packages

	asked  atomic.Int64          // calls of ExistsResource
	closed atomic.Pointer[error] // see refusedBefore
	later  atomic.Bool           // a preview has replied with outputs that the update will make known
}

// Serve serves a monitor on a loopback address, for the processes of the update alone. The caller stops it.
func Serve(o Options) (*Monitor, error) {
	listener, err := o.Host.Listen()
	if err != nil {
		o.Started()
		return nil, deployments.Errorf(deployments.CodeUnavailable, "serving the program: %w", err)
	}
	m := &Monitor{
		host: o.Host, link: o.Link, goal: o.Goal, values: o.Values, config: o.Config, names: o.Names,
		project:  o.Project,
		refusals: o.Refusals, started: o.Started, address: listener.Addr().String(),
		required: requiredBy(o.Required),
		defaults: map[string]*defaultProvider{}, packages: map[string]packageRequest{},
		configs: map[string]resource.PropertyMap{}, registry: newRegistry(), places: placesOf(o.Project),
		callbacks:  &callbacks{host: o.Host, targets: map[string]*target{}},
		transforms: transforms{constructing: map[string][]*pulumirpc.Callback{}},
		hooks:      o.Hooks,
	}
	m.hooked = m.hooks.begin(m.link.Epoch(), m.callbacks)
	m.server = grpc.NewServer(append(pluginhost.ServerOptions(m.callFailed),
		grpc.ChainUnaryInterceptor(o.Span.Serving()))...)
	pulumirpc.RegisterResourceMonitorServer(m.server, m)
	go func() { _ = m.server.Serve(listener) }() // ends by Stop
	return m, nil
}

// Address is where processes of the update reach the monitor.
func (m *Monitor) Address() string { return m.address }

// Stop ends every call that is still open.
func (m *Monitor) Stop() {
	m.started()
	m.hooks.end(m.hooked)
	m.callbacks.close()
	m.server.Stop()
}

// features are those that SupportsFeature reports as supported.
var features = map[string]pulumirpc.ResourceMonitorFeature{
	"secrets":             pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_SECRETS,
	"resourceReferences":  pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_RESOURCE_REFERENCES,
	"outputValues":        pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_OUTPUT_VALUES,
	"aliasSpecs":          pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_ALIAS_SPECS,
	"replacementTrigger":  pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_REPLACEMENT_TRIGGER,
	"deletedWith":         pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_DELETED_WITH,
	"replaceWith":         pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_REPLACE_WITH,
	"parameterization":    pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_PARAMETERIZATION,
	"transforms":          pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_TRANSFORMS,
	"invokeTransforms":    pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_TRANSFORMS,
	"resourceHooks":       pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_RESOURCE_HOOKS,
	"errorHooks":          pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_ERROR_HOOKS,
	"sendsOptionsToHooks": pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_SENDS_OPTIONS_TO_HOOKS,
	"registerResourceOutputValues": pulumirpc.
		ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_REGISTER_RESOURCE_OUTPUT_VALUES,
}

// SupportsFeature reports single features to older SDKs.
func (m *Monitor) SupportsFeature(
	_ context.Context, req *pulumirpc.SupportsFeatureRequest,
) (*pulumirpc.SupportsFeatureResponse, error) {
	m.started()
	_, ok := features[req.GetId()]
	return &pulumirpc.SupportsFeatureResponse{HasSupport: ok}, nil
}

// supported are the features that programs are told of.
func supported() []pulumirpc.ResourceMonitorFeature {
	all := []pulumirpc.ResourceMonitorFeature{
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_BYTE_STRING,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_DEPENDS_ON,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_PARENT,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_STATE_MIGRATIONS, // refused when used
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_INVOKE_OUTPUT_VALUES,
		pulumirpc.ResourceMonitorFeature_RESOURCE_MONITOR_FEATURE_CALL_OUTPUT_VALUES,
	}
	for _, f := range features {
		all = append(all, f)
	}
	return properties.Sorted(all)
}

// GetDeploymentInfo describes the update.
func (m *Monitor) GetDeploymentInfo(context.Context, *emptypb.Empty) (*pulumirpc.DeploymentInfo, error) {
	m.started()
	return &pulumirpc.DeploymentInfo{
		Project: m.goal.Project, Stack: m.goal.Stack, Organization: m.goal.Organization,
		Config: m.config.Reveal(), ConfigSecretKeys: m.config.SecretKeys(),
		DryRun: m.goal.DryRun, Parallel: parallel32(m.goal.Parallel), SupportedFeatures: supported(),
	}, nil
}

// showsUnknowns reports that unknown outputs are shown as known after the update, as a preview does. In a preview with
// targets they may belong to resources that it leaves out: there they are shown only once a targeted resource has
// unknown outputs.
func (m *Monitor) showsUnknowns() bool {
	return m.goal.DryRun && (len(m.goal.Targets) == 0 || m.later.Load())
}

// RegisterResourceOutputs attaches outputs to a component or the stack.
func (m *Monitor) RegisterResourceOutputs(
	ctx context.Context, req *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	resp, err := m.registerOutputs(ctx, req)
	return resp, m.refuse(ctx, err, engine.Refused{})
}

func (m *Monitor) registerOutputs(
	ctx context.Context, req *pulumirpc.RegisterResourceOutputsRequest,
) (*emptypb.Empty, error) {
	u, err := urn.Parse(req.GetUrn())
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "registering outputs: %v", err)
	}
	outputs, err := plugin.UnmarshalProperties(req.GetOutputs(), m.unmarshalOptions("outputs of "+string(u)))
	if err == nil {
		err = m.project.Assets.Hash(ctx, outputs)
	}
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "outputs of %s: %v", u, err)
	}
	outputs = properties.WithoutOutputs(outputs)
	if !m.showsUnknowns() {
		if outputs, err = m.host.LastKnown(ctx, u, outputs); err != nil {
			return nil, rpcError(err)
		}
	}
	bag, err := m.values.Encode(ctx, outputs)
	if err != nil {
		return nil, rpcError(err)
	}
	reply, err := m.call(ctx, func(epoch, seq int) deployments.Message {
		return deployments.Message{OutputsRegistered: &engine.OutputsRegistered{Epoch: epoch, Seq: seq, URN: u,
			Outputs: bag}}
	})
	if err == nil && reply.Error != "" { // unlike a registration's error, it does not end the update by itself
		err = status.Error(codes.InvalidArgument, reply.Error)
	} else {
		err = m.replyError(reply, err)
	}
	if err != nil {
		return nil, err
	}
	m.registry.outputs(u, bag)
	return &emptypb.Empty{}, nil
}

// unmarshalOptions keep everything that programs send.
func (m *Monitor) unmarshalOptions(label string) plugin.MarshalOptions {
	return plugin.MarshalOptions{
		Label: label, KeepUnknowns: true, KeepSecrets: true, KeepResources: true,
		WorkingDirectory: m.project.ProgramDir,
	}
}

// rpcError makes an error of the service one for a program.
func rpcError(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return status.Error(codes.Unknown, err.Error())
}

func parallel32(n int) int32 {
	return int32(min(n, 1<<30)) //nolint:gosec // bounded
}
