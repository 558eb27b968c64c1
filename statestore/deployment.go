package statestore

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sort"
	"unique"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Deployment versions: 3, or 4 when the deployment uses features that a reader must support.
const (
	deploymentVersion         = 3
	deploymentVersionFeatures = 4
)

// Features that are not of resources alone.
const (
	featureSnippets   = "snippets-prototype"
	featureByteString = "byteString"
)

// A feature is one that a reader of a deployment must support, by Pulumi's name. Every other is refused.
type feature struct {
	name string
	// uses reports that a resource needs it; nil: values do.
	uses func(*storedResource) bool
	// treatment says what an update makes of it.
	treatment string
}

const carriedOut = "carried out"

var knownFeatures = []feature{
	{"refreshBeforeUpdate", func(r *storedResource) bool { return r.RefreshBeforeUpdate }, carriedOut},
	{"views", func(r *storedResource) bool { return r.ViewOf != "" }, carriedOut},
	{"hooks", func(r *storedResource) bool { return len(r.ResourceHooks) > 0 }, carriedOut},
	{"taint", func(r *storedResource) bool { return r.Taint }, carriedOut},
	{"replaceWith", func(r *storedResource) bool { return len(r.ReplaceWith) > 0 }, carriedOut},
	{"extensionParameterization", func(r *storedResource) bool { return r.ExtensionRef != "" }, carriedOut},
	{featureSnippets, func(r *storedResource) bool { return r.SnippetID != "" },
		"kept: an `up` leaves alone what snippets have made, with what it needs, and says so; `destroy` deletes it"},
	{featureByteString, nil, carriedOut},
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
	Since    int            `json:"since,omitempty"`
	Done     *bool          `json:"done,omitempty"`
	Reason   string         `json:"reason,omitempty"`
}

// done reports whether the answer of a create is known. Older releases stored no such field: then the id tells, except
// for a provider, which has an id from the start.
func (o *storedOperation) done() bool {
	if o.Done != nil {
		return *o.Done
	}
	return o.Type == "creating" && o.Resource.ID != "" && !snapshot.IsProvider(o.Resource.Type)
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
	SnippetID               string               `json:"snippetID,omitempty"`
	restFields
}

// restFields are stored and restored unchanged. See engine.State.Rest.
type restFields struct {
	StackTrace json.RawMessage `json:"stackTrace,omitempty"`
}

func (r restFields) empty() bool {
	return r.StackTrace == nil
}

// header returns the engine's header of a resource, without key and bags.
func (r *storedResource) header() engine.State {
	s := engine.State{
		URN: unique.Make(r.URN).Value(), Type: unique.Make(r.Type).Value(), Custom: r.Custom, Delete: r.Delete, ID: r.ID,
		Parent: unique.Make(r.Parent).Value(), Protect: r.Protect,
		Taint: r.Taint, External: r.External, Dependencies: once(some(r.Dependencies)), InitErrors: some(r.InitErrors),
		Provider: unique.Make(r.Provider).Value(), PendingReplacement: r.PendingReplacement,
		AdditionalSecretOutputs: some(r.AdditionalSecretOutputs), Aliases: some(r.Aliases), Timeouts: r.CustomTimeouts,
		ImportID: r.ImportID, RetainOnDelete: r.RetainOnDelete, DeletedWith: r.DeletedWith,
		ReplaceWith:   some(r.ReplaceWith),
		IgnoreChanges: some(r.IgnoreChanges), HideDiff: some(r.HideDiff), ReplaceOnChanges: some(r.ReplaceOnChanges),
		RefreshBeforeUpdate: r.RefreshBeforeUpdate, Created: r.Created, Modified: r.Modified,
		SourcePosition: r.SourcePosition, Hooks: r.ResourceHooks, ViewOf: r.ViewOf, Snippet: r.SnippetID,
	}
	if s.Timeouts != nil && *s.Timeouts == (engine.Timeouts{}) {
		s.Timeouts = nil
	}
	for property, urns := range r.PropertyDependencies {
		s.PropertyDependencies = append(s.PropertyDependencies, engine.PropertyDependency{Property: property,
			URNs: once(urns)})
	}
	sort.Slice(s.PropertyDependencies, func(i, j int) bool {
		return s.PropertyDependencies[i].Property < s.PropertyDependencies[j].Property
	})
	return s
}

