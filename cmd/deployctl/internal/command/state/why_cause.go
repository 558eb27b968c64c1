package state

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// cause says what an update did to a resource, and why.
type cause struct {
	URN string `json:"urn"`
	Op  string `json:"op"`
	// Reason says why, if no property changed.
	Reason  string        `json:"reason,omitempty"`
	Changes []causeChange `json:"changes,omitempty"`
	// From are dependencies that changed in the same update, if it is not known which property came from them.
	From []cause `json:"from,omitempty"`
}

// causeChange is a property that changed.
type causeChange struct {
	Path     string `json:"path"`
	Old      any    `json:"old,omitempty"`
	New      any    `json:"new,omitempty"`
	Replaces bool   `json:"replaces,omitempty"`
	Hidden   bool   `json:"-"`
	// From are the dependencies from which the property was computed and that changed in the same update.
	From []cause `json:"from,omitempty"`
}

// causes explains the changes of one update.
type causes struct {
	update *projection.State
	// dependencies are the resources of the state that the update left, by URN.
	dependencies map[string]apitype.ResourceV3
}

// of returns why the resource of a row changed.
func (c causes) of(row *projection.Row) cause { return c.after(row, []string{row.URN}) }

// after explains a row. seen are the URNs on the way to it: no chain has one of them twice.
func (c causes) after(row *projection.Row, seen []string) cause {
	out := cause{URN: row.URN, Op: string(row.Op)}
	state := c.dependencies[row.URN]
	for _, change := range row.Changes {
		property := causeChange{Path: change.Path, Old: change.Old, New: change.New, Replaces: change.Replaces,
			Hidden: change.Hidden}
		if change.Hidden {
			property.Old, property.New = nil, nil
		}
		for _, u := range state.PropertyDependencies[resource.PropertyKey(topKey(change.Path))] {
			property.From = append(property.From, c.from(string(u), &change.Change, seen)...)
		}
		out.Changes = append(out.Changes, property)
	}
	if len(out.Changes) > 0 {
		return out
	}
	out.Reason = reasonOf(row)
	if out.Reason == "" && (projection.ReplacementSteps[row.Op] || row.Op == apitype.OpReplace) {
		for _, u := range state.Dependencies { // it was replaced with what it depends on
			out.From = append(out.From, c.from(string(u), nil, seen)...)
		}
	}
	return out
}

// from returns the cause that a dependency is: nothing if the update did not change it. If the changed value comes from
// some outputs of the dependency, only their change is shown.
func (c causes) from(id string, change *valuediff.Change, seen []string) []cause {
	row := c.update.ByURN[id]
	if row == nil || !row.IsChange() || slices.Contains(seen, id) {
		return nil
	}
	out := c.after(row, append(slices.Clone(seen), id))
	if outputs := changedOutputs(row, change); len(outputs) > 0 {
		out.Reason = "its output " + strings.Join(outputs, ", ") + " changed"
	}
	return []cause{out}
}

// changedOutputs returns the outputs of a row that changed to a value which the change of a dependent contains.
func changedOutputs(row *projection.Row, change *valuediff.Change) []string {
	m := row.Metadata
	if change == nil || m.New == nil {
		return nil
	}
	var old map[string]any
	if m.Old != nil {
		old = m.Old.Outputs
	}
	var names []string
	for _, name := range console.Sorted(m.New.Outputs) {
		value := m.New.Outputs[name]
		if !reflect.DeepEqual(old[name], value) && contains(change.New, value) {
			names = append(names, name)
		}
	}
	return names
}

// contains reports whether a value is, or has in it, another one. Texts may be parts of texts.
func contains(value, part any) bool {
	if reflect.DeepEqual(value, projection.Readable(part)) {
		return true
	}
	text, ok := part.(string)
	if !ok || text == "" {
		return false
	}
	quoted, err := json.Marshal(text)
	if err != nil {
		return false
	}
	return strings.Contains(valuediff.OneLine(value), strings.Trim(string(quoted), `"`))
}

// reasonOf returns why a resource changed although no property of it did.
func reasonOf(row *projection.Row) string {
	old := row.Metadata.Old
	switch {
	case row.Op == apitype.OpCreate:
		return "the program declared it for the first time"
	case row.Op == apitype.OpDelete || row.Op == projection.OpRetain:
		return "the program no longer declares it, or destroy deleted it"
	case old != nil && old.Taint:
		return "it was tainted"
	case old != nil && len(old.InitErrors) > 0:
		return "it had not initialised: " + old.InitErrors[0]
	}
	return ""
}

// topKey returns the name of the property into which a path leads.
func topKey(path string) string {
	parsed, err := resource.ParsePropertyPath(path)
	if err != nil || len(parsed) == 0 {
		return path
	}
	key, ok := parsed[0].(string)
	if !ok {
		return path
	}
	return key
}

func (c cause) text() string {
	text := c.Op
	if c.Reason != "" {
		text += ": " + c.Reason
	}
	return text
}

func (c causeChange) text() string {
	text := c.Path
	switch {
	case c.Hidden:
		text += ": changed; the program hides its values"
	case c.Old == nil:
		text += ": " + shortValue(c.New) + " was added"
	case c.New == nil:
		text += ": " + shortValue(c.Old) + " was removed"
	default:
		text += fmt.Sprintf(": %s → %s", shortValue(c.Old), shortValue(c.New))
	}
	if c.Replaces {
		text += " (needs a replacement)"
	}
	return text
}

// shownValue is how many characters of a value are shown.
const shownValue = 100

func shortValue(value any) string { return valuediff.Cut(projection.FormatValue(value), shownValue) }
