package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
)

// detail is how much of the tree is shown.
type detail int

const (
	everything     detail = iota // the final frame: every change, every diagnostic
	withChanges                  // live: with changed properties
	withoutChanges               // live: a line for each resource, with its diagnostics
	onlyActive                   // live: running and failed resources, and their parents
)

// maxChanges is how many lines of a resource's changed properties are shown in short.
const maxChanges = 12

// rows returns the lines of the resources, children below their parents.
func (t *tree) rows(how detail) []string {
	children := map[string][]*projection.Row{}
	for _, r := range t.state.Sorted() {
		parent := r.Parent
		if _, known := t.state.ByURN[parent]; !known || parent == r.URN {
			parent = ""
		}
		children[parent] = append(children[parent], r)
	}
	b := branch{tree: t, how: how, children: children, shown: map[string]bool{}}
	b.choose("")
	b.measure("", 0)
	columns, _ := t.options.Screen.Size()
	b.labels = min(b.labels, max(columns-statusColumns, columns/2))
	b.draw("", "", true)
	return b.lines
}

// statusColumns is the width that is left for a resource's status on a wide screen: "creating (1m05s), attempt 12 in
// 30s".
const statusColumns = 36

// branch is a tree being drawn.
type branch struct {
	*tree
	how      detail
	children map[string][]*projection.Row
	shown    map[string]bool
	labels   int // width of the column of names
	lines    []string
}

// choose marks the rows to be shown below a parent, and reports whether there are any.
func (b *branch) choose(parent string) bool {
	any := false
	for _, r := range b.children[parent] {
		below := b.choose(r.URN)
		b.shown[r.URN] = below || b.wanted(r)
		any = any || b.shown[r.URN]
	}
	return any
}

// wanted reports whether a row is to be shown even if it has no children.
func (b *branch) wanted(r *projection.Row) bool {
	if r.Internal() {
		return false
	}
	if r.Phase == projection.PhaseRunning || r.Phase == projection.PhaseFailed {
		return true
	}
	if b.how == onlyActive {
		return false
	}
	return r.IsChange() && r.Type != projection.StackType || len(r.Diags) > 0 || len(r.Changes) > 0 || len(r.Notes) > 0
}

// measure computes the width of the column of names.
func (b *branch) measure(parent string, depth int) {
	for _, r := range b.children[parent] {
		if b.shown[r.URN] {
			b.labels = max(b.labels, width(label(r))+3*depth)
			b.measure(r.URN, depth+1)
		}
	}
}

// draw adds the rows below a parent. indent precedes each line; roots have no branches before them.
func (b *branch) draw(parent, indent string, roots bool) {
	var list []*projection.Row
	for _, r := range b.children[parent] {
		if b.shown[r.URN] {
			list = append(list, r)
		}
	}
	for i, r := range list {
		fork, below := "├─ ", "│  "
		if i == len(list)-1 {
			fork, below = "└─ ", "   "
		}
		if roots {
			fork, below = "", ""
		}
		b.row(r, b.paint.paint(dim, indent+fork), width(indent+fork))
		b.below(r, indent+below)
		b.draw(r.URN, indent+below, false)
	}
}

// row adds a resource's own line.
func (b *branch) row(r *projection.Row, lead string, leadWidth int) {
	o := operationOf(r.Op)
	sign := o.sign
	if !r.IsChange() && r.Phase != projection.PhaseRunning || r.Type == projection.StackType &&
		r.Phase != projection.PhaseRunning && r.Op != "create" &&
		r.Op != "delete" {
		sign = " "
	}
	label := label(r)
	if b.how != everything {
		label = clipLabel(r, max(1, b.labels-leadWidth))
	}
	pad := strings.Repeat(" ", max(0, b.labels-leadWidth-width(label)))
	line := b.paint.paint(o.color, sign) + " " + lead + label + pad
	if status := strings.TrimPrefix(b.status(r)+notesText(r), " "); status != "" {
		line += "  " + status
	}
	line = strings.TrimRight(line, " ")
	if columns := b.form(leadWidth).columns; b.how == everything && width(line) > columns+leadWidth {
		line = strings.Join(fold(line, columns-hanging), "\n"+strings.Repeat(" ", leadWidth+hanging))
	}
	b.lines = append(b.lines, strings.Split(line, "\n")...)
}

