package statestore

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Deployment versions: 3, or 4 when the deployment uses features that a reader must support.
const (
	deploymentVersion         = 3
	deploymentVersionFeatures = 4
)

// Features of a deployment, by Pulumi's names.
const (
	featureRefresh     = "refreshBeforeUpdate"
	featureViews       = "views"
	featureHooks       = "hooks"
	featureTaint       = "taint"
	featureReplaceWith = "replaceWith"
	featureSnippets    = "snippets-prototype"
	featureExtensions  = "extensionParameterization"
	featureByteString  = "byteString"
)

var supportedFeatures = []string{
	featureRefresh, featureViews, featureHooks, featureTaint, featureReplaceWith, featureSnippets, featureExtensions,
	featureByteString,
}

// deploymentFile is apitype.UntypedDeployment with the deployment inside.
type deploymentFile struct {
	Version    int        `json:"version"`
	Features   []string   `json:"features,omitempty"`
	Deployment deployment `json:"deployment"`
}

// deployment is apitype.DeploymentV3 with unparsed resources.
type deployment struct {
	Manifest          apitype.ManifestV1          `json:"manifest"`
	SecretsProviders  *apitype.SecretsProvidersV1 `json:"secrets_providers,omitempty"`
	Resources         []json.RawMessage           `json:"resources,omitempty"`
	PendingOperations []storedOperation           `json:"pending_operations,omitempty"`
	Metadata          apitype.SnapshotMetadataV1  `json:"metadata"`
	Snippets          json.RawMessage             `json:"snippets,omitempty"`
	Extensions        map[string]json.RawMessage  `json:"extensions,omitempty"` // apitype.Extension, by extensionRef
}

