package display

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
)

// statusLine returns the progress and the duration of an update: "up: 37 of 61 done, 16 running, 1m12s".
func statusLine(s *projection.State, o Options, paint painter) string {
	n, now := s.Tally(), o.Now()
	took := ""
	if d := now.Sub(s.StartedBy(now)).Truncate(time.Second); d >= time.Second {
		took = ", " + elapsed(d)
	}
	phase := phaseText(s, now)
	if n == (projection.Tally{}) {
		return fmt.Sprintf("%s: %s", o.what(), cmp.Or(phase, nothingYet(s)+took))
	}
	text := fmt.Sprintf("%s: %d done", o.what(), n.Done)
	if total := len(o.Expected); total > 0 && n.Done <= total {
		text = fmt.Sprintf("%s: %d of %d done", o.what(), n.Done, total)
	}
	text += fmt.Sprintf(", %d running", n.Running)
	if n.Turnless > 0 {
		text += fmt.Sprintf(", %d waiting for their turn", n.Turnless)
	}
	if n.Failed > 0 {
		text += ", " + paint.paint(red, fmt.Sprintf("%d failed", n.Failed))
	}
	if text += took; phase != "" {
		text += ", " + phase
	}
	return text
}

// nothingYet says what an update does before its first resource.
func nothingYet(s *projection.State) string {
	if len(s.Rows) > 0 { // the stack's own, which a program has registered
		return "the program runs, and has declared nothing yet"
	}
	return "preparing"
}

// what returns the word for the update: "preview" or its kind.
func (o Options) what() string {
	if o.Preview {
		return "preview"
	}
	return o.Kind
}

// phaseText returns the current phase besides the steps, and its duration.
func phaseText(s *projection.State, now time.Time) string {
	p := s.Progress.Phase
	if p == nil || p.Text == "" {
		return ""
	}
	return p.Text + " (" + elapsed(max(0, now.Sub(p.Since)).Truncate(time.Second)) + ")"
}

// undone returns lines that count what an update that did not succeed has not done: steps that failed or were cut off,
// and resources that it has not begun.
func undone(s *projection.State, o Options, paint painter) []string {
	if s.End == nil || s.End.Status == deployments.StatusSucceeded {
		return nil
	}
	wrong, cut := countUndone(s.Rows)
	n := s.Tally()
	rest := len(o.Expected) - n.Done - n.Failed - n.Running - n.Turnless
	left := naming("not begun", notBegun(s, o.Expected), rest)
	var out []string
	for _, part := range []struct {
		n    int
		word string
	}{{wrong, "failed"}, {len(cut), naming("cut off", cut, len(cut))}, {rest, left}} {
		if part.n > 0 {
			out = append(out, fmt.Sprintf("  %s %d %s", paint.paint(red, "!"), part.n, part.word))
		}
	}
	return out
}

// mostNamed is how many resources are named that an update has not done.
const mostNamed = 3

// naming adds the first names of so many resources to what has become of them.
func naming(what string, names []string, of int) string {
	if len(names) == 0 || of <= 0 {
		return what
	}
	named := min(len(names), mostNamed, of)
	what += ": " + strings.Join(names[:named], ", ")
	if more := of - named; more > 0 {
		what += fmt.Sprintf(" and %d more", more)
	}
	return what
}

// notBegun names the expected resources of which an update has told nothing.
func notBegun(s *projection.State, expected []*projection.Row) (names []string) {
	for _, r := range expected {
		if known := s.ByURN[r.URN]; known == nil || known.Phase == projection.PhaseWaiting {
			names = append(names, label(r))
		}
	}
	return names
}

// countUndone counts the resources whose steps failed, and names those whose steps were cut off.
func countUndone(rows []*projection.Row) (wrong int, cut []string) {
	for _, r := range rows {
		switch {
		case r.Type == projection.StackType || r.Internal():
		case r.Phase == projection.PhaseRunning, r.CutOff():
			cut = append(cut, label(r))
		case r.Phase == projection.PhaseFailed:
			wrong++
		}
	}
	return wrong, cut
}
