package valuediff

import (
	"cmp"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Kind says what happened at a path.
type Kind int

// The kinds of changes.
const (
	Changed Kind = iota // both values are there, and differ
	Added
	Removed
	Moved // the same element stands at another place of its list
)

// Change is one place at which two values differ.
type Change struct {
	// Path leads to the place: `a.b[2]["c.d"]`. A text that was read as JSON or YAML has " (json) " or " (yaml) "
	// behind its path, before the path inside of it. Elements that were removed have their old index, all others their
	// new one.
	Path string
	Kind Kind
	// Old is nil when Kind is Added, New when it is Removed.
	Old, New any
	// Lines are how two texts of several lines differ, with context. They are empty for other values.
	Lines []Line
	// From is the path from which an element was moved.
	From string
}

// maxDepth bounds how deep values are compared; what is nested deeper is shown as a whole.
const maxDepth = 100

// Diff lists how two values at a path differ, in the order of the paths. It is empty exactly when they are equal.
func Diff(path string, old, now any) []Change { return differ{}.values(path, old, now) }

// differ goes down into values. Texts inside of a text that was read are not read again.
type differ struct {
	depth int
	read  bool
}

func (d differ) values(path string, old, now any) []Change {
	if reflect.DeepEqual(old, now) {
		return nil
	}
	if d.depth++; d.depth <= maxDepth {
		switch old := old.(type) {
		case map[string]any:
			if now, ok := now.(map[string]any); ok {
				return d.objects(path, old, now)
			}
		case []any:
			if now, ok := now.([]any); ok {
				return d.lists(path, old, now)
			}
		case string:
			if now, ok := now.(string); ok {
				return d.texts(path, old, now)
			}
		}
	}
	return []Change{{Path: path, Old: old, New: now}}
}

func (d differ) objects(path string, old, now map[string]any) []Change {
	var changes []Change
	keys := slices.AppendSeq(slices.Collect(maps.Keys(old)), maps.Keys(now))
	slices.Sort(keys)
	for _, key := range slices.Compact(keys) {
		at := Join(path, key)
		was, had := old[key]
		is, has := now[key]
		switch {
		case !had:
			changes = append(changes, Change{Path: at, Kind: Added, New: is})
		case !has:
			changes = append(changes, Change{Path: at, Kind: Removed, Old: was})
		default:
			changes = append(changes, d.values(at, was, is)...)
		}
	}
	return changes
}

// texts compares two texts by what they hold, or by their lines.
func (d differ) texts(path, old, now string) []Change {
	if !d.read {
		if format, was, is := read(old, now); format != "" {
			inner := differ{depth: d.depth, read: true}.values("", was, is)
			for i := range inner {
				inner[i].Path = within(path, format, inner[i].Path)
				if inner[i].From != "" {
					inner[i].From = within(path, format, inner[i].From)
				}
			}
			if len(inner) > 0 {
				return inner
			} // else only the layout differs: its lines tell
		}
	}
	change := Change{Path: path, Old: old, New: now}
	if multiline(old) || multiline(now) {
		change.Lines = lines(old, now)
	}
	return []Change{change}
}

func within(path, format, inner string) string {
	return strings.TrimSuffix(path+" ("+format+") "+inner, " ")
}

// Join appends a key to a path.
func Join(path, key string) string {
	simple := key != ""
	for _, r := range key {
		if strings.ContainsRune(`.[]()"' `, r) || r < ' ' {
			simple = false
		}
	}
	switch {
	case !simple:
		return path + "[" + strconv.Quote(key) + "]"
	case path == "":
		return key
	}
	return path + "." + key
}

func index(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// lists compares two lists by their longest common subsequence. What was taken out at one place and put in at another
// has been moved; what stands between two common elements on both sides is compared pair by pair where the pairs are
// alike.
func (d differ) lists(path string, old, now []any) []Change {
	var changes []placed
	var out, in []int // elements without a counterpart
	for _, b := range blocks(encodeAll(old), encodeAll(now)) {
		pairs, removed, added := pair(old, now, b)
		for _, p := range pairs {
			for _, c := range d.values(index(path, p[1]), old[p[0]], now[p[1]]) {
				changes = append(changes, placed{p[1], c})
			}
		}
		out, in = append(out, removed...), append(in, added...)
	}
	for _, i := range out {
		j := slices.IndexFunc(in, func(j int) bool { return reflect.DeepEqual(old[i], now[j]) })
		if j < 0 {
			changes = append(changes, placed{i, Change{Path: index(path, i), Kind: Removed, Old: old[i]}})
			continue
		}
		moved := Change{Path: index(path, in[j]), Kind: Moved, Old: old[i], New: now[in[j]], From: index(path, i)}
		changes, in = append(changes, placed{in[j], moved}), slices.Delete(in, j, j+1)
	}
	for _, j := range in {
		changes = append(changes, placed{j, Change{Path: index(path, j), Kind: Added, New: now[j]}})
	}
	slices.SortStableFunc(changes, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	list := make([]Change, len(changes))
	for i, p := range changes {
		list[i] = p.Change
	}
	return list
}

// placed is a change with the index by which it is sorted.
type placed struct {
	at int
	Change
}
