package projection

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/internal/values/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// Change is a property, or a place inside of one, that differs.
type Change struct {
	valuediff.Change
	Replaces bool // it is why the resource is replaced
	Hidden   bool // the program wants its values not to be shown
}

// initError stands, in events, among the properties that differ, for an initialisation that has failed or goes on.
const initError = "#initerror"

// changesOf lists what a step changes, sorted by path. Of creates and deletes there is nothing to compare.
func changesOf(m apitype.StepEventMetadata) []Change {
	if m.Old == nil || m.New == nil {
		return nil
	}
	s := sides{
		refresh:   m.Op == apitype.OpRefresh,
		oldInputs: ReadableProperties(m.Old.Inputs), oldOutputs: ReadableProperties(m.Old.Outputs),
		newInputs: ReadableProperties(m.New.Inputs), newOutputs: ReadableProperties(m.New.Outputs),
	}
	var changes []Change
	if m.DetailedDiff == nil {
		changes = s.byKeys(m)
	} else {
		changes = s.byPaths(m)
	}
	// Of what a refresh reads, its provider says what has drifted; what an update would not put right is none.
	if len(changes) == 0 && m.Op != apitype.OpSame && m.Op != apitype.OpRefresh {
		changes = s.putRight()
	}
	for i := range changes {
		if changes[i].Path == initError {
			changes[i].Path = "initialisation"
		}
		changes[i].Hidden = hidden(m.New.HideDiffs, changes[i].Path)
	}
	return changes
}

// sides are what a step compares, as people read it.
type sides struct {
	refresh                                      bool
	oldInputs, oldOutputs, newInputs, newOutputs map[string]any
}

// byPaths compares what a detailed diff names. Of lists it names elements by their index: the lists are compared as a
// whole, so that an insertion is one.
func (s sides) byPaths(m apitype.StepEventMetadata) []Change {
	var changes []Change
	seen := map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(m.DetailedDiff)) {
		d := m.DetailedDiff[path]
		if list, ok := s.list(path, d); ok {
			if seen[list] {
				continue
			}
			seen[list] = true
			old, now := s.at(list, apitype.PropertyDiff{Kind: apitype.DiffUpdate, InputDiff: d.InputDiff})
			for _, c := range between(list, old, now) {
				changes = append(changes, Change{Change: c, Replaces: s.replaces(m, list, c.Path)})
			}
			continue
		}
		old, now := s.at(path, d)
		var found []valuediff.Change
		switch d.Kind {
		case apitype.DiffAdd, apitype.DiffAddReplace:
			found = []valuediff.Change{{Path: path, Kind: valuediff.Added, New: now}}
		case apitype.DiffDelete, apitype.DiffDeleteReplace:
			found = []valuediff.Change{{Path: path, Kind: valuediff.Removed, Old: old}}
		default:
			found = between(path, old, now)
		}
		for _, c := range found {
			changes = append(changes, Change{Change: c, Replaces: s.replaces(m, path, c.Path)})
		}
	}
	return changes
}

// list gives the path of the outermost list that a path leads into, if both sides have one there that differ for
// people.
func (s sides) list(path string, d apitype.PropertyDiff) (string, bool) {
	for i := 1; i < len(path)-1; i++ {
		if path[i] != '[' || path[i+1] < '0' || path[i+1] > '9' {
			continue
		}
		old, now := s.at(path[:i], apitype.PropertyDiff{Kind: apitype.DiffUpdate, InputDiff: d.InputDiff})
		_, was := old.([]any)
		_, is := now.([]any)
		return path[:i], was && is && !reflect.DeepEqual(old, now)
	}
	return "", false
}

// replaces says whether what differs at a path, below what the diff names, is why the resource is replaced.
func (s sides) replaces(m apitype.StepEventMetadata, named, path string) bool {
	for at, d := range m.DetailedDiff {
		if strings.HasSuffix(string(d.Kind), "-replace") && (at == named || below(at, path) || below(path, at)) {
			return true
		}
	}
	return slices.ContainsFunc(m.Keys, func(key string) bool { return below(key, path) })
}

// below says whether a path leads to the same place as another, or into it.
func below(outer, path string) bool {
	rest, ok := strings.CutPrefix(path, outer)
	return ok && (rest == "" || strings.ContainsRune(".[ ", rune(rest[0])))
}

// at gives both values at a path. Inputs are compared with inputs where a provider says so, and where outputs would
// bring in what only the provider knows.
func (s sides) at(path string, d apitype.PropertyDiff) (old, now any) {
	input, output := lookup(s.oldInputs, path), lookup(s.oldOutputs, path)
	if s.refresh && !d.InputDiff && reflect.DeepEqual(input, lookup(s.newInputs, path)) {
		return output, lookup(s.newOutputs, path) // many providers read no inputs
	}
	if now = lookup(s.newInputs, path); now == nil {
		now = lookup(s.newOutputs, path)
	}
	if d.InputDiff || output == nil || Composite(input) && !reflect.DeepEqual(input, now) {
		return input, now
	}
	return output, now
}

