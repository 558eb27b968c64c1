package provider

import (
	"maps"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// bare removes secrets, outputs and nulls at every depth, so that only a difference of values is a difference. A bag
// that is unknown in part stays so.
func bare(v resource.PropertyValue) resource.PropertyValue {
	v = plain(v)
	switch {
	case v.IsObject():
		return resource.NewProperty(bareMap(v.ObjectValue()))
	case v.IsArray():
		items := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, item := range v.ArrayValue() {
			items[i] = bare(item)
		}
		return resource.NewProperty(items)
	}
	return v
}

func bareMap(m properties) properties {
	out := properties{}
	for key, v := range m {
		if v := bare(v); !v.IsNull() && !resource.IsInternalPropertyKey(key) {
			out[key] = v
		}
	}
	return out
}

// diff compares inputs by their declared properties, down to the path. A value that is not known yet differs from any
// other.
func (o *object) diff(olds, news properties) map[string]plugin.PropertyDiff {
	before, after := o.declared(olds), o.declared(news)
	details := map[string]plugin.PropertyDiff{}
	for key, v := range after {
		if !v.ContainsUnknowns() {
			continue
		}
		kind := plugin.DiffUpdate
		if _, had := before[key]; !had {
			kind = plugin.DiffAdd
		}
		details[string(key)] = plugin.PropertyDiff{Kind: kind, InputDiff: true}
		delete(before, key)
		delete(after, key)
	}
	maps.Copy(details, plugin.NewDetailedDiffFromObjectDiff(before.Diff(after), true))
	for path, detail := range details {
		if o.field(topOf(path)).replace {
			details[path] = plugin.PropertyDiff{Kind: detail.Kind.AsReplace(), InputDiff: true}
		}
	}
	return details
}

// declared is a bare copy of the bag without what the struct has no field for.
func (o *object) declared(bag properties) properties {
	out := bareMap(bag)
	maps.DeleteFunc(out, func(key resource.PropertyKey, _ resource.PropertyValue) bool {
		return o.field(string(key)) == nil
	})
	return out
}

// topOf is the property at the root of a path such as tags["a.b"] or list[3].
func topOf(path string) string {
	if i := strings.IndexAny(path, ".["); i > 0 {
		return path[:i]
	}
	return path
}

// override applies a Differ's decision to the detailed diff.
func (c Change) override(details map[string]plugin.PropertyDiff) map[string]plugin.PropertyDiff {
	out := map[string]plugin.PropertyDiff{}
	for _, name := range slices.Concat(c.Updates, c.Replaces) {
		found := false
		for path, detail := range details {
			if topOf(path) == name {
				out[path], found = c.kind(name, detail.Kind), true
			}
		}
		if !found {
			out[name] = c.kind(name, plugin.DiffUpdate)
		}
	}
	return out
}

func (c Change) kind(name string, kind plugin.DiffKind) plugin.PropertyDiff {
	if slices.Contains(c.Replaces, name) {
		kind = kind.AsReplace()
	} else if kind.IsReplace() {
		kind -= plugin.DiffAddReplace - plugin.DiffAdd
	}
	return plugin.PropertyDiff{Kind: kind, InputDiff: true}
}

func diffResponse(details map[string]plugin.PropertyDiff, deleteFirst bool, stables []string) *pulumirpc.DiffResponse {
	resp := &pulumirpc.DiffResponse{
		Changes: pulumirpc.DiffResponse_DIFF_NONE, HasDetailedDiff: true, Stables: stables,
		DeleteBeforeReplace: deleteFirst, DetailedDiff: map[string]*pulumirpc.PropertyDiff{},
	}
	diffs, replaces := map[string]bool{}, map[string]bool{}
	for path, d := range details {
		resp.Changes = pulumirpc.DiffResponse_DIFF_SOME
		resp.DetailedDiff[path] = &pulumirpc.PropertyDiff{Kind: wireKind[d.Kind], InputDiff: d.InputDiff}
		diffs[topOf(path)] = true
		if d.Kind.IsReplace() {
			replaces[topOf(path)] = true
		}
	}
	resp.Diffs, resp.Replaces = slices.Sorted(maps.Keys(diffs)), slices.Sorted(maps.Keys(replaces))
	return resp
}

var wireKind = map[plugin.DiffKind]pulumirpc.PropertyDiff_Kind{
	plugin.DiffAdd:           pulumirpc.PropertyDiff_ADD,
	plugin.DiffAddReplace:    pulumirpc.PropertyDiff_ADD_REPLACE,
	plugin.DiffDelete:        pulumirpc.PropertyDiff_DELETE,
	plugin.DiffDeleteReplace: pulumirpc.PropertyDiff_DELETE_REPLACE,
	plugin.DiffUpdate:        pulumirpc.PropertyDiff_UPDATE,
	plugin.DiffUpdateReplace: pulumirpc.PropertyDiff_UPDATE_REPLACE,
}
