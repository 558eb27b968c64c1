// Package compare asks providers how resources differ from what is wanted, and says it in the terms of the core.
package compare

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/properties"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// InitErrorKey is the property that stands for a failed initialisation in a diff.
const InitErrorKey = "#initerror"

// Differ is the Diff of a provider.
type Differ interface {
	Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error)
}

// Resource is a stored resource and its desired inputs.
type Resource struct {
	URN                              urn.URN
	ID                               string
	OldInputs, OldOutputs, NewInputs resource.PropertyMap
	IgnoreChanges                    []string
	Unknowns                         bool // NewInputs may hold unknown values
}

// Diff asks the provider how the resource differs. If the provider cannot say, the inputs are compared; that a value is
// a secret now, or none any more, is no difference.
func (c Resource) Diff(ctx context.Context, p Differ) (plugin.DiffResult, error) {
	d, err := p.Diff(ctx, plugin.DiffRequest{
		URN: c.URN, Name: c.URN.Name(), Type: c.URN.Type(), ID: resource.ID(c.ID),
		OldInputs: c.OldInputs, OldOutputs: c.OldOutputs, NewInputs: c.NewInputs,
		AllowUnknowns: c.Unknowns, IgnoreChanges: c.IgnoreChanges,
	})
	if err != nil || d.Changes != plugin.DiffUnknown {
		return d, err
	}
	news, _ := properties.IgnoreChanges(c.NewInputs, c.OldInputs, c.IgnoreChanges)
	changes := revealed(c.OldInputs).Diff(revealed(news))
	if !changes.AnyChanges() {
		d.Changes = plugin.DiffNone
		return d, nil
	}
	d.Changes = plugin.DiffSome
	d.ChangedKeys = changes.ChangedKeys()
	d.DetailedDiff = plugin.NewDetailedDiffFromObjectDiff(changes, true)
	return d, nil
}

// revealed returns properties with their secrets and outputs as ordinary values.
func revealed(m resource.PropertyMap) resource.PropertyMap {
	return properties.Reveal(resource.NewProperty(m)).ObjectValue()
}

// Unavailable reports whether a provider could not compare because its own configuration is not known yet.
func Unavailable(err error) bool {
	var d plugin.DiffUnavailableError
	return errors.As(err, &d)
}

// ReplaceOnChanges makes changes below the paths force a replacement.
func ReplaceOnChanges(d plugin.DiffResult, paths []string, initFailed bool) (plugin.DiffResult, error) {
	if d.Changes != plugin.DiffSome && !initFailed {
		return d, nil
	}
	var parsed []resource.PropertyPath
	for _, p := range paths {
		path, err := resource.ParsePropertyPath(p)
		if err != nil {
			return d, err
		}
		parsed = append(parsed, path)
	}
	forced := func(at string) bool {
		path, err := resource.ParsePropertyPath(at)
		return err == nil && slices.ContainsFunc(parsed, func(p resource.PropertyPath) bool { return p.Contains(path) })
	}
	d.ReplaceKeys = slices.Clone(d.ReplaceKeys)
	d.DetailedDiff = maps.Clone(d.DetailedDiff)
	for path, change := range d.DetailedDiff {
		if forced(path) {
			d.DetailedDiff[path] = change.ToReplace()
		}
	}
	for _, k := range d.ChangedKeys {
		if forced(string(k)) {
			d.ReplaceKeys = append(d.ReplaceKeys, k)
		}
	}
	if initFailed && forced(InitErrorKey) {
		d.Changes = plugin.DiffSome
		d.ReplaceKeys = append(d.ReplaceKeys, InitErrorKey)
		if d.DetailedDiff != nil {
			d.DetailedDiff[InitErrorKey] = plugin.PropertyDiff{Kind: plugin.DiffUpdateReplace}
		}
	}
	d.ReplaceKeys = properties.Sorted(d.ReplaceKeys)
	return d, nil
}

// DiffOf converts a provider's diff to the engine's.
func DiffOf(d plugin.DiffResult) engine.Diff {
	e := engine.Diff{
		Change: engine.ChangeNone, DeleteBeforeReplace: d.DeleteBeforeReplace,
		ReplaceKeys: Names(d.ReplaceKeys), ChangedKeys: Names(d.ChangedKeys),
		StableKeys: Names(d.StableKeys),
	}
	switch {
	case d.Changes != plugin.DiffSome:
	case d.Replace():
		e.Change = engine.ChangeReplace
	default:
		e.Change = engine.ChangeUpdate
	}
	for _, path := range slices.Sorted(maps.Keys(d.DetailedDiff)) {
		change := d.DetailedDiff[path]
		e.Detailed = append(e.Detailed, engine.PropertyDiff{
			Path: path, Kind: change.Kind.String(), InputDiff: change.InputDiff,
		})
	}
	return e
}

// FailuresOf converts failed checks to the engine's.
func FailuresOf(failures []plugin.CheckFailure) []engine.CheckFailure {
	var list []engine.CheckFailure
	for _, f := range failures {
		list = append(list, engine.CheckFailure{Property: string(f.Property), Reason: f.Reason})
	}
	return list
}

// Names converts property keys.
func Names(keys []resource.PropertyKey) []string {
	var names []string
	for _, k := range keys {
		names = append(names, string(k))
	}
	return names
}
