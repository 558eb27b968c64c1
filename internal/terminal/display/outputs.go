package display

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/internal/values/valuediff"
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
	f.preview = o.Preview
	var out []string
	for _, name := range names {
		old, had := s.Previous[name]
		now, has := s.Outputs[name]
		lines := f.oneOutput(name, old, now, had, has, column)
		out = append(out, f.bounded(lines, old, now, f.wholeOutput(name, has))...)
	}
	if len(out) == 0 {
		return nil
	}
	return append([]string{f.paint.paint(bold, "Outputs:")}, indented(out)...)
}

// oneOutput formats an output; nothing if a preview does not change it.
func (f form) oneOutput(name string, old, now any, had, has bool, column int) []string {
	switch {
	case had && has && sameOutput(old, now):
		if f.preview {
			return nil
		}
		return f.output(" ", name, now, has, column)
	case !had:
		return f.output(f.paint.paint(green, "+"), name, now, has, column)
	case !has:
		return f.output(f.paint.paint(red, "-"), name, old, has, column)
	case omitted(old) || omitted(now):
		return []string{f.outputLine(f.paint.paint(yellow, "~"), name, sizes(old, now)+f.wholeOmitted(name, has), column)}
	}
	return f.outputChange(name, projection.Readable(old), projection.Readable(now), column)
}

// output formats an output that is unchanged, new or removed.
func (f form) output(sign, name string, value any, has bool, column int) []string {
	if omitted(value) {
		return []string{f.outputLine(sign, name, bytesOf(value)+f.wholeOmitted(name, has), column)}
	}
	value = projection.Readable(value)
	text := projection.FormatValue(value)
	if object, ok := value.(map[string]any); ok && len(text) > longOutput {
		out := []string{fmt.Sprintf("%s %s:", sign, safetext.Visible(name))}
		for _, key := range slices.Sorted(maps.Keys(object)) {
			out = append(out, fmt.Sprintf("      %s: %s", safetext.Visible(key), projection.FormatValue(object[key])))
		}
		return out
	}
	return []string{f.outputLine(sign, name, text, column)}
}

func (f form) outputLine(sign, name, text string, column int) string {
	return fmt.Sprintf("%s %s %s", sign, padded(safetext.Visible(name)+":", column), text)
}

func padded(text string, columns int) string {
	return text + strings.Repeat(" ", max(0, columns-width(text)))
}

// outputChange formats an output that changes; if only a part of it changes, that part.
func (f form) outputChange(name string, old, now any, column int) []string {
	changes := valuediff.Diff(name, old, now)
	if len(changes) == 1 && changes[0].Path == name && len(changes[0].Lines) == 0 {
		was, is := projection.FormatPair(old, now)
		one := fmt.Sprintf("%s %s %s → %s", f.paint.paint(yellow, "~"), padded(safetext.Visible(name)+":", column), was, is)
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
	f := form{paint: painter(o.Color), columns: pipeColumns, full: true, preview: true}
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
