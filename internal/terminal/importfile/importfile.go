// Package importfile reads and writes the files that list resources to import, in the format of Pulumi's import.
package importfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/pcl"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Placeholder stands for the id of a resource in a file that a preview has written.
const Placeholder = "<PLACEHOLDER>"

// File lists resources. Its names are those of variables in a program: NameTable has those of stored resources, to
// which the listed ones may refer.
type File struct {
	NameTable map[string]urn.URN `json:"nameTable,omitempty"`
	Resources []Resource         `json:"resources,omitempty"`

	// What Pulumi's files may have and this service does not read yet.
	Schema         string          `json:"$schema,omitempty"` // ignored
	ProviderInputs json.RawMessage `json:"providerInputs,omitempty"`
}

// Resource is an entry of a file. LogicalName is the name in the URN; it and Name default to each other.
type Resource struct {
	Type              string          `json:"type"`
	Name              string          `json:"name"`
	LogicalName       string          `json:"logicalName,omitempty"`
	ID                string          `json:"id,omitempty"`
	Parent            string          `json:"parent,omitempty"`
	Provider          string          `json:"provider,omitempty"`
	Version           string          `json:"version,omitempty"`
	PluginDownloadURL string          `json:"pluginDownloadUrl,omitempty"`
	Properties        []string        `json:"properties,omitempty"`
	Component         bool            `json:"component,omitempty"`
	Remote            bool            `json:"remote,omitempty"`
	Inputs            json.RawMessage `json:"inputs,omitempty"` // of a provider

	// What Pulumi's files may have and this service does not read yet.
	Outputs          json.RawMessage `json:"outputs,omitempty"`
	Parameterization json.RawMessage `json:"parameterization,omitempty"`
	Extension        json.RawMessage `json:"extension,omitempty"`
}

// Parse reads the text of a file. A field that no version of the format has is an error, so that a misspelt one is not
// ignored.
func Parse(text []byte) (File, error) {
	var f File
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&f); err != nil {
		return f, invalid("it is not an import file: %w", err)
	}
	return f, nil
}

// Encode returns the text of the file.
func (f File) Encode() ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "    ")
	err := encoder.Encode(f)
	return b.Bytes(), err
}

// Resolve returns what a file imports into a stack, parents and providers before what refers to them, and the names of
// variables by URN.
func (f File) Resolve(stack deployments.StackName, protect bool) ([]deployments.Import, map[string]string, error) {
	r := resolution{
		stack: stack, protect: protect, file: f, named: map[string][]int{}, urns: make([]urn.URN, len(f.Resources)),
		variables: map[string]string{},
	}
	if len(f.ProviderInputs) > 0 {
		return nil, nil, invalid("providerInputs are not supported: list the provider in resources, with its inputs")
	}
	for name, u := range f.NameTable {
		if !u.IsValid() {
			return nil, nil, invalid("%q of nameTable is not a URN: %s", name, u)
		}
		r.variables[string(u)] = name
	}
	for n := range f.Resources {
		entry := &r.file.Resources[n]
		if entry.LogicalName == "" {
			entry.LogicalName = entry.Name
		}
		if entry.Name == "" {
			entry.Name = entry.LogicalName
		}
		if err := entry.check(n); err != nil {
			return nil, nil, err
		}
		r.named[entry.Name] = append(r.named[entry.Name], n)
	}
	for n := range f.Resources {
		if err := r.resolve(n, nil); err != nil {
			return nil, nil, err
		}
	}
	r.nameVariables()
	return r.imports, r.variables, nil
}

// String names an entry in messages.
func (e Resource) String() string { return strings.TrimSpace(fmt.Sprintf("%s %s", e.Type, e.Name)) }

