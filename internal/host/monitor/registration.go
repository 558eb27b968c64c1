package monitor

import (
	"context"
	"maps"
	"strings"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// read makes a registration of a request. The caller sets its Inputs.
func (m *Monitor) read(ctx context.Context, req *pulumirpc.RegisterResourceRequest) (*registration, error) {
	g := &registration{Registration: engine.Registration{
		Type: tokens.Type(req.GetType()), Name: req.GetName(), Remote: req.GetRemote(),
		Custom: req.GetCustom() && tokens.Type(req.GetType()) != engine.BindingType,
		Parent: urn.URN(req.GetParent()), Protect: req.Protect, RetainOnDelete: req.RetainOnDelete,
		IgnoreChanges: req.GetIgnoreChanges(), ReplaceOnChanges: req.GetReplaceOnChanges(),
		HideDiff:                req.GetHideDiffs(),
		AdditionalSecretOutputs: req.GetAdditionalSecretOutputs(), ImportID: req.GetImportId(),
		SourcePosition: m.places.position(req.GetSourcePosition()), Hooks: readHooks(req.GetHooks()),
	}}
	if req.GetDeleteBeforeReplaceDefined() || req.GetDeleteBeforeReplace() {
		g.DeleteBeforeReplace = &req.DeleteBeforeReplace
	}
	if first := g.Custom && m.names.DeletesFirst(g.Type); first {
		g.DeleteBeforeReplace = &first
	}
	if err := token.CheckName(req.GetType(), g.Name); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if g.Custom || g.Remote {
		if _, err := token.ParseType(req.GetType()); err != nil {
			return nil, status.Error(codes.InvalidArgument, err.Error())
		}
	}
	for _, fill := range []func(context.Context, *pulumirpc.RegisterResourceRequest, *registration) error{
		m.readInputs, m.readReferences, m.readTimeouts, m.readTrigger, m.readProvider,
	} {
		if err := fill(ctx, req, g); err != nil {
			return nil, err
		}
	}
	if err := readBinding(g); err != nil {
		return nil, err
	}
	aliases, err := readAliases(req, fromNode(ctx) && !req.GetAliasSpecs())
	g.Aliases = aliases
	return g, err
}

// readInputs reads the properties, the dependencies of each, and the resource's own dependencies.
func (m *Monitor) readInputs(ctx context.Context, req *pulumirpc.RegisterResourceRequest, g *registration) error {
	options := m.unmarshalOptions(string(g.Type) + " " + g.Name)
	options.KeepOutputValues, options.UpgradeToOutputValues = true, true
	inputs, err := plugin.UnmarshalProperties(req.GetObject(), options)
	if err == nil {
		err = m.project.Assets.Hash(ctx, inputs)
	}
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "inputs of %s %s: %v", g.Type, g.Name, err)
	}
	if inputs == nil {
		inputs = resource.PropertyMap{}
	}
	g.inputs = inputs
	all, err := parseURNs("dependency of "+g.Name, req.GetDependencies())
	if err != nil {
		return err
	}
	byProperty := map[string][]urn.URN{}
	for name, deps := range req.GetPropertyDependencies() {
		if byProperty[name], err = parseURNs("dependency of "+g.Name+"."+name, deps.GetUrns()); err != nil {
			return err
		}
	}
	for key, v := range inputs {
		name := string(key)
		byProperty[name] = properties.Dependencies(v, byProperty[name]) // every property has an entry, as in Pulumi
	}
	g.Dependencies = properties.Sorted(all)
	g.PropertyDependencies = properties.DependenciesByProperty(byProperty)
	return nil
}

// readReferences reads the options that name other resources.
func (m *Monitor) readReferences(_ context.Context, req *pulumirpc.RegisterResourceRequest, g *registration) error {
	var err error
	if g.DeletedWith, err = urn.ParseOptional(req.GetDeletedWith()); err != nil {
		return status.Errorf(codes.InvalidArgument, "deletedWith of %s: %v", g.Name, err)
	}
	g.ReplaceWith, err = parseURNs("replaceWith of "+g.Name, req.GetReplaceWith())
	return err
}

func (m *Monitor) readTimeouts(_ context.Context, req *pulumirpc.RegisterResourceRequest, g *registration) error {
	t := req.GetCustomTimeouts()
	if t == nil {
		return nil
	}
	g.timeouts = &plugin.CustomTimeouts{Create: t.GetCreate(), Update: t.GetUpdate(), Delete: t.GetDelete(),
		Read: t.GetRead()}
	var seconds engine.Timeouts
	for _, f := range []struct {
		text string
		to   *float64
	}{{t.GetCreate(), &seconds.Create}, {t.GetUpdate(), &seconds.Update}, {t.GetDelete(), &seconds.Delete},
		{t.GetRead(), &seconds.Read}} {
		if f.text == "" {
			continue
		}
		d, err := time.ParseDuration(f.text)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "customTimeouts of %s: %q is not a duration like 5m", g.Name,
				f.text)
		}
		*f.to = d.Seconds()
	}
	if seconds != (engine.Timeouts{}) {
		g.Timeouts = &seconds
	}
	return nil
}

