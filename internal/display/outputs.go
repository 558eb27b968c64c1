package display

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/projection"
	"github.com/deployctl/deployctl/internal/safetext"
	"github.com/deployctl/deployctl/internal/valuediff"
)

// outputLines formats the stack's outputs and their changes. A preview lists only changes, an update all outputs.
func outputLines(s *projection.State, o Options, f form) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(s.Outputs)), maps.Keys(s.Previous))
	slices.Sort(names)
	names = slices.Compact(names)
	column := 0
	for _, name := range names {
		column = max(column, width(safetext.Visible(name))+1)
	}
	var out []string
	for _, name := range names {
		old, had := s.Previous[name]
		now, has := s.Outputs[name]
		old, now = projection.Readable(old), projection.Readable(now)
		switch {
		case had && has && reflect.DeepEqual(old, now):
			if !o.Preview {
				out = append(out, f.output(" ", name, now, column)...)
			}
		case !had:
			out = append(out, f.output(f.paint.paint(green, "+"), name, now, column)...)
		case !has:
			out = append(out, f.output(f.paint.paint(red, "-"), name, old, column)...)
		default:
			out = append(out, f.outputChange(name, old, now, column)...)
		}
	}
	if len(out) == 0 {
		return nil
	}
	return append([]string{f.paint.paint(bold, "Outputs:")}, indented(out)...)
}

// output formats an output that is unchanged, new or removed.
func (f form) output(sign, name string, value any, column int) []string {
	text := projection.FormatValue(value)
	if object, ok := value.(map[string]any); ok && len(text) > longOutput {
		out := []string{fmt.Sprintf("%s %s:", sign, safetext.Visible(name))}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			out = append(out, fmt.Sprintf("      %s: %s", safetext.Visible(key), projection.FormatValue(object[key])))
		}
		return out
	}
	return []string{fmt.Sprintf("%s %s %s", sign, padded(safetext.Visible(name)+":", column), text)}
}

func padded(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-width(text)))
}

// outputChange formats an output that changes; if only a part of it changes, that part.
func (f form) outputChange(name string, old, now any, column int) []string {
	changes := valuediff.Diff(name, old, now)
	if len(changes) == 1 && changes[0].Path == name && len(changes[0].Lines) == 0 {
		one := fmt.Sprintf("%s %s %s → %s", f.paint.paint(yellow, "~"), padded(safetext.Visible(name)+":", column),
			projection.FormatValue(old),
			projection.FormatValue(now))
		if width(one) <= f.columns {
			return []string{one}
		}
	}
	var out []string
	for _, c := range changes {
		out = append(out, f.change(projection.Change{Change: c})...)
	}
	return out
}

// longOutput is the maximum length of an object on one line.
const longOutput = 60

// detailIndent is the indentation of properties below their resource.
const detailIndent = 4

// Details returns every change of a preview with its properties, in full.
func Details(s *projection.State, o Options) []string {
	f := form{paint: painter(o.Color), columns: pipeColumns, full: true}
	if o.Screen != nil {
		columns, _ := o.Screen.Size()
		f.columns = max(leastRoom, columns-1-detailIndent)
	}
	o.Preview = true
	var out []string
	for _, r := range s.Sorted() {
		if !r.IsChange() || r.Internal() {
			continue
		}
		op := operationOf(r.Op)
		out = append(out, f.paint.paint(op.color, op.sign+" "+label(r))+f.paint.paint(dim, "  "+op.plan))
		for _, line := range f.row(r) {
			out = append(out, "    "+line)
		}
	}
	return append(out, outputLines(s, o, f)...)
}
