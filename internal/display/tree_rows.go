package display

import (
	"fmt"
	"strings"
	"time"
)

// detail says how much of the tree is shown.
type detail int

const (
	everything     detail = iota // for good: every change, every diagnostic
	withChanges                  // moving: changed properties too
	withoutChanges               // moving: a line for each resource, with its diagnostics
	onlyActive                   // moving: what runs or has failed, and what it is below
)

// maxChanges is how many lines about changed properties of a resource are shown in short.
const maxChanges = 12

// rows draws the resources, children below their parents.
func (t *tree) rows(how detail) []string {
	children := map[string][]*Row{}
	for _, r := range t.state.sorted() {
		parent := r.Parent
		if _, known := t.state.byURN[parent]; !known || parent == r.URN {
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

// statusColumns is what names leave to what becomes of their resources, on a screen that is wide enough: "creating
// (1m05s), attempt 12 in 30s".
const statusColumns = 36

// branch is a tree being drawn.
type branch struct {
	*tree
	how      detail
	children map[string][]*Row
	shown    map[string]bool
	labels   int // width of the column of names
	lines    []string
}

// choose marks what is shown below a parent, and says whether anything is.
func (b *branch) choose(parent string) bool {
	any := false
	for _, r := range b.children[parent] {
		below := b.choose(r.URN)
		b.shown[r.URN] = below || b.wanted(r)
		any = any || b.shown[r.URN]
	}
	return any
}

// wanted says whether a row is shown for its own sake.
func (b *branch) wanted(r *Row) bool {
	if r.internal() {
		return false
	}
	if r.Phase == running || r.Phase == failed {
		return true
	}
	if b.how == onlyActive {
		return false
	}
	return r.changes() && r.Type != stackType || len(r.Diags) > 0 || len(r.Changes) > 0
}

// measure finds the width of the column of names.
func (b *branch) measure(parent string, depth int) {
	for _, r := range b.children[parent] {
		if b.shown[r.URN] {
			b.labels = max(b.labels, width(r.label())+3*depth)
			b.measure(r.URN, depth+1)
		}
	}
}

// draw writes what is below a parent. indent stands before each line; roots have no branches drawn to them.
func (b *branch) draw(parent, indent string, roots bool) {
	var list []*Row
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

// row writes a resource's own line.
func (b *branch) row(r *Row, lead string, leadWidth int) {
	o := operationOf(r.Op)
	sign := o.sign
	if !r.changes() && r.Phase != running || r.Type == stackType && r.Phase != running && r.Op != "create" &&
		r.Op != "delete" {
		sign = " "
	}
	label := r.label()
	if b.how != everything {
		label = clip(label, max(1, b.labels-leadWidth))
	}
	pad := strings.Repeat(" ", max(0, b.labels-leadWidth-width(label)))
	line := b.paint.paint(o.color, sign) + " " + lead + label + pad
	if status := b.status(r); status != "" {
		line += "  " + status
	}
	line = strings.TrimRight(line, " ")
	if columns := b.form(leadWidth).columns; b.how == everything && width(line) > columns+leadWidth {
		line = strings.Join(fold(line, columns-hanging), "\n"+strings.Repeat(" ", leadWidth+hanging))
	}
	b.lines = append(b.lines, strings.Split(line, "\n")...)
}

// hanging is by how much the second line of a row's own stands to the right of its first.
const hanging = 4

// status says what becomes of a resource.
func (b *branch) status(r *Row) string {
	o := r.operation(r.current)
	now := b.options.Now()
	switch {
	case r.cutOff():
		return b.paint.paint(red, o.present+": cut off")
	case r.Phase == failed:
		return b.paint.paint(red, o.present+" failed")
	case r.Phase == waiting:
		return ""
	case b.options.Preview:
		if !r.changes() || r.Type == stackType && r.Op != "create" && r.Op != "delete" {
			return ""
		}
		return b.paint.paint(r.operation(r.Op).color, r.operation(r.Op).plan)
	case r.Phase == running:
		if r.Type == stackType {
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
	case r.Type == stackType && b.state.End == nil && r.Op != "delete":
		return "running" + took(now.Sub(r.Started))
	case !r.changes():
		return ""
	}
	if b.state.End != nil {
		o = r.operation(r.Op)
	}
	return b.paint.paint(o.color, o.past) + took(r.Finished.Sub(r.Started))
}

// took writes a duration in brackets, from a second on.
func took(d time.Duration) string {
	if d < time.Second || d > 10000*time.Hour {
		return ""
	}
	return " (" + elapsed(d.Truncate(time.Second)) + ")"
}

// retries tells of a step that is being tried again.
func retries(r *Row, now time.Time) string {
	if r.Attempt < 2 {
		return ""
	}
	text := fmt.Sprintf(", attempt %d", r.Attempt)
	if wait := r.NextRetry.Sub(now); !r.NextRetry.IsZero() && wait > 0 {
		text += " in " + elapsed(wait.Truncate(time.Second))
	}
	return text
}

// lastError says why the attempt before failed; empty when there is none.
func lastError(attempt int, message string) string {
	first, _, _ := strings.Cut(plain(message), "\n")
	if attempt < 2 || first == "" {
		return ""
	}
	return "last error: " + first
}

// below writes a resource's changed properties and diagnostics.
func (b *branch) below(r *Row, indent string) {
	lead := "  " + b.paint.paint(dim, indent) + "  "
	if b.how == everything || b.how == withChanges {
		for _, line := range b.form(width(lead)).some(r, b.options.Diff && b.how == everything) {
			b.lines = append(b.lines, lead+line)
		}
	}
	if text := lastError(r.Attempt, r.LastError); text != "" && r.Phase == running {
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

// form is how changes are written behind a lead of a width.
func (t *tree) form(lead int) form {
	columns, _ := t.options.Screen.Size()
	return form{paint: t.paint, columns: max(leastRoom, columns-1-lead)}
}

// diags are the diagnostics that are shown of a row: moving, only the latest ones.
func (b *branch) diags(r *Row) []Diag {
	if b.how == everything {
		return r.Diags
	}
	return r.Diags[max(0, len(r.Diags)-3):]
}
