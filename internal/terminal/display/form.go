package display

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/internal/values/valuediff"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// form formats changes of properties: in full, or in short, where long values are cut to the part that differs and
// surplus lines are only counted.
type form struct {
	paint   painter
	columns int // the width of a line; a wider change takes several lines
	full    bool
	preview bool // the values are planned, and not in the state
}

// pipeColumns is the width of a line without a terminal.
const pipeColumns = 120

// leastRoom is the minimum number of characters that are shown of a value, on a screen of any width.
const leastRoom = 24

// signs are the signs with which changes begin, by kind.
var signs = map[valuediff.Kind]struct {
	sign  string
	color color
}{
	valuediff.Changed: {"~", yellow}, valuediff.Added: {"+", green}, valuediff.Removed: {"-", red},
	valuediff.Moved: {"~", yellow},
}

// changes formats the changed properties of a row, without indentation.
func (f form) changes(changes []projection.Change) []string {
	var out []string
	for _, c := range changes {
		out = append(out, f.whole(c)...)
	}
	return out
}

// whole formats a change; in full, up to a bound. In short, values are cut already and surplus lines are counted later.
func (f form) whole(c projection.Change) []string {
	lines := f.change(c)
	if !f.full {
		return lines
	}
	return f.bounded(lines, c.Old, c.New, f.wholeProperty())
}

func (f form) change(c projection.Change) []string {
	sign := signs[c.Kind]
	head := f.paint.paint(sign.color, sign.sign) + " " + safetext.Visible(c.Path)
	tail := ""
	if c.Replaces {
		tail = f.paint.paint(magenta, " (replaces)")
	}
	switch {
	case c.Hidden:
		return []string{head + ": (not shown: hideDiffs)" + tail}
	case c.Kind == valuediff.Moved:
		return []string{head + ": moved from " + safetext.Visible(c.From) + tail}
	case c.Kind == valuediff.Added:
		return f.value(head+":", c.New, tail)
	case c.Kind == valuediff.Removed:
		return f.value(head+":", c.Old, tail)
	case len(c.Lines) > 0:
		return f.lines(head, c.Lines, tail)
	case c.Old == nil && c.New == nil:
		return []string{head + tail}
	case omitted(c.Old) && omitted(c.New):
		return []string{head + ": " + sizes(c.Old, c.New) + tail}
	}
	return f.pair(head, c, tail)
}

// value formats one value after its name.
func (f form) value(head string, value any, tail string) []string {
	if !f.full {
		return []string{head + " " + f.cut(value, f.columns-width(head)) + tail}
	}
	block := valuediff.Block(value)
	out := []string{strings.TrimRight(head+" "+safetext.Visible(block[0]), " ") + tail}
	for _, line := range block[1:] {
		out = append(out, "  "+safetext.Visible(line))
	}
	return out
}

// pair formats an old and a new value: on one line if they fit, else on two.
func (f form) pair(head string, c projection.Change, tail string) []string {
	old, now := projection.FormatPair(c.Old, c.New)
	if projection.Composite(c.Old) && reflect.DeepEqual(c.Old, c.New) {
		if strings.Contains(old, "[secret]") {
			return []string{head + ": a secret inside of it differs" + tail}
		}
		return []string{head + ": the provider finds a difference that its values do not show" + tail}
	}
	one := head + ": " + old + " → " + now + tail
	if width(one) <= f.columns {
		return []string{one}
	}
	minus, plus := f.paint.paint(red, "-"), f.paint.paint(green, "+")
	if f.full {
		return append(append([]string{head + ":" + tail},
			indented(f.value(minus, c.Old, ""))...), indented(f.value(plus, c.New, ""))...)
	}
	old, now = valuediff.Differing(old, now, max(leastRoom, f.columns-4))
	return []string{head + ":" + tail, "  " + minus + " " + old, "  " + plus + " " + now}
}

func indented(lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = "  " + line
	}
	return out
}

