package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/projection"
)

// statusLine returns the progress and the duration of an update: "up: 37 of 61 done, 16 running, 1m12s".
func statusLine(s *projection.State, o Options, paint painter) string {
	n, now := s.Tally(), o.Now()
	took := ""
	if d := now.Sub(s.StartedBy(now)).Truncate(time.Second); d >= time.Second {
		took = ", " + elapsed(d)
	}
	phase := phaseText(s, now)
	if phase != "" && n == (projection.Tally{}) {
		return fmt.Sprintf("%s: %s", o.what(), phase)
	}
	text := fmt.Sprintf("%s: %d done", o.what(), n.Done)
	if o.Total > 0 && n.Done <= o.Total {
		text = fmt.Sprintf("%s: %d of %d done", o.what(), n.Done, o.Total)
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
	interrupted := ""
	if len(cut) > 0 {
		interrupted = "cut off: " + strings.Join(cut[:min(len(cut), mostCut)], ", ")
		if more := len(cut) - mostCut; more > 0 {
			interrupted += fmt.Sprintf(" and %d more", more)
		}
	}
	n := s.Tally()
	rest := 0
	if o.Total > 0 {
		rest = o.Total - n.Done - n.Failed - n.Running - n.Turnless
	}
	var out []string
	for _, part := range []struct {
		n    int
		word string
	}{{wrong, "failed"}, {len(cut), interrupted}, {rest, "not begun"}} {
		if part.n > 0 {
			out = append(out, fmt.Sprintf("  %s %d %s", paint.paint(red, "!"), part.n, part.word))
		}
	}
	return out
}

// mostCut is how many resources are named whose steps were cut off.
const mostCut = 3

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