// storedOperation is apitype.OperationV2 with fields that only this service writes: the seed of the resource's name,
// whether the answer of a create is known, and the error with which it was lost (see engine.PendingOperation).
type storedOperation struct {
	Resource storedResource `json:"resource"`
	Type     string         `json:"type"`
	Seed     []byte         `json:"seed,omitempty"`
	Done     *bool          `json:"done,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// done reports whether the answer of a create is known. Older releases stored no such field: then the id tells, except
// for a provider, which has an id from the start.
func (o *storedOperation) done() bool {
	if o.Done != nil {
		return *o.Done
	}
	return o.Type == "creating" && o.Resource.ID != "" && !engine.IsProvider(o.Resource.Type)
}

// storedResource is apitype.ResourceV3; fields that no header has are not parsed.
type storedResource struct {
	URN                     urn.URN              `json:"urn"`
	Custom                  bool                 `json:"custom"`
	Delete                  bool                 `json:"delete,omitempty"`
	ID                      string               `json:"id,omitempty"`
	Type                    tokens.Type          `json:"type"`
	Inputs                  json.RawMessage      `json:"inputs,omitempty"`
	Outputs                 json.RawMessage      `json:"outputs,omitempty"`
	Parent                  urn.URN              `json:"parent,omitempty"`
	Protect                 bool                 `json:"protect,omitempty"`
	Taint                   bool                 `json:"taint,omitempty"`
	External                bool                 `json:"external,omitempty"`
	Dependencies            []urn.URN            `json:"dependencies,omitempty"`
	InitErrors              []string             `json:"initErrors,omitempty"`
	Provider                string               `json:"provider,omitempty"`
	PropertyDependencies    map[string][]urn.URN `json:"propertyDependencies,omitempty"`
	PendingReplacement      bool                 `json:"pendingReplacement,omitempty"`
	AdditionalSecretOutputs []string             `json:"additionalSecretOutputs,omitempty"`
	Aliases                 []urn.URN            `json:"aliases,omitempty"`
	CustomTimeouts          *engine.Timeouts     `json:"customTimeouts,omitempty"`
	ImportID                string               `json:"importID,omitempty"`
	RetainOnDelete          bool                 `json:"retainOnDelete,omitempty"`
	DeletedWith             urn.URN              `json:"deletedWith,omitempty"`
	ReplaceWith             []urn.URN            `json:"replaceWith,omitempty"`
	Created                 string               `json:"created,omitempty"`
	Modified                string               `json:"modified,omitempty"`
	SourcePosition          string               `json:"sourcePosition,omitempty"`
	IgnoreChanges           []string             `json:"ignoreChanges,omitempty"`
	HideDiff                []string             `json:"hideDiff,omitempty"`
	ReplaceOnChanges        []string             `json:"replaceOnChanges,omitempty"`
	ReplacementTrigger      json.RawMessage      `json:"replacementTrigger,omitempty"`
	RefreshBeforeUpdate     bool                 `json:"refreshBeforeUpdate,omitempty"`
	ResourceHooks           engine.Hooks         `json:"resourceHooks,omitempty"`
	ViewOf                  urn.URN              `json:"viewOf,omitempty"`
	ExtensionRef            string               `json:"extensionRef,omitempty"`
	restFields
}

// restFields are stored and restored unchanged. See engine.State.Rest.
type restFields struct {
	StackTrace json.RawMessage `json:"stackTrace,omitempty"`
	SnippetID  string          `json:"snippetID,omitempty"`
}

func (r restFields) empty() bool {
	return r.StackTrace == nil && r.SnippetID == ""
}

// header returns the engine's header of a resource, without key and bags.
func (r *storedResource) header() engine.State {
	s := engine.State{
		URN: r.URN, Type: r.Type, Custom: r.Custom, Delete: r.Delete, ID: r.ID, Parent: r.Parent, Protect: r.Protect,
		Taint: r.Taint, External: r.External, Dependencies: some(r.Dependencies), InitErrors: some(r.InitErrors),
		Provider: r.Provider, PendingReplacement: r.PendingReplacement,
		AdditionalSecretOutputs: some(r.AdditionalSecretOutputs), Aliases: some(r.Aliases), Timeouts: r.CustomTimeouts,
		ImportID: r.ImportID, RetainOnDelete: r.RetainOnDelete, DeletedWith: r.DeletedWith,
		ReplaceWith:   some(r.ReplaceWith),
		IgnoreChanges: some(r.IgnoreChanges), HideDiff: some(r.HideDiff), ReplaceOnChanges: some(r.ReplaceOnChanges),
		RefreshBeforeUpdate: r.RefreshBeforeUpdate, Created: r.Created, Modified: r.Modified,
		SourcePosition: r.SourcePosition, Hooks: r.ResourceHooks, ViewOf: r.ViewOf,
	}
	if s.Timeouts != nil && *s.Timeouts == (engine.Timeouts{}) {
		s.Timeouts = nil
	}
	for property, urns := range r.PropertyDependencies {
		s.PropertyDependencies = append(s.PropertyDependencies, engine.PropertyDependency{Property: property,
			URNs: urns})
	}
	sort.Slice(s.PropertyDependencies, func(i, j int) bool {
		return s.PropertyDependencies[i].Property < s.PropertyDependencies[j].Property
	})
	return s
}

// storedHeader is the inverse of header.
func storedHeader(s engine.State) storedResource {
	r := storedResource{
		URN: s.URN, Type: s.Type, Custom: s.Custom, Delete: s.Delete, ID: s.ID, Parent: s.Parent, Protect: s.Protect,
		Taint: s.Taint, External: s.External, Dependencies: s.Dependencies, InitErrors: s.InitErrors,
		Provider: s.Provider, PendingReplacement: s.PendingReplacement,
		AdditionalSecretOutputs: s.AdditionalSecretOutputs, Aliases: s.Aliases, CustomTimeouts: s.Timeouts,
		ImportID: s.ImportID, RetainOnDelete: s.RetainOnDelete, DeletedWith: s.DeletedWith, ReplaceWith: s.ReplaceWith,
		IgnoreChanges: s.IgnoreChanges, HideDiff: s.HideDiff, ReplaceOnChanges: s.ReplaceOnChanges,
		RefreshBeforeUpdate: s.RefreshBeforeUpdate, Created: s.Created, Modified: s.Modified,
		SourcePosition: s.SourcePosition, ResourceHooks: s.Hooks, ViewOf: s.ViewOf,
		ExtensionRef: s.Extension.Digest,
	}
	if len(s.PropertyDependencies) > 0 {
		r.PropertyDependencies = make(map[string][]urn.URN, len(s.PropertyDependencies))
		for _, p := range s.PropertyDependencies {
			urns := p.URNs
			if urns == nil {
				urns = []urn.URN{}
			}
			r.PropertyDependencies[p.Property] = urns
		}
	}
	return r
}

// some returns nil for an empty list, as in a header that was sent as JSON.
func some[T any](list []T) []T {
	if len(list) == 0 {
		return nil
	}
	return list
}

// features adds the features that a reader of the resource must support.
func (r *storedResource) features(add func(string)) {
	for _, f := range []struct {
		name string
		uses bool
	}{
		{featureRefresh, r.RefreshBeforeUpdate}, {featureViews, r.ViewOf != ""},
		{featureHooks, len(r.ResourceHooks) > 0},
		{featureTaint, r.Taint}, {featureReplaceWith, len(r.ReplaceWith) > 0},
		{featureExtensions, r.ExtensionRef != ""},
		{featureSnippets, r.SnippetID != ""},
	} {
		if f.uses {
			add(f.name)
		}
	}
}

// takeApart reads deployment JSON of any version. Its resources are parts of the text, so they take no memory of their
// own.
func takeApart(data []byte) (f deploymentFile, err error) {
	if !json.Valid(data) {
		return f, jsonError(data, json.Unmarshal(data, &struct{}{}))
	}
	var resources []json.RawMessage
	rest := bytes.NewBuffer(nil)
	err = members(rest, data, func(name string, value []byte) error {
		if name != "deployment" || !rawjson.IsObject(value) {
			rest.Write(value)
			return nil
		}
		return members(rest, value, func(name string, value []byte) error {
			if name != "resources" || !rawjson.IsArray(value) {
				rest.Write(value)
				return nil
			}
			rest.WriteString("[]")
			resources = nil
			for raw := range rawjson.Elements(value) {
				resources = append(resources, raw)
			}
			return nil
		})
	})
	if err == nil {
		err = json.Unmarshal(rest.Bytes(), &f)
	}
	if len(f.Deployment.Resources) > 0 { // encoding/json ignores case
		return f, errors.New("it has its resources twice")
	}
	f.Deployment.Resources = resources
	return f, err
}

// members writes an object whose values are written by a function; what is no object, as it is.
func members(out *bytes.Buffer, object []byte, value func(name string, value []byte) error) error {
	if !rawjson.IsObject(object) {
		out.Write(object)
		return nil
	}
	between := byte('{')
	for name, raw := range rawjson.Members(object) {
		quoted, err := json.Marshal(name)
		if err != nil {
			return err
		}
		out.WriteByte(between)
		out.Write(quoted)
		out.WriteByte(':')
		if err := value(name, raw); err != nil {
			return err
		}
		between = ','
	}
	if between == '{' {
		out.WriteByte('{')
	}
	out.WriteByte('}')
	return nil
}

// parseFile reads deployment JSON of a supported version and with supported features, without its resources.
func parseFile(data []byte) (deploymentFile, error) {
	f, err := takeApart(data)
	var wrongType *json.UnmarshalTypeError
	switch { // fields of another version may have other types, so the version is checked first
	case err != nil && !errors.As(err, &wrongType):
		return f, err
	case f.Version > deploymentVersionFeatures:
		return f, fmt.Errorf("it has deployment version %d; this deployctl knows up to %d: use a newer one",
			f.Version, deploymentVersionFeatures)
	case f.Version < deploymentVersion:
		return f, fmt.Errorf("it has deployment version %d, which is too old; export it again with a current "+
			"pulumi", f.Version)
	case err != nil:
		return f, err
	}
	for _, name := range f.Features {
		if !slices.Contains(supportedFeatures, name) {
			return f, fmt.Errorf("it uses the feature %q, which this deployctl does not know: use a newer one", name)
		}
	}
	return f, nil
}

// parseDeployment reads deployment JSON of a supported version and with supported features.
func parseDeployment(data []byte) (deploymentFile, []storedResource, error) {
	f, err := parseFile(data)
	if err != nil {
		return f, nil, err
	}
	resources := make([]storedResource, len(f.Deployment.Resources))
	err = parallel(len(resources), func(i int) error {
		if err := json.Unmarshal(f.Deployment.Resources[i], &resources[i]); err != nil {
			return fmt.Errorf("resource %d: %w", i, err)
		}
		return nil
	})
	return f, resources, err
}

// jsonError adds the line in which the JSON is broken.
func jsonError(data []byte, err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		line := 1
		for _, c := range data[:min(int(syntax.Offset), len(data))] {
			if c == '\n' {
				line++
			}
		}
		return fmt.Errorf("line %d: %w", line, err)
	}
	return err
}
