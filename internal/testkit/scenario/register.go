package scenario

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"gopkg.in/yaml.v3"
)

// register registers a resource.
type register struct {
	Alias       string               `yaml:"register"`
	Type        string               `yaml:"type"`
	Name        string               `yaml:"name"`
	Component   bool                 `yaml:"component"`
	Remote      bool                 `yaml:"remote"`
	Properties  map[string]yaml.Node `yaml:"properties"`
	Options     options              `yaml:"options"`
	ExpectError string               `yaml:"expectError"`
	// OutputValues says by output values what each property depends on.
	OutputValues bool `yaml:"outputValues"`
}

func (r *register) play(p *player) error {
	return p.start(r.Alias, func(m *made) error { return expected(r.ExpectError, r.register(p, m)) })
}

func (r *register) register(p *player, m *made) error {
	props, err := p.bag(r.Properties)
	if err != nil {
		return err
	}
	name, err := p.text(cmp.Or(r.Name, m.name))
	if err != nil {
		return err
	}
	req := &rpc.RegisterResourceRequest{
		Type: r.Type, Name: name, Custom: !r.Component && !r.Remote, Remote: r.Remote,
		PropertyDependencies: map[string]*rpc.RegisterResourceRequest_PropertyDependencies{},
		AcceptSecrets:        true, AcceptResources: true, AliasSpecs: true, SupportsPartialValues: true,
		SupportsResultReporting: true,
	}
	byValue := r.OutputValues || r.Remote && p.outputs
	if req.Object, err = plugin.MarshalProperties(props, marshal(byValue)); err != nil {
		return err
	}
	for key, v := range props {
		urns := dependencies(v)
		req.PropertyDependencies[string(key)] = &rpc.RegisterResourceRequest_PropertyDependencies{Urns: urns}
		req.Dependencies = union(req.Dependencies, urns)
	}
	if r.OutputValues {
		req.UsesOutputValues, req.PropertyDependencies = true, nil
	}
	if err := r.Options.apply(p, m, req); err != nil {
		return err
	}
	res, err := p.monitor.RegisterResource(p.ctx, req)
	if err != nil {
		return err
	}
	return m.registered(req, res)
}

// registered takes in the monitor's answer.
func (m *made) registered(req *rpc.RegisterResourceRequest, res *rpc.RegisterResourceResponse) (err error) {
	if res.GetResult() != rpc.Result_SUCCESS {
		return errSkipped // the engine has reported it, and goes on with what does not depend on it
	}
	m.urn, m.id, m.custom, m.unknown = res.GetUrn(), res.GetId(), req.Custom, res.GetUnknown()
	if req.Remote {
		m.depends = map[string][]string{}
		for key, d := range res.GetPropertyDependencies() {
			m.depends[key] = d.GetUrns()
		}
	}
	m.state, err = plugin.UnmarshalProperties(res.GetObject(), marshal(true))
	return err
}

// read reads a resource that somebody else manages.
type read struct {
	Alias       string               `yaml:"read"`
	Type        string               `yaml:"type"`
	Name        string               `yaml:"name"`
	ID          string               `yaml:"id"`
	Properties  map[string]yaml.Node `yaml:"properties"`
	Options     options              `yaml:"options"`
	ExpectError string               `yaml:"expectError"`
}

func (r *read) play(p *player) error {
	return p.start(r.Alias, func(m *made) error { return expected(r.ExpectError, r.read(p, m)) })
}

func (r *read) read(p *player, m *made) error {
	id, err := p.interpolate(r.ID)
	if err != nil {
		return err
	}
	props, err := p.bag(r.Properties)
	if err != nil {
		return err
	}
	// The options are worked out for a registration, and those taken over that a read has too.
	var with rpc.RegisterResourceRequest
	with.Type, with.Custom = r.Type, true
	with.Dependencies = union(dependencies(id), dependencies(resource.NewProperty(props)))
	if err := r.Options.apply(p, m, &with); err != nil {
		return err
	}
	req := &rpc.ReadResourceRequest{
		Id: plugin.UnknownStringValue, Type: r.Type, Name: cmp.Or(r.Name, m.name),
		Parent: with.Parent, Dependencies: with.Dependencies, Provider: with.Provider, Version: with.Version,
		PluginDownloadURL: with.PluginDownloadURL, PackageRef: with.PackageRef,
		AdditionalSecretOutputs: with.AdditionalSecretOutputs,
		AcceptSecrets:           true, AcceptResources: true,
	}
	if known := leaf(id); known.Known {
		req.Id = display(known.Element)
	}
	if req.Properties, err = plugin.MarshalProperties(props, marshal(false)); err != nil {
		return err
	}
	res, err := p.monitor.ReadResource(p.ctx, req)
	if err != nil {
		return err
	}
	m.urn, m.custom = res.GetUrn(), true
	if req.Id != plugin.UnknownStringValue {
		m.id = req.Id
	}
	m.state, err = plugin.UnmarshalProperties(res.GetProperties(), marshal(true))
	return err
}

// outputs registers the outputs of a component, or of the stack before its end.
type outputs struct {
	Of     string               `yaml:"outputs"`
	Values map[string]yaml.Node `yaml:"values"`
}

func (o *outputs) play(p *player) error {
	return p.start("outputs of "+o.Of, func(*made) error {
		of, err := p.urn(o.Of)
		if err != nil {
			return err
		}
		return p.registerOutputs(of, o.Values)
	})
}

func (p *player) registerOutputs(of string, values map[string]yaml.Node) error {
	bag, err := p.bag(values)
	if err != nil {
		return err
	}
	object, err := plugin.MarshalProperties(bag, marshal(false))
	if err != nil {
		return err
	}
	_, err = p.monitor.RegisterResourceOutputs(p.ctx, &rpc.RegisterResourceOutputsRequest{Urn: of, Outputs: object})
	return err
}

// urn gives the URN of what a name stands for; a URN stands for itself, and "stack" for the stack.
func (p *player) urn(name string) (string, error) {
	name, err := p.text(name)
	if err != nil || strings.HasPrefix(name, "urn:") {
		return name, err
	}
	if name == "stack" {
		return p.root, nil
	}
	m, err := p.await(name)
	if err != nil {
		return "", err
	}
	if m.urn == "" {
		return "", fmt.Errorf("%s is not a resource", name)
	}
	return m.urn, nil
}

func (p *player) urns(names []string) ([]string, error) {
	var all []string
	for _, name := range names {
		u, err := p.urn(name)
		if err != nil {
			return nil, err
		}
		all = append(all, u)
	}
	return all, nil
}

// provider gives the reference to the provider resource that a name stands for.
func (p *player) provider(name string) (string, error) {
	if strings.HasPrefix(name, "urn:") {
		return name, nil
	}
	m, err := p.await(name)
	if err != nil {
		return "", err
	}
	return m.urn + "::" + cmp.Or(m.id, plugin.UnknownStringValue), nil
}

func (p *player) resourceReference(name string) (none resource.PropertyValue, err error) {
	m, err := p.await(name)
	if err != nil {
		return none, err
	}
	if !m.custom {
		return resource.MakeComponentResourceReference(urn.URN(m.urn), ""), nil
	}
	return resource.MakeCustomResourceReference(urn.URN(m.urn), resource.ID(m.id), ""), nil
}

// packageOf is the package of a type, or of the provider type for one.
func packageOf(typ string) string {
	if pkg, is := strings.CutPrefix(typ, "pulumi:providers:"); is {
		return pkg
	}
	return string(token.Package(typ))
}
