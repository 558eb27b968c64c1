package activities

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

// initErrorKey is the property that stands for a failed initialisation in a diff.
const initErrorKey = "#initerror"

// differ is the Diff of a provider.
type differ interface {
	Diff(context.Context, plugin.DiffRequest) (plugin.DiffResponse, error)
}

// comparison is a stored resource and its desired inputs.
type comparison struct {
	urn                              urn.URN
	id                               string
	oldInputs, oldOutputs, newInputs resource.PropertyMap
	ignoreChanges                    []string
	unknowns                         bool // newInputs may hold unknown values
}

// diff asks the provider how the resource differs. If the provider cannot say, the inputs are compared; that a value is
// a secret now, or none any more, is no difference.
func (c comparison) diff(ctx context.Context, p differ) (plugin.DiffResult, error) {
	d, err := p.Diff(ctx, plugin.DiffRequest{
		URN: c.urn, Name: c.urn.Name(), Type: c.urn.Type(), ID: resource.ID(c.id),
		OldInputs: c.oldInputs, OldOutputs: c.oldOutputs, NewInputs: c.newInputs,
		AllowUnknowns: c.unknowns, IgnoreChanges: c.ignoreChanges,
	})
	if err != nil || d.Changes != plugin.DiffUnknown {
		return d, err
	}
	news, _ := properties.IgnoreChanges(c.newInputs, c.oldInputs, c.ignoreChanges)
	changes := revealed(c.oldInputs).Diff(revealed(news))
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

// unavailable reports whether a provider could not compare because its own configuration is not known yet.
func unavailable(err error) bool {
	var d plugin.DiffUnavailableError
	return errors.As(err, &d)
}

// replaceOnChanges makes changes below the paths force a replacement.
func replaceOnChanges(d plugin.DiffResult, paths []string, initFailed bool) (plugin.DiffResult, error) {
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
	if initFailed && forced(initErrorKey) {
		d.Changes = plugin.DiffSome
		d.ReplaceKeys = append(d.ReplaceKeys, initErrorKey)
		if d.DetailedDiff != nil {
			d.DetailedDiff[initErrorKey] = plugin.PropertyDiff{Kind: plugin.DiffUpdateReplace}
		}
	}
	d.ReplaceKeys = properties.Sorted(d.ReplaceKeys)
	return d, nil
}

// engineDiff converts a provider's diff to the engine's.
func engineDiff(d plugin.DiffResult) engine.Diff {
	e := engine.Diff{
		Change: engine.ChangeNone, DeleteBeforeReplace: d.DeleteBeforeReplace,
		ReplaceKeys: propertyNames(d.ReplaceKeys), ChangedKeys: propertyNames(d.ChangedKeys),
		StableKeys: propertyNames(d.StableKeys),
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

// engineFailures converts failed checks to the engine's.
func engineFailures(failures []plugin.CheckFailure) []engine.CheckFailure {
	var list []engine.CheckFailure
	for _, f := range failures {
		list = append(list, engine.CheckFailure{Property: string(f.Property), Reason: f.Reason})
	}
	return list
}

// propertyNames converts property keys.
func propertyNames(keys []resource.PropertyKey) []string {
	var names []string
	for _, k := range keys {
		names = append(names, string(k))
	}
	return names
}