// Composite reports whether a value is an object or a list.
func Composite(value any) bool {
	switch value.(type) {
	case map[string]any, []any:
		return true
	}
	return false
}

// between compares two values at a path of which a provider says that they differ. If both look alike, for example two
// secrets, the path is still reported.
func between(path string, old, now any) []valuediff.Change {
	found := valuediff.Diff(path, old, now)
	switch {
	case len(found) == 0:
		return []valuediff.Change{{Path: path, Old: old, New: now}}
	case old == nil:
		return []valuediff.Change{{Path: path, Kind: valuediff.Added, New: now}}
	case now == nil:
		return []valuediff.Change{{Path: path, Kind: valuediff.Removed, Old: old}}
	}
	return found
}

// byKeys compares inputs, for steps without a detailed diff. A property that the provider reports as changed is listed
// even if both of its values look alike.
func (s sides) byKeys(m apitype.StepEventMetadata) []Change {
	named := slices.Concat(m.Diffs, m.Keys)
	if len(named) == 0 && (m.Op == apitype.OpSame || m.Op == apitype.OpRefresh) {
		return nil
	}
	keys := slices.Concat(named, slices.Collect(maps.Keys(s.oldInputs)), slices.Collect(maps.Keys(s.newInputs)))
	slices.Sort(keys)
	var changes []Change
	for _, key := range slices.Compact(keys) {
		old, had := s.oldInputs[key]
		now, has := s.newInputs[key]
		var found []valuediff.Change
		path := valuediff.Join("", key)
		switch {
		case strings.HasPrefix(key, "__") || reflect.DeepEqual(old, now) && had == has &&
			!slices.Contains(named, key):
			continue
		case had && !has:
			found = []valuediff.Change{{Path: path, Kind: valuediff.Removed, Old: old}}
		case has && !had:
			found = []valuediff.Change{{Path: path, Kind: valuediff.Added, New: now}}
		default:
			found = between(path, old, now)
		}
		for _, c := range found {
			changes = append(changes, Change{Change: c, Replaces: slices.Contains(m.Keys, key)})
		}
	}
	return changes
}

// putRight compares what a resource has become with what it shall be, for steps whose inputs are as before: the
// resource was changed outside, and a refresh has written that to its outputs.
func (s sides) putRight() []Change {
	var changes []Change
	for _, key := range slices.Sorted(maps.Keys(s.newInputs)) {
		old, had := s.oldOutputs[key]
		now := s.newInputs[key]
		if !had || strings.HasPrefix(key, "__") || reflect.DeepEqual(old, now) {
			continue
		}
		for _, c := range between(valuediff.Join("", key), old, now) {
			changes = append(changes, Change{Change: c})
		}
	}
	return changes
}

// hidden says whether a program wants the values at a path not to be shown.
func hidden(hide []resource.PropertyPath, path string) bool {
	if len(hide) == 0 {
		return false
	}
	path, _, _ = strings.Cut(path, " (")
	at, err := resource.ParsePropertyPath(path)
	return err == nil && slices.ContainsFunc(hide, func(h resource.PropertyPath) bool { return h.Contains(at) })
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
			if at == secretText { // and all that is in it
				return at
			}
			return nil
		}
	}
	return at
}

// Marks of values that are no JSON of their own. Source: the deployment format.
const (
	signatureKey = sig.Key
	secretMark   = sig.Secret
	assetMark    = sig.AssetSig
	archiveMark  = sig.ArchiveSig
	unknownText  = sig.UnknownStringValue
)

// secretText stands for a secret.
const secretText = "[secret]"

// FormatValue writes a value on one line.
func FormatValue(value any) string { return safetext.Visible(valuediff.OneLine(Readable(value))) }

// FormatPair writes two values as FormatValue does, so that they differ for a reader, too.
func FormatPair(old, now any) (string, string) {
	return safetext.Apart(FormatValue(old), FormatValue(now))
}

// ReadableProperties is readable for properties; without any it is empty.
func ReadableProperties(properties map[string]any) map[string]any {
	object, _ := Readable(properties).(map[string]any)
	return object
}

// Readable replaces secrets, assets and unknowns by what a person wants to read of them.
func Readable(value any) any {
	switch v := value.(type) {
	case string:
		if v == unknownText {
			return "(known after the update)"
		}
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = Readable(v[i])
		}
		return list
	case map[string]any:
		return readableObject(v)
	}
	return value
}

func readableObject(v map[string]any) any {
	switch v[signatureKey] {
	case secretMark:
		return secretText
	case assetMark:
		return "asset " + asset(v)
	case archiveMark:
		return "archive " + asset(v)
	}
	object := make(map[string]any, len(v))
	for key, item := range v {
		object[key] = Readable(item)
	}
	return object
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