// hanging is the indentation of the second line of a resource's own line.
const hanging = 4

// status returns what happens to a resource.
func (b *branch) status(r *projection.Row) string {
	o := operationOfRow(r, r.Current)
	now := b.options.Now()
	switch {
	case r.CutOff():
		return b.paint.paint(red, o.present+": cut off")
	case r.Phase == projection.PhaseFailed:
		return b.paint.paint(red, o.plan+" failed")
	case r.Phase == projection.PhaseWaiting:
		return ""
	case b.options.Preview:
		if !r.IsChange() || r.Type == projection.StackType && r.Op != "create" && r.Op != "delete" {
			return ""
		}
		return b.paint.paint(operationOfRow(r, r.Op).color, operationOfRow(r, r.Op).plan)
	case r.Phase == projection.PhaseRunning:
		if r.Type == projection.StackType {
			o.present = "running"
		}
		text := b.paint.paint(o.color, o.present) + took(now.Sub(r.Started))
		switch {
		case b.state.End != nil:
			text = o.present + ": cut off"
		case r.Turnless:
			return b.paint.paint(dim, "waiting for its turn")
		}
		return text + retries(r, now)
	case r.Type == projection.StackType && b.state.End == nil && r.Op != "delete":
		return "running" + took(now.Sub(r.Started))
	case !r.IsChange():
		return ""
	}
	if b.state.End != nil {
		o = operationOfRow(r, r.Op)
	}
	return b.paint.paint(o.color, o.past) + took(r.Finished.Sub(r.Started))
}

// took formats a duration of at least a second in brackets.
func took(d time.Duration) string {
	if d < time.Second || d > 10000*time.Hour {
		return ""
	}
	return " (" + elapsed(d.Truncate(time.Second)) + ")"
}

// retries returns the attempt of a step that is being repeated, and when it starts.
func retries(r *projection.Row, now time.Time) string {
	if r.Attempt < 2 {
		return ""
	}
	text := fmt.Sprintf(", attempt %d", r.Attempt)
	if wait := r.NextRetry.Sub(now); !r.NextRetry.IsZero() && wait > 0 {
		text += " in " + elapsed(wait.Truncate(time.Second))
	}
	return text
}

// lastError returns why the attempt before failed; "" for the first attempt.
func lastError(attempt int, message string) string {
	first, _, _ := strings.Cut(safetext.Message(message), "\n")
	if attempt < 2 || first == "" {
		return ""
	}
	return "last error: " + first
}

// below adds a resource's changed properties and diagnostics.
func (b *branch) below(r *projection.Row, indent string) {
	lead := "  " + b.paint.paint(dim, indent) + "  "
	if b.how == everything || b.how == withChanges {
		for _, line := range b.form(width(lead)).some(r, b.options.Diff && b.how == everything) {
			b.lines = append(b.lines, lead+line)
		}
	}
	if text := lastError(r.Attempt, r.LastError); text != "" && r.Phase == projection.PhaseRunning {
		b.lines = append(b.lines, lead+b.paint.paint(yellow, clip(text, b.form(width(lead)).columns)))
	}
	columns := b.form(width(lead)).columns
	for _, d := range b.diags(r) {
		lines := diagLines(d, b.paint)
		if b.how == everything {
			lines = b.diagnostic(d, columns)
		}
		for _, line := range lines {
			b.lines = append(b.lines, lead+line)
		}
	}
}

// form returns the form of changes after a lead of some width.
func (t *tree) form(lead int) form {
	columns, _ := t.options.Screen.Size()
	return form{paint: t.paint, columns: max(leastRoom, columns-1-lead), preview: t.options.Preview}
}

// diags returns the diagnostics to be shown of a row: in a live frame only the latest ones.
func (b *branch) diags(r *projection.Row) []projection.Diag {
	if b.how == everything {
		return r.Diags
	}
	return r.Diags[max(0, len(r.Diags)-3):]
}