// lines formats the difference of two texts; in short, without the lines that they have in common.
func (f form) lines(head string, list []valuediff.Line, tail string) []string {
	added, removed := 0, 0
	var out []string
	texts := f.texts(list)
	for i, line := range list {
		text := texts[i]
		switch {
		case line.Kind == valuediff.Added:
			added++
			out = append(out, "  "+f.paint.paint(green, "+ "+text))
		case line.Kind == valuediff.Removed:
			removed++
			out = append(out, "  "+f.paint.paint(red, "- "+text))
		case !f.full:
		case line.Skipped > 0:
			out = append(out, f.paint.paint(dim, fmt.Sprintf("    … %d equal lines", line.Skipped)))
		default:
			out = append(out, "    "+text)
		}
	}
	return append([]string{fmt.Sprintf("%s: +%d -%d lines%s", head, added, removed, tail)}, out...)
}

// tabOf returns the text that replaces tabs: spaces, unless two lines differ only by tabs and spaces.
func tabOf(list []valuediff.Line) string {
	const spaces = "    "
	looks := map[string]valuediff.Kind{}
	for _, line := range list {
		text := strings.ReplaceAll(line.Text, "\t", spaces)
		if kind, seen := looks[text]; seen && kind != line.Kind && line.Kind != valuediff.Changed {
			return `\t`
		}
		if line.Kind != valuediff.Changed {
			looks[text] = line.Kind
		}
	}
	return spaces
}

// texts returns the lines as they are shown. In short, a long line is cut to the part that differs from the line that
// it replaces.
func (f form) texts(list []valuediff.Line) []string {
	texts := make([]string, len(list))
	room, tab := max(leastRoom, f.columns-leastRoom), tabOf(list)
	whole := func(i int) string { return safetext.Visible(strings.ReplaceAll(list[i].Text, "\t", tab)) }
	var removed []int // removed lines that no added line has replaced yet
	for i, line := range list {
		switch {
		case f.full:
			texts[i] = whole(i)
			continue
		case line.Kind == valuediff.Added && len(removed) > 0:
			texts[removed[0]], texts[i] = valuediff.Differing(whole(removed[0]), whole(i), room)
			removed = removed[1:]
			continue
		case line.Kind == valuediff.Removed:
			removed = append(removed, i)
		default:
			removed = nil
		}
		texts[i] = valuediff.Cut(whole(i), room)
	}
	return texts
}

// cut formats a value in about a number of columns.
func (f form) cut(value any, columns int) string {
	return valuediff.Cut(projection.FormatValue(value), max(leastRoom, columns-leastRoom))
}

// properties lists all properties of a resource that is created, deleted or gone.
func (f form) properties(r *projection.Row) []string {
	state, kind := r.Metadata.New, valuediff.Added
	if state == nil {
		state, kind = r.Metadata.Old, valuediff.Removed
	}
	if state == nil {
		return nil
	}
	var out []string
	for _, c := range valuediff.Diff("", map[string]any{}, projection.ReadableProperties(state.Inputs)) {
		if strings.HasPrefix(c.Path, "__") {
			continue
		}
		if c.Kind = kind; kind == valuediff.Removed {
			c.Old = c.New
		}
		out = append(out, f.whole(projection.Change{Change: c})...)
	}
	return out
}

// row lists the changes of a resource's properties, in full.
func (f form) row(r *projection.Row) []string {
	f.full = true
	if len(r.Changes) == 0 && r.Op != apitype.OpUpdate {
		return f.properties(r)
	}
	return f.brief(r)
}

// brief lists the changes of a row. For an update without visible changes it returns a line that says so.
func (f form) brief(r *projection.Row) []string {
	if len(r.Changes) == 0 && r.Op == apitype.OpUpdate {
		return []string{f.paint.paint(dim, "the provider finds a difference that its values do not show")}
	}
	return f.changes(r.Changes)
}

// some lists the changes of a resource's properties, in full or in short: then surplus lines are only counted.
func (f form) some(r *projection.Row, full bool) []string {
	if full {
		return f.row(r)
	}
	lines := f.brief(r)
	if len(lines) <= maxChanges+1 {
		return lines
	}
	return append(lines[:maxChanges:maxChanges], f.paint.paint(dim,
		fmt.Sprintf("… %d more lines, which --diff shows", len(lines)-maxChanges)))
}
