package scenario

import (
	"fmt"
	"maps"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	rpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"gopkg.in/yaml.v3"
)

// options are a resource's. Where one names a resource, a step's name or a URN will do.
type options struct {
	Parent                  string            `yaml:"parent"`
	Provider                string            `yaml:"provider"`
	Providers               map[string]string `yaml:"providers"`
	DependsOn               []string          `yaml:"dependsOn"`
	Protect                 *bool             `yaml:"protect"`
	IgnoreChanges           []string          `yaml:"ignoreChanges"`
	ReplaceOnChanges        []string          `yaml:"replaceOnChanges"`
	DeleteBeforeReplace     *bool             `yaml:"deleteBeforeReplace"`
	RetainOnDelete          *bool             `yaml:"retainOnDelete"`
	DeletedWith             string            `yaml:"deletedWith"`
	ReplaceWith             []string          `yaml:"replaceWith"`
	ReplacementTrigger      yaml.Node         `yaml:"replacementTrigger"`
	Aliases                 []aliasOption     `yaml:"aliases"`
	Import                  string            `yaml:"import"`
	CustomTimeouts          *timeouts         `yaml:"customTimeouts"`
	AdditionalSecretOutputs []string          `yaml:"additionalSecretOutputs"`
	HideDiffs               []string          `yaml:"hideDiffs"`
	EnvVarMappings          map[string]string `yaml:"envVarMappings"`
	Version                 string            `yaml:"version"`
	PluginDownloadURL       string            `yaml:"pluginDownloadURL"`
	Hooks                   *hookNames        `yaml:"hooks"`
	Transforms              []string          `yaml:"transforms"`
	Package                 string            `yaml:"package"`
}

// timeouts are durations such as 5m.
type timeouts struct {
	Create string `yaml:"create"`
	Update string `yaml:"update"`
	Delete string `yaml:"delete"`
	Read   string `yaml:"read"`
}

// aliasOption is a URN, written as a plain string, or what differed before.
type aliasOption struct {
	URN      string `yaml:"urn"`
	Name     string `yaml:"name"`
	Type     string `yaml:"type"`
	Stack    string `yaml:"stack"`
	Project  string `yaml:"project"`
	Parent   string `yaml:"parent"`
	NoParent bool   `yaml:"noParent"`
}

// UnmarshalYAML takes a string for a URN.
func (a *aliasOption) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		a.URN = node.Value
		return nil
	}
	type plain aliasOption
	return node.Decode((*plain)(a))
}

// apply puts the options into a registration, after waiting for what they name. Dependencies that are there stay.
func (o *options) apply(p *player, m *made, req *rpc.RegisterResourceRequest) error {
	req.Protect, req.RetainOnDelete = o.Protect, o.RetainOnDelete
	req.IgnoreChanges, req.ReplaceOnChanges, req.HideDiffs = o.IgnoreChanges, o.ReplaceOnChanges, o.HideDiffs
	req.AdditionalSecretOutputs, req.EnvVarMappings = o.AdditionalSecretOutputs, o.EnvVarMappings
	req.Version, req.PluginDownloadURL = o.Version, o.PluginDownloadURL
	if o.DeleteBeforeReplace != nil {
		req.DeleteBeforeReplace, req.DeleteBeforeReplaceDefined = *o.DeleteBeforeReplace, true
	}
	if t := o.CustomTimeouts; t != nil {
		req.CustomTimeouts = &rpc.RegisterResourceRequest_CustomTimeouts{
			Create: t.Create, Update: t.Update, Delete: t.Delete, Read: t.Read}
	}
	var err error
	if req.ImportId, err = p.text(o.Import); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if err := o.trigger(p, req); err != nil {
		return fmt.Errorf("replacementTrigger: %w", err)
	}
	if err := o.call(p, req); err != nil {
		return err
	}
	if err := o.relate(p, req); err != nil {
		return err
	}
	return o.provide(p, m, req)
}

func (o *options) trigger(p *player, req *rpc.RegisterResourceRequest) error {
	if o.ReplacementTrigger.IsZero() {
		return nil
	}
	v, err := p.value(&o.ReplacementTrigger)
	if err != nil {
		return err
	}
	req.Dependencies = union(req.Dependencies, dependencies(v))
	req.ReplacementTrigger, err = plugin.MarshalPropertyValue("replacementTrigger", v, marshal(false))
	return err
}

// relate sets the options that name other resources.
func (o *options) relate(p *player, req *rpc.RegisterResourceRequest) (err error) {
	req.Parent = p.root
	if o.Parent != "" {
		if req.Parent, err = p.urn(o.Parent); err != nil {
			return err
		}
	}
	depends, err := p.urns(o.DependsOn)
	if err != nil {
		return err
	}
	req.Dependencies = union(req.Dependencies, depends)
	if o.DeletedWith != "" {
		if req.DeletedWith, err = p.urn(o.DeletedWith); err != nil {
			return err
		}
	}
	if req.ReplaceWith, err = p.urns(o.ReplaceWith); err != nil {
		return err
	}
	for _, a := range o.Aliases {
		alias, err := a.spec(p)
		if err != nil {
			return err
		}
		req.Aliases = append(req.Aliases, alias)
	}
	return nil
}

func (a aliasOption) spec(p *player) (*rpc.Alias, error) {
	if a.URN != "" {
		urn, err := p.text(a.URN)
		return &rpc.Alias{Alias: &rpc.Alias_Urn{Urn: urn}}, err
	}
	spec := &rpc.Alias_Spec{Name: a.Name, Type: a.Type, Stack: a.Stack, Project: a.Project}
	switch {
	case a.NoParent:
		spec.Parent = &rpc.Alias_Spec_NoParent{NoParent: true}
	case a.Parent != "":
		parent, err := p.urn(a.Parent)
		if err != nil {
			return nil, err
		}
		spec.Parent = &rpc.Alias_Spec_ParentUrn{ParentUrn: parent}
	}
	return &rpc.Alias{Alias: &rpc.Alias_Spec_{Spec: spec}}, nil
}

// provide sets the provider, its own or the one that its parent has for its package, and what its children inherit.
func (o *options) provide(p *player, m *made, req *rpc.RegisterResourceRequest) (err error) {
	m.providers = map[string]string{}
	if o.Parent != "" && !strings.HasPrefix(o.Parent, "urn:") && o.Parent != "stack" {
		parent, err := p.await(o.Parent)
		if err != nil {
			return err
		}
		maps.Copy(m.providers, parent.providers)
	}
	for pkg, name := range o.Providers {
		if m.providers[pkg], err = p.provider(name); err != nil {
			return err
		}
	}
	if o.Provider != "" {
		if m.providers[packageOf(req.Type)], err = p.provider(o.Provider); err != nil {
			return err
		}
	}
	if strings.HasPrefix(req.Type, "pulumi:providers:") {
		return nil
	}
	if req.Custom || req.Remote || o.Provider != "" {
		req.Provider = m.providers[packageOf(req.Type)]
	}
	if !req.Custom {
		req.Providers = m.providers
	}
	return nil
}
