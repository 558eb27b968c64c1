package display

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// lines shows an update as lines of text: one for each step that begins or ends, one for each diagnostic, a summary.
type lines struct {
	options Options
	state   *projection.State
	paint   painter
	said    map[string]bool // texts to print only once: retries, waits, planned steps
	queue   string
	told    time.Time // when the progress was last printed
}

// tellEvery is the interval in which the progress of a long update is printed.
const tellEvery = 15 * time.Second

func newLines(o Options) *lines {
	l := &lines{options: o, state: o.State, paint: painter(o.Color), said: map[string]bool{}}
	if o.Heading != "" && !o.Quiet {
		l.print(l.paint.paint(bold, o.Heading))
	}
	return l
}

func (l *lines) print(text string) { _, _ = fmt.Fprintln(l.options.Out, text) }

// once prints a line unless it was printed before.
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
		l.diagnostic(row.Diags[len(row.Diags)-1], label(row))
	case row != nil && !l.options.Quiet:
		l.step(row)
	}
}

// step prints a line for a row whose step has begun or ended. Unchanged resources are only counted.
func (l *lines) step(r *projection.Row) {
	if r.Current == apitype.OpSame && len(r.Notes) > 0 && !r.Internal() {
		l.once("  " + label(r) + notesText(r))
	}
	if r.Current == apitype.OpSame || r.Current == apitype.OpRefresh && r.Phase != projection.PhaseFailed ||
		r.Type == projection.StackType &&
			r.Current != apitype.OpDelete || r.Internal() || l.repeated(r) {
		return
	}
	o := operationOfRow(r, r.Current)
	line := l.paint.paint(o.color, o.sign) + " " + label(r) + " "
	switch {
	case l.options.Preview && r.Phase != projection.PhaseFailed && projection.ReplacementSteps[r.Current]:
		return
	case l.options.Preview && r.Phase != projection.PhaseFailed:
		l.planned(r, line+o.plan+changedNames(r)+notesText(r))
		return
	case r.Phase == projection.PhaseRunning:
		line += o.present + changedNames(r) + notesText(r)
	case r.CutOff():
		line += l.paint.paint(red, o.present+": cut off")
	case r.Phase == projection.PhaseFailed:
		line += l.paint.paint(red, o.plan+" failed")
	default:
		line += o.past
		if took := r.Finished.Sub(r.Started); !r.Started.IsZero() && took > 0 {
			line += " (" + elapsed(took) + ")"
		}
	}
	l.print(line)
	if !l.options.Previewed && !l.said["\x00changes "+r.URN] {
		l.said["\x00changes "+r.URN] = true
		l.properties(r)
	}
}

// planned prints a row of a preview, once, with its properties.
func (l *lines) planned(r *projection.Row, line string) {
	deletes := r.Op == apitype.OpDelete || r.Op == projection.OpRetain
	if r.Phase != projection.PhaseDone && !deletes || !r.IsChange() || l.said[line] {
		return // the result of a refresh is known only at its end
	}
	l.once(line)
	l.properties(r)
}

// loneHalves prints half replacements, such as the deletion of an original whose replacement an earlier update has
// created.
func (l *lines) loneHalves() {
	for _, r := range l.state.Rows {
		if o := operationOfRow(r, r.Op); projection.ReplacementSteps[r.Op] && r.Phase == projection.PhaseDone &&
			!r.Internal() {
			l.planned(r, l.paint.paint(o.color, o.sign)+" "+label(r)+" "+o.plan+changedNames(r))
		}
	}
}

// properties prints the changes of a row's properties.
func (l *lines) properties(r *projection.Row) {
	f := form{paint: l.paint, columns: pipeColumns, preview: l.options.Preview}
	for _, change := range f.some(r, l.options.Diff) {
		l.print("    " + change)
	}
}

// repeated reports whether the row's step was printed in this phase already: a component ends a second time when its
// outputs arrive.
func (l *lines) repeated(r *projection.Row) bool {
	stage := fmt.Sprintf("\x00%s %s %d", r.URN, r.Current, r.Phase)
	before := l.said[stage]
	l.said[stage] = true
	return before
}

// changedNames lists the top-level properties that change, in brackets.
func changedNames(r *projection.Row) string {
	if len(r.Changes) == 0 {
		return ""
	}
	var names []string
	for _, c := range r.Changes {
		name := safetext.Visible(c.Path)
		if end := strings.IndexAny(name, ".[ "); end > 0 {
			name = name[:end]
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return " (" + strings.Join(names, ", ") + ")"
}

func (l *lines) diagnostic(d projection.Diag, label string) {
	if l.options.Quiet && d.Severity != "error" && d.Severity != "warning" {
		return
	}
	text := diagLines(d, l.paint)
	if label != "" && (d.Severity == "error" || d.Severity == "warning") {
		colon := "" // what follows it is in the next lines
		if first, found := strings.CutSuffix(text[0], ":"); found {
			text[0], colon = first, ":"
		}
		text[0] += l.paint.paint(dim, " ("+label+")") + colon
	}
	for _, line := range text {
		l.print(line)
	}
}

// progress prints what the update waits for: the queue, retries, an answer of the user.
func (l *lines) progress(p deployments.Progress) {
	if l.options.Quiet {
		return
	}
	if p.Phase != nil {
		if p.Phase.Text != "" {
			l.once(p.Phase.Text + " …")
		}
		return
	}
	if line := queueLine(p); line != l.queue {
		l.queue = line
		if line != "" {
			l.print(line)
		}
	}
	if hint := LostClient(p.Behind); hint != "" {
		l.once(hint)
	}
	l.howFar(p)
	for _, step := range p.Running {
		if row := l.state.ByURN[step.URN]; row != nil {
			l.retry(row, step.Attempt)
		}
	}
	for _, wait := range p.Waiting {
		l.once("waiting for you: " + waitLine(l.state, wait))
	}
}

// howFar prints the progress of a long update, every tellEvery.
func (l *lines) howFar(p deployments.Progress) {
	now := l.options.Now()
	if p.Position > 0 || now.Sub(l.state.StartedBy(now)) < tellEvery || now.Sub(l.told) < tellEvery {
		return
	}
	l.told = now
	l.print(statusLine(l.state, l.options, l.paint))
}

// retry prints a line for every attempt but the first of a running step.
func (l *lines) retry(r *projection.Row, attempt int) {
	stage := fmt.Sprintf("\x00%s %s attempt %d", r.URN, r.Current, attempt)
	if attempt < 2 || r.Phase != projection.PhaseRunning || l.said[stage] {
		return
	}
	l.said[stage] = true
	line := "  " + label(r) + ":" + strings.TrimPrefix(retries(r, l.options.Now()), ",")
	if text := lastError(attempt, r.LastError); text != "" {
		line += ", " + text
	}
	l.print(line)
}

func (l *lines) end() {
	if l.options.Preview && !l.options.Quiet {
		l.loneHalves()
	}
	if !l.options.Quiet {
		f := form{paint: l.paint, columns: pipeColumns, full: l.options.Diff}
		for _, line := range outputLines(l.state, l.options, f) {
			l.print(line)
		}
	}
	for _, line := range summaryLines(l.state, l.options, l.paint) {
		l.print(line)
	}
}
