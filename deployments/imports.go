package deployments

import (
	"strings"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// MaxImports limits the resources of one import.
const MaxImports = 10_000

// Import is a resource that an update of the kind import takes into the stack. It is a resource that exists, with an
// ID; a component, which has none; or an explicit provider, which has Inputs instead.
type Import struct {
	Type string `json:"type"`
	Name string `json:"name"`
	ID   string `json:"id,omitempty"`
	// Parent and Provider are URNs, of the stack or of an earlier import. Without a Provider it is the default provider
	// of the package.
	Parent   string `json:"parent,omitempty"`
	Provider string `json:"provider,omitempty"`
	// Version and PluginDownloadURL select the plugin of the default provider, or of the provider that is imported.
	Version           string `json:"version,omitempty"`
	PluginDownloadURL string `json:"pluginDownloadURL,omitempty"`
	// Properties are the inputs to keep; empty means all that the provider has read.
	Properties []string `json:"properties,omitempty"`
	// Inputs of a provider, as a JSON object in which secrets have Pulumi's signature and a plaintext.
	Inputs    string `json:"inputs,omitempty"`
	Component bool   `json:"component,omitempty"`
	Remote    bool   `json:"remote,omitempty"` // a component that a provider constructs
	Protect   bool   `json:"protect,omitempty"`
}

// IsProvider reports whether the import makes an explicit provider.
func (i Import) IsProvider() bool { return snapshot.IsProvider(tokens.Type(i.Type)) }

// URN returns the URN that the resource gets in a stack.
func (i Import) URN(s StackName) urn.URN {
	var parent tokens.Type
	if above := urn.URN(i.Parent); above != "" && above.Type() != rootType {
		parent = above.QualifiedType()
	}
	return urn.New(tokens.QName(s.Stack), tokens.PackageName(s.Project), parent, tokens.Type(i.Type), i.Name)
}

// rootType is the type of the stack's own resource.
const rootType tokens.Type = "pulumi:pulumi:Stack"

// validateImports reports, as CodeInvalid, the first resource that cannot be imported.
func (r UpdateRequest) validateImports() error {
	switch {
	case r.Kind != engine.KindImport && len(r.Imports)+len(r.Variables) == 0:
		return nil
	case r.Kind != engine.KindImport:
		return Errorf(CodeInvalid, "only an import names resources to import")
	case len(r.Imports) == 0:
		return Errorf(CodeInvalid, "the import names no resource")
	case len(r.Imports) > MaxImports:
		return Errorf(CodeInvalid, "the request imports %d resources; at most %d are possible at a time",
			len(r.Imports), MaxImports)
	case len(r.Targets)+len(r.Excludes)+len(r.Replace) > 0, r.Refresh, r.RunProgram:
		return Errorf(CodeInvalid, "an import takes the resources that it names, and changes no other: leave out "+
			"targets, excludes, --replace, --refresh and --run-program")
	}
	if err := r.validateEachImport(); err != nil {
		return err
	}
	return r.validateVariables()
}

func (r UpdateRequest) validateEachImport() error {
	seen := make(map[urn.URN]bool, len(r.Imports))
	for _, i := range r.Imports {
		if err := i.validate(); err != nil {
			return err
		}
		u := i.URN(r.Stack)
		if seen[u] {
			return Errorf(CodeInvalid, "the request imports two resources of the URN %s; give one of them another name",
				quoted(string(u)))
		}
		seen[u] = true
	}
	return nil
}

func (i Import) validate() error {
	for what, text := range map[string]string{
		"type": i.Type, "name": i.Name, "parent": i.Parent, "provider": i.Provider, "version": i.Version,
		"download URL": i.PluginDownloadURL,
	} {
		if err := validateText(what+" of an import", text, MaxTargetLength); err != nil {
			return err
		}
	}
	if err := validateText("id of an import", i.ID, MaxResourceIDLength); err != nil {
		return err
	}
	what := quoted(i.Type + " " + i.Name)
	provider := urn.URN(i.Provider)
	switch {
	case i.Name == "" || i.Type == "" || !i.Component && strings.Count(i.Type, ":") != 2:
		return Errorf(CodeInvalid, "%s cannot be imported: write its type as PACKAGE:MODULE:TYPE, and a name", what)
	case i.Parent != "" && !urn.URN(i.Parent).IsValid():
		return Errorf(CodeInvalid, "the parent of %s, %s, is not a URN", what, quoted(i.Parent))
	case i.Provider != "" && (!provider.IsValid() || !snapshot.IsProvider(provider.Type())):
		return Errorf(CodeInvalid, "the provider of %s, %s, is not the URN of a provider", what, quoted(i.Provider))
	case i.Remote && !i.Component:
		return Errorf(CodeInvalid, "%s is marked as remote, but not as a component", what)
	case (i.Component || i.IsProvider()) && i.ID != "":
		return Errorf(CodeInvalid, "%s has an id, but components and providers have none to import", what)
	case !i.Component && !i.IsProvider() && i.ID == "":
		return Errorf(CodeInvalid, "%s needs the id under which it exists", what)
	case i.Component && i.IsProvider():
		return Errorf(CodeInvalid, "%s is a provider, and cannot be a component", what)
	case i.Inputs != "" && !i.IsProvider():
		return Errorf(CodeInvalid, "%s cannot be imported with inputs of the request: its provider reads them", what)
	}
	return nil
}

func (r UpdateRequest) validateVariables() error {
	for u, name := range r.Variables {
		if !urn.URN(u).IsValid() || len(u) > MaxTargetLength {
			return Errorf(CodeInvalid, "%s, which is to be called %s in the program, is not a URN", quoted(u),
				quoted(name))
		}
		if err := validateText("name of a variable", name, MaxTargetLength); err != nil {
			return err
		}
	}
	return nil
}
