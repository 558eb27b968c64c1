package display

import (
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// lines shows an update as plain lines: one for each step that begins or ends, one for each diagnostic, a summary.
type lines struct {
	options Options
	state   *State
	paint   painter
	said    map[string]bool // what must be said once: retries, waits, planned steps
	queue   string
}

func (l *lines) print(text string) { _, _ = fmt.Fprintln(l.options.Out, text) }

// once prints a line unless it has been printed.
func (l *lines) once(text string) {
	if text != "" && !l.said[text] {
		l.said[text] = true
		l.print(text)
	}
}

func (l *lines) Note(text string) { l.print(text) }

func (l *lines) Close() {}

func (l *lines) Item(e deployments.WatchEvent) {
	general := len(l.state.Diags)
	row := l.state.Apply(e)
	for _, d := range l.state.Diags[general:] {
		l.diagnostic(d, "")
	}
	switch {
	case e.End != nil:
		l.end()
	case e.Progress != nil:
		l.progress(*e.Progress)
	case row != nil && e.Event.DiagnosticEvent != nil:
		l.diagnostic(row.Diags[len(row.Diags)-1], row.label())
	case row != nil && !l.options.Quiet:
		l.step(row)
	}
}

// step prints a line for a row whose step has moved on; unchanged resources are only counted.
func (l *lines) step(r *Row) {
	if r.current == apitype.OpSame || r.Type == stackType && r.current != apitype.OpDelete || r.internal() || l.repeated(r) {
		return
	}
	o := operationOf(r.current)
	line := l.paint.paint(o.color, o.sign) + " " + r.label() + " "
	switch {
	case l.options.Preview && r.Phase != failed:
		l.once(line + o.plan + changedNames(r))
		return
	case r.Phase == running:
		line += o.present + changedNames(r)
	case r.Phase == failed:
		line += l.paint.paint(red, o.present+" failed")
	default:
		line += o.past
		if took := r.Finished.Sub(r.Started); !r.Started.IsZero() && took > 0 {
			line += " (" + elapsed(took) + ")"
		}
	}
	l.print(line)
}

// repeated says whether the step has been shown as far as it is: a component is done again when its outputs come.
func (l *lines) repeated(r *Row) bool {
	stage := fmt.Sprintf("\x00%s %s %d", r.URN, r.current, r.Phase)
	before := l.said[stage]
	l.said[stage] = true
	return before
}

// changedNames lists the properties that change, in brackets.
func changedNames(r *Row) string {
	if len(r.Changes) == 0 {
		return ""
	}
	names := make([]string, len(r.Changes))
	for i, c := range r.Changes {
		names[i] = c.Path
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func (l *lines) diagnostic(d Diag, label string) {
	if l.options.Quiet && d.Severity != "error" && d.Severity != "warning" {
		return
	}
	text := diagLines(d, l.paint)
	if label != "" && (d.Severity == "error" || d.Severity == "warning") {
		text[0] += l.paint.paint(dim, " ("+label+")")
	}
	for _, line := range text {
		l.print(line)
	}
}

// progress says what keeps the update from going on: the queue, retries, a person.
func (l *lines) progress(p deployments.Progress) {
	if l.options.Quiet {
		return
	}
	if line := queueLine(p); line != l.queue {
		l.queue = line
		if line != "" {
			l.print(line)
		}
	}
	for _, step := range p.Running {
		if row := l.state.byURN[step.URN]; row != nil {
			l.retry(row, step.Attempt)
		}
	}
	for _, wait := range p.Waiting {
		l.once("waiting for you: " + l.state.waitLine(wait))
	}
}

// retry prints a line for every attempt but the first of a running step.
func (l *lines) retry(r *Row, attempt int) {
	stage := fmt.Sprintf("\x00%s %s attempt %d", r.URN, r.current, attempt)
	if attempt < 2 || r.Phase != running || l.said[stage] {
		return
	}
	l.said[stage] = true
	line := "  " + r.label() + ":" + strings.TrimPrefix(retries(r, l.options.Now()), ",")
	if text := lastError(attempt, r.LastError); text != "" {
		line += ", " + text
	}
	l.print(line)
}

func (l *lines) end() {
	if !l.options.Quiet {
		for _, line := range outputLines(l.state, l.paint) {
			l.print(line)
		}
	}
	for _, line := range summaryLines(l.state, l.options, l.paint) {
		l.print(line)
	}
}
