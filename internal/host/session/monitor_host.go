package session

import (
	"context"
	"net"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/monitor"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/sys/tracing"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// monitorHost implements monitor.Host for a session.
type monitorHost struct{ *Session }

// ServeMonitor serves a monitor for one epoch of the program, with a link to its Run. The caller stops it.
func (s *Session) ServeMonitor(
	ctx context.Context, link *runlink.Link, goal engine.Goal, required []pluginhost.Package,
) (*monitor.Monitor, error) {
	s.link.Store(link)
	return monitor.Serve(monitor.Options{
		Host: monitorHost{s}, Link: link, Goal: goal, Values: s.values, Config: s.config, Names: s.names,
		Project:  monitor.Project{Root: s.root(), ProgramDir: s.programDir(), Box: s.box, Assets: s.assets},
		Required: required, Refusals: &s.refusals, Hooks: &s.hooks, Span: tracing.Of(ctx),
		Started: s.phases.begin(startingPhase(s.project)),
	})
}

// startingPhase returns the text of the phase until the program makes its first call.
func startingPhase(p *workspace.Project) string {
	switch p.Runtime.Name() {
	case "go", "dotnet", "java":
		return "compiling and starting the program"
	}
	return "starting the program"
}

// Listen implements monitor.Host.
func (h monitorHost) Listen() (net.Listener, error) { return h.host.Listen() }

// Provider implements monitor.Host.
func (h monitorHost) Provider(
	ctx context.Context, reference string, config resource.PropertyMap, extension engine.Bag,
) (*pluginhost.Provider, error) {
	return h.providers.Configured(ctx, reference, config, extension)
}

// Callbacks implements monitor.Host.
func (h monitorHost) Callbacks(ctx context.Context, target string) (*pluginhost.Callbacks, error) {
	return h.host.Callbacks(ctx, target)
}

// Redact implements monitor.Host.
func (h monitorHost) Redact(ctx context.Context, text string) string { return h.redactor(ctx)(text) }

// LastKnown implements monitor.Host: an unknown output gets its value from the base, and is left out if the base has
// none. An output is unknown if it depends on a resource that failed or is not a target of the update.
func (h monitorHost) LastKnown(
	ctx context.Context, u urn.URN, outputs resource.PropertyMap,
) (resource.PropertyMap, error) {
	if !bags.HasUnknown(resource.NewProperty(outputs)) {
		return outputs, nil
	}
	base, err := h.store.Checkpoint(ctx, h.update.StackName, h.base, h.request.Secrets)
	if err != nil {
		return nil, err
	}
	for _, state := range base.States() {
		if state.URN == u && !state.Delete {
			last, err := h.values.Decode(ctx, state.Outputs)
			return bags.Known(outputs, last), err
		}
	}
	return bags.Known(outputs, nil), nil
}
