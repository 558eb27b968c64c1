package display

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// Change is a property that differs.
type Change struct {
	Path     string
	Old, New any // nil when it is not there
	Replaces bool
}

// changesOf lists what a step changes, sorted by path. Of creates and deletes there is nothing to compare.
func changesOf(m apitype.StepEventMetadata) []Change {
	if m.Old == nil || m.New == nil {
		return nil
	}
	if m.DetailedDiff == nil {
		return changesOfKeys(m)
	}
	var changes []Change
	for path, d := range m.DetailedDiff {
		old := m.Old.Outputs
		if d.InputDiff || old == nil {
			old = m.Old.Inputs
		}
		c := Change{Path: path, Old: lookup(old, path), New: lookup(m.New.Inputs, path), Replaces: strings.HasSuffix(string(d.Kind), "-replace")}
		if c.Old == nil {
			c.Old = lookup(m.Old.Inputs, path)
		}
		switch d.Kind {
		case apitype.DiffAdd, apitype.DiffAddReplace:
			c.Old = nil
		case apitype.DiffDelete, apitype.DiffDeleteReplace:
			c.New = nil
		}
		changes = append(changes, c)
	}
	return sortChanges(changes)
}

// changesOfKeys compares inputs by top-level key, for steps without a detailed diff.
func changesOfKeys(m apitype.StepEventMetadata) []Change {
	keys := slices.Concat(m.Diffs, m.Keys)
	if len(keys) == 0 && m.Op != apitype.OpSame {
		for key := range m.Old.Inputs {
			keys = append(keys, key)
		}
		for key := range m.New.Inputs {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	var changes []Change
	for _, key := range slices.Compact(keys) {
		old, now := m.Old.Inputs[key], m.New.Inputs[key]
		if strings.HasPrefix(key, "__") || reflect.DeepEqual(old, now) && !slices.Contains(m.Diffs, key) {
			continue
		}
		changes = append(changes, Change{Path: key, Old: old, New: now, Replaces: slices.Contains(m.Keys, key)})
	}
	return changes
}

func sortChanges(changes []Change) []Change {
	slices.SortFunc(changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	return changes
}

// lookup finds the value at a property path; nil when there is none.
func lookup(properties map[string]any, path string) any {
	parsed, err := resource.ParsePropertyPath(path)
	if err != nil {
		return properties[path]
	}
	var at any = properties
	for _, step := range parsed {
		switch in := at.(type) {
		case map[string]any:
			key, ok := step.(string)
			if !ok {
				return nil
			}
			at = in[key]
		case []any:
			i, ok := step.(int)
			if !ok || i < 0 || i >= len(in) {
				return nil
			}
			at = in[i]
		default:
			return nil
		}
	}
	return at
}

// Marks of values that are no JSON of their own. Source: the deployment format.
const (
	signatureKey = "4dabf18193072939515e22adb298388d"
	secretMark   = "1b47061264138c4ac30d75fd1eb44270"
	assetMark    = "c44067f5952c0a294b673a41bacd8c17"
	archiveMark  = "0def7320c3a5731c473e5ecbe6d01bc7"
	unknownText  = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
)

// format writes a value on one line.
func format(value any) string {
	text, err := json.Marshal(readable(value))
	if err != nil {
		return "?"
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if encoder.Encode(readable(value)) == nil {
		return strings.TrimSuffix(b.String(), "\n")
	}
	return string(text)
}

// readable replaces secrets, assets and unknowns by what a person wants to read of them.
func readable(value any) any {
	switch v := value.(type) {
	case string:
		if v == unknownText {
			return "(known after the update)"
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = readable(v[i])
		}
		return list
	case map[string]any:
		switch v[signatureKey] {
		case secretMark:
			return "[secret]"
		case assetMark:
			return "asset " + asset(v)
		case archiveMark:
			return "archive " + asset(v)
		}
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = readable(item)
		}
		return object
	}
	return value
}

// asset names an asset by its file or address, and the beginning of its hash.
func asset(v map[string]any) string {
	name := ""
	for _, key := range []string{"path", "uri"} {
		if text, ok := v[key].(string); ok && text != "" {
			name = text + " "
		}
	}
	hash, _ := v["hash"].(string)
	return strings.TrimSpace(name + hash[:min(8, len(hash))])
}
