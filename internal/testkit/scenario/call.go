package scenario

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
	"gopkg.in/yaml.v3"
)

// invoke calls a provider's function.
type invoke struct {
	Alias       string               `yaml:"invoke"`
	Token       string               `yaml:"token"`
	Args        map[string]yaml.Node `yaml:"args"`
	Options     options              `yaml:"options"`
	ExpectError string               `yaml:"expectError"`
	// OutputValues says by output values, in both directions, what depends on what.
	OutputValues bool `yaml:"outputValues"`
}

func (i *invoke) play(p *player) error {
	return p.start(i.Alias, func(m *made) error { return expected(i.ExpectError, i.invoke(p, m)) })
}

func (i *invoke) invoke(p *player, m *made) error {
	args, err := p.bag(i.Args)
	if err != nil {
		return err
	}
	var with rpc.RegisterResourceRequest
	with.Type, with.Custom = i.Token, true
	if err := i.Options.apply(p, m, &with); err != nil {
		return err
	}
	m.deps = union(dependencies(resource.NewProperty(args)), with.Dependencies)
	if unknown(resource.NewProperty(args)) {
		m.unknown = true // as an SDK does: a function is not called with what is not known
		return nil
	}
	req := &rpc.ResourceInvokeRequest{
		Tok: i.Token, Provider: with.Provider, Version: with.Version, PluginDownloadURL: with.PluginDownloadURL,
		PackageRef: with.PackageRef,
		DependsOn:  with.Dependencies, AcceptResources: true,
	}
	if i.Options.Parent != "" {
		req.Parent = with.Parent
	}
	if i.OutputValues {
		m.deps, req.DependsOn, req.AcceptOutputValues = nil, nil, true
	}
	if req.Args, err = plugin.MarshalProperties(args, marshal(i.OutputValues)); err != nil {
		return err
	}
	res, err := p.monitor.Invoke(p.ctx, req)
	if err != nil {
		return err
	}
	m.unknown = res.GetUnknown()
	return m.returned(res.GetReturn(), res.GetFailures())
}

// exists asks whether there is a resource.
type exists struct {
	Alias   string  `yaml:"exists"`
	Type    string  `yaml:"type"`
	ID      string  `yaml:"id"`
	Options options `yaml:"options"`
}

func (e *exists) play(p *player) error {
	return p.start(e.Alias, func(m *made) error { return e.exists(p, m) })
}

func (e *exists) exists(p *player, m *made) error {
	id, err := p.interpolate(e.ID)
	if err != nil {
		return err
	}
	with := rpc.RegisterResourceRequest{Type: e.Type, Custom: true}
	if err := e.Options.apply(p, m, &with); err != nil {
		return err
	}
	m.deps = dependencies(id)
	if unknown(id) {
		m.unknown = true
		return nil
	}
	res, err := p.monitor.ExistsResource(p.ctx, &rpc.ExistsResourceRequest{
		Type: e.Type, Id: display(leaf(id).Element), Parent: with.Parent, Provider: with.Provider, Version: with.Version,
		PluginDownloadURL: with.PluginDownloadURL, PackageRef: with.PackageRef,
	})
	if m.unknown = res.GetUnknown(); !m.unknown {
		m.state = resource.PropertyMap{"exists": resource.NewProperty(res.GetExists())}
	}
	return err
}

// call calls a method of a resource.
type call struct {
	Alias       string               `yaml:"call"`
	Token       string               `yaml:"token"`
	Self        string               `yaml:"self"`
	Args        map[string]yaml.Node `yaml:"args"`
	Options     options              `yaml:"options"`
	ExpectError string               `yaml:"expectError"`
}

func (c *call) play(p *player) error {
	return p.start(c.Alias, func(m *made) error { return expected(c.ExpectError, c.call(p, m)) })
}

func (c *call) call(p *player, m *made) error {
	args, err := p.bag(c.Args)
	if err != nil {
		return err
	}
	if c.Self != "" {
		if args["__self__"], err = p.resourceReference(c.Self); err != nil {
			return err
		}
	}
	var with rpc.RegisterResourceRequest
	with.Type, with.Custom = c.Token, true
	if err := c.Options.apply(p, m, &with); err != nil {
		return err
	}
	req := &rpc.ResourceCallRequest{
		Tok: c.Token, Provider: with.Provider, Version: with.Version, PluginDownloadURL: with.PluginDownloadURL,
		PackageRef:      with.PackageRef,
		ArgDependencies: map[string]*rpc.ResourceCallRequest_ArgumentDependencies{},
	}
	for key, v := range args {
		urns := dependencies(v)
		req.ArgDependencies[string(key)] = &rpc.ResourceCallRequest_ArgumentDependencies{Urns: urns}
		m.deps = union(m.deps, urns)
	}
	if req.Args, err = plugin.MarshalProperties(args, marshal(p.outputs)); err != nil {
		return err
	}
	res, err := p.monitor.Call(p.ctx, req)
	if err != nil {
		return err
	}
	for _, d := range res.GetReturnDependencies() {
		m.deps = union(m.deps, d.GetUrns())
	}
	return m.returned(res.GetReturn(), res.GetFailures())
}

// returned takes in the answer to an invoke or a call.
func (m *made) returned(object *structpb.Struct, failures []*rpc.CheckFailure) (err error) {
	var reasons []string
	for _, f := range failures {
		reasons = append(reasons, f.GetProperty()+": "+f.GetReason())
	}
	if reasons != nil {
		return fmt.Errorf("the call failed: %s", strings.Join(reasons, "; "))
	}
	m.state, err = plugin.UnmarshalProperties(object, marshal(true))
	return err
}

// expected turns the error that a step expects into a quiet end, and its absence into an error.
func expected(want string, err error) error {
	if want == "" {
		return err
	}
	if err == nil || !strings.Contains(err.Error(), want) {
		return fmt.Errorf("expected an error with %q, got: %w", want, err)
	}
	return errSkipped
}

// unknown says whether anything in a value is not known yet.
func unknown(v resource.PropertyValue) bool {
	switch {
	case v.IsComputed():
		return true
	case v.IsOutput():
		return !v.OutputValue().Known || unknown(v.OutputValue().Element)
	case v.IsSecret():
		return unknown(v.SecretValue().Element)
	case v.IsArray():
		return slices.ContainsFunc(v.ArrayValue(), unknown)
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			if unknown(e) {
				return true
			}
		}
	}
	return false
}