// check reports what an entry lacks, or has and is not supported. What a request may have, its service checks.
func (e Resource) check(n int) error {
	for field, value := range map[string]json.RawMessage{
		"outputs": e.Outputs, "parameterization": e.Parameterization, "extension": e.Extension,
	} {
		if len(value) > 0 {
			return invalid("%s has %s, which are not supported yet", e, field)
		}
	}
	switch {
	case e.Type == "":
		return invalid("resource %d of the file, %s, has no type", n+1, e)
	case e.Name == "":
		return invalid("resource %d of the file, %s, has no name", n+1, e)
	case e.ID == Placeholder:
		return invalid("%s still has %s as its id; write the id under which it exists, or remove it from the file", e,
			Placeholder)
	}
	return nil
}

// resolution is Resolve at work.
type resolution struct {
	stack     deployments.StackName
	protect   bool
	file      File
	named     map[string][]int // entries by name
	urns      []urn.URN        // of the entries that are in imports
	imports   []deployments.Import
	variables map[string]string
}

// resolve adds an entry to the imports, after what it refers to; below are the entries that refer to it.
func (r *resolution) resolve(n int, below []int) error {
	entry := r.file.Resources[n]
	switch {
	case r.urns[n] != "":
		return nil
	case slices.Contains(below, n):
		return invalid("%s is its own parent or provider", entry)
	}
	in := deployments.Import{
		Type: entry.Type, Name: entry.LogicalName, ID: entry.ID, Version: entry.Version,
		PluginDownloadURL: entry.PluginDownloadURL, Properties: entry.Properties, Inputs: string(entry.Inputs),
		Component: entry.Component, Remote: entry.Remote, Protect: r.protect,
	}
	if in.IsProvider() {
		in.Protect = false
	}
	for _, ref := range []struct {
		what, name string
		to         *string
	}{{"parent", entry.Parent, &in.Parent}, {"provider", entry.Provider, &in.Provider}} {
		if ref.name == "" {
			continue
		}
		u, err := r.find(ref.what, ref.name, entry, append(below, n))
		if err != nil {
			return err
		}
		*ref.to = string(u)
	}
	r.urns[n] = in.URN(r.stack)
	r.imports = append(r.imports, in)
	return nil
}

// find returns the URN of what an entry names as its parent or provider.
func (r *resolution) find(what, name string, by Resource, below []int) (urn.URN, error) {
	if u, ok := r.file.NameTable[name]; ok {
		return u, nil
	}
	switch candidates := r.named[name]; len(candidates) {
	case 0:
		return "", invalid("the %s of %s, %q, is neither in nameTable nor in resources", what, by, name)
	case 1:
		err := r.resolve(candidates[0], below)
		return r.urns[candidates[0]], err
	default:
		return "", invalid("the %s of %s, %q, is the name of several resources; give each another name", what, by, name)
	}
}

// nameVariables gives every import a variable: its name as far as an identifier may have it, and different from others.
func (r *resolution) nameVariables() {
	taken := map[string]bool{}
	for _, u := range slices.Sorted(maps.Keys(r.variables)) {
		r.variables[u] = unique(identifier(r.variables[u]), taken)
	}
	for n, entry := range r.file.Resources {
		if _, stored := r.variables[string(r.urns[n])]; !stored {
			r.variables[string(r.urns[n])] = unique(identifier(entry.Name), taken)
		}
	}
}

// identifier replaces what no identifier has.
func identifier(name string) string {
	text := strings.Map(func(r rune) rune {
		if pcl.IsIdentifier("a" + string(r)) {
			return r
		}
		return '_'
	}, name)
	if !pcl.IsIdentifier(text) {
		text = "_" + text
	}
	return text
}

// unique appends a number to a name that is taken, and takes it.
func unique(name string, taken map[string]bool) string {
	free := name
	for n := 2; taken[free]; n++ {
		free = fmt.Sprintf("%s%d", name, n)
	}
	taken[free] = true
	return free
}

func invalid(format string, args ...any) error {
	return deployments.Errorf(deployments.CodeInvalid, format, args...)
}