func (m *Monitor) readTrigger(ctx context.Context, req *pulumirpc.RegisterResourceRequest, g *registration) error {
	if req.GetReplacementTrigger() == nil {
		return nil
	}
	options := m.unmarshalOptions("replacementTrigger of " + g.Name)
	options.KeepOutputValues = true
	v, err := plugin.UnmarshalPropertyValue("replacementTrigger", req.GetReplacementTrigger(), options)
	if err == nil && v != nil {
		err = m.project.Assets.Hash(ctx, resource.PropertyMap{"replacementTrigger": *v})
	}
	if err != nil {
		return status.Errorf(codes.InvalidArgument, "replacementTrigger of %s: %v", g.Name, err)
	}
	if v == nil || v.IsNull() {
		return nil
	}
	if !m.goal.DryRun && v.ContainsUnknowns() {
		return status.Errorf(codes.InvalidArgument, "replacementTrigger of %s is not known", g.Name)
	}
	trigger := properties.WithoutOutputs(resource.PropertyMap{"value": *v})
	if g.TriggerValue, err = bags.TriggerValue(m.values.Key, trigger); err != nil {
		return err
	}
	g.Trigger, err = m.values.Encode(ctx, trigger)
	return err
}

// readProvider finds the provider that manages the resource, and those that a component's children inherit.
func (m *Monitor) readProvider(ctx context.Context, req *pulumirpc.RegisterResourceRequest, g *registration) error {
	g.providers = maps.Clone(req.GetProviders())
	parent, _ := m.registry.get(g.Parent)
	if !g.Custom {
		if g.providers == nil {
			g.providers = map[string]string{}
		}
		for pkg, ref := range parent.providers {
			if _, ok := g.providers[pkg]; !ok {
				g.providers[pkg] = ref
			}
		}
	}
	if !g.Remote && (!g.Custom || token.IsProvider(g.Type)) {
		return nil
	}
	pkg := token.Package(g.Type)
	named := req.GetProvider()
	if named == "" {
		named = req.GetProviders()[string(pkg)]
	}
	if named == "" {
		named = parent.providers[string(pkg)]
	}
	p, err := m.request(pkg, req)
	if err != nil {
		return err
	}
	g.Extension = p.extension
	g.Provider, err = m.provider(ctx, named, p)
	return err
}

// readAliases reads the earlier names of the resource. Older Node SDKs invert NoParent of aliases: wrongParents.
func readAliases(req *pulumirpc.RegisterResourceRequest, wrongParents bool) ([]engine.Alias, error) {
	var aliases []engine.Alias
	add := func(text string) error {
		u, err := urn.Parse(text)
		if err != nil {
			return status.Errorf(codes.InvalidArgument, "alias of %s: %v", req.GetName(), err)
		}
		aliases = append(aliases, engine.Alias{URN: u})
		return nil
	}
	for _, text := range req.GetAliasURNs() {
		if err := add(text); err != nil {
			return nil, err
		}
	}
	for _, alias := range req.GetAliases() {
		spec := alias.GetSpec()
		if spec == nil {
			if err := add(alias.GetUrn()); err != nil {
				return nil, err
			}
			continue
		}
		parent, err := urn.ParseOptional(spec.GetParentUrn())
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "alias of %s: parent: %v", req.GetName(), err)
		}
		a := engine.Alias{
			Name: spec.GetName(), Type: spec.GetType(), Stack: spec.GetStack(), Project: spec.GetProject(),
			Parent: parent, NoParent: spec.GetNoParent(),
		}
		if wrongParents && parent == "" {
			a.NoParent = !a.NoParent
		}
		aliases = append(aliases, a)
	}
	return aliases, nil
}

// fromNode reports whether a call comes from the Node SDK.
func fromNode(ctx context.Context) bool {
	md, _ := metadata.FromIncomingContext(ctx)
	if runtime := md.Get("pulumi-runtime"); len(runtime) > 0 {
		return runtime[0] == "nodejs"
	}
	agent := md.Get("user-agent")
	return len(agent) == 1 && strings.HasPrefix(agent[0], "grpc-node-js/")
}

func parseURNs(what string, texts []string) ([]urn.URN, error) {
	var list []urn.URN
	for _, text := range texts {
		u, err := urn.Parse(text)
		if err != nil {
			return nil, status.Errorf(codes.InvalidArgument, "%s: %v", what, err)
		}
		list = append(list, u)
	}
	return list, nil
}