// once replaces each URN by the text that all others like it have: of a state in which many resources depend on many,
// the URNs would take far more than everything else.
func once(urns []urn.URN) []urn.URN {
	for i, of := range urns {
		urns[i] = unique.Make(of).Value()
	}
	return urns
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
		ExtensionRef: s.Extension.Digest, SnippetID: s.Snippet,
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
	for _, f := range knownFeatures {
		if f.uses != nil && f.uses(r) {
			add(f.name)
		}
	}
}

// takeApart reads deployment JSON of any version. Its resources are parts of the text, so they take no memory of their
// own. TooLarge: it is written by a client, and all else would take too much of that.
func takeApart(ctx context.Context, text deploymentText, written bool) (f deploymentFile, err error) {
	if err := text.check(); err != nil {
		return f, err
	}
	lists := map[string][]json.RawMessage{"resources": nil, "pending_operations": nil}
	rest := bytes.NewBuffer(nil)
	err = members(rest, text.around, func(name string, value []byte) error {
		if name == "deployment" && text.deployment != nil {
			value = text.deployment
		}
		if name != "deployment" || !rawjson.IsObject(value) {
			rest.Write(value)
			return nil
		}
		return members(rest, value, func(name string, value []byte) (err error) {
			if _, apart := lists[name]; !apart || !rawjson.IsArray(value) {
				rest.Write(value)
				return nil
			}
			rest.WriteString("[]")
			lists[name], err = elements(value)
			return err
		})
	})
	if err == nil && written {
		err = affordable("what is no resource of the deployment", rest.Bytes())
	}
	if err == nil {
		err = mempool.Take(ctx, rawjson.Cost(rest.Bytes()))
	}
	if err == nil {
		err = rawjson.Unmarshal(rest.Bytes(), &f)
	}
	if len(f.Deployment.Resources)+len(f.Deployment.PendingOperations) > 0 { // encoding/json ignores case
		return f, errors.New("it has its resources or pending operations twice")
	}
	f.Deployment.Resources = lists["resources"]
	if err == nil {
		f.Deployment.PendingOperations, err = operations(ctx, lists["pending_operations"], written)
	}
	return f, err
}

// elements returns the elements of an array of resources or operations. There are not many more of them than a text of
// this length can have.
func elements(array []byte) (list []json.RawMessage, err error) {
	const few, shortest = 1000, 16
	for raw := range rawjson.Elements(array) {
		if len(list) > few+len(array)/shortest {
			return nil, errors.New("it has resources that are none")
		}
		list = append(list, raw)
	}
	return list, nil
}

// operations reads pending operations.
func operations(ctx context.Context, list []json.RawMessage, written bool) ([]storedOperation, error) {
	if len(list) == 0 {
		return nil, nil
	}
	if len(list) > deployments.MaxClientResources {
		return nil, deployments.TooLarge("it has %d pending operations; at most %d are possible", len(list),
			deployments.MaxClientResources)
	}
	needed := int64(len(list)) * headerCost
	for _, raw := range list {
		needed += headerTimes * int64(len(raw))
	}
	if err := mempool.Take(ctx, needed); err != nil {
		return nil, err
	}
	out := make([]storedOperation, len(list))
	for i, raw := range list {
		if written {
			if err := affordable("a pending operation", raw); err != nil {
				return nil, err
			}
		}
		if err := rawjson.Unmarshal(raw, &out[i]); err != nil {
			return nil, fmt.Errorf("pending operation %d: %w", i, err)
		}
	}
	return out, nil
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
func parseFile(ctx context.Context, text deploymentText, written bool) (deploymentFile, error) {
	f, err := takeApart(ctx, text, written)
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
		if !slices.ContainsFunc(knownFeatures, func(f feature) bool { return f.name == name }) {
			return f, fmt.Errorf("it uses the feature %q, which this deployctl does not know: use a newer one", name)
		}
	}
	return f, nil
}

// parseDeployment reads deployment JSON of a supported version and with supported features.
func parseDeployment(ctx context.Context, data []byte) (deploymentFile, []storedResource, error) {
	f, err := parseFile(ctx, deploymentText{around: data}, false)
	if err == nil {
		err = mempool.Take(ctx, headerCost*int64(len(f.Deployment.Resources)))
	}
	if err != nil {
		return f, nil, err
	}
	resources := make([]storedResource, len(f.Deployment.Resources))
	err = parallel(len(resources), func(i int) error {
		if err := rawjson.Unmarshal(f.Deployment.Resources[i], &resources[i]); err != nil {
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
