package display

import (
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// tally is how many rows stand where. The stack and the providers that nobody declared are not among them, and
// components only once they are done: they have no steps that run.
type tally struct{ running, turnless, done, failed int }

func (s *State) tally() tally {
	var n tally
	for _, r := range s.Rows {
		if r.Type == stackType || r.internal() {
			continue
		}
		switch r.Phase {
		case done:
			n.done++
		case failed:
			n.failed++
		}
	}
	for _, r := range s.issued {
		switch {
		case r.internal():
		case r.Turnless:
			n.turnless++
		default:
			n.running++
		}
	}
	return n
}

// Total is of how many resources the update will tell, if this is the state of its preview.
func (s *State) Total() int {
	total := 0
	for _, r := range s.Rows {
		if r.Type != stackType && !r.internal() && r.Phase != waiting {
			total++
		}
	}
	return total
}

// status says how far an update is, and for how long it has been running: "up: 37 of 61 done, 16 running, 1m12s".
func (s *State) status(o Options, paint painter) string {
	n, now := s.tally(), o.Now()
	took := ""
	if d := now.Sub(s.begun(now)).Truncate(time.Second); d >= time.Second {
		took = ", " + elapsed(d)
	}
	phase := s.phase(now)
	if phase != "" && n == (tally{}) {
		return fmt.Sprintf("%s: %s", o.what(), phase)
	}
	text := fmt.Sprintf("%s: %d done", o.what(), n.done)
	if o.Total > 0 && n.done <= o.Total {
		text = fmt.Sprintf("%s: %d of %d done", o.what(), n.done, o.Total)
	}
	text += fmt.Sprintf(", %d running", n.running)
	if n.turnless > 0 {
		text += fmt.Sprintf(", %d waiting for their turn", n.turnless)
	}
	if n.failed > 0 {
		text += ", " + paint.paint(red, fmt.Sprintf("%d failed", n.failed))
	}
	if text += took; phase != "" {
		text += ", " + phase
	}
	return text
}

// what names the update: "preview" or its kind.
func (o Options) what() string {
	if o.Preview {
		return "preview"
	}
	return o.Kind
}

// begun is when the first item came, or a moment that is given.
func (s *State) begun(now time.Time) time.Time {
	if s.Begun.IsZero() {
		s.Begun = now
	}
	return s.Begun
}

// phase says what is being done besides steps, and for how long.
func (s *State) phase(now time.Time) string {
	p := s.Progress.Phase
	if p == nil || p.Text == "" {
		return ""
	}
	return p.Text + " (" + elapsed(max(0, now.Sub(p.Since)).Truncate(time.Second)) + ")"
}

// undone tells of what an update that did not succeed has left: steps that failed or were cut off, and resources to
// which it did not come.
func (s *State) undone(o Options, paint painter) []string {
	if s.End == nil || s.End.Status == deployments.StatusSucceeded {
		return nil
	}
	wrong, cut := 0, 0
	for _, r := range s.Rows {
		switch {
		case r.Type == stackType || r.internal():
		case r.Phase == running, r.cutOff():
			cut++
		case r.Phase == failed:
			wrong++
		}
	}
	n := s.tally()
	rest := 0
	if o.Total > 0 {
		rest = o.Total - n.done - n.failed - n.running - n.turnless
	}
	var out []string
	for _, part := range []struct {
		n    int
		word string
	}{{wrong, "failed"}, {cut, "cut off"}, {rest, "not begun"}} {
		if part.n > 0 {
			out = append(out, fmt.Sprintf("  %s %d %s", paint.paint(red, "!"), part.n, part.word))
		}
	}
	return out
}

// cutOff says whether a step ended because its update was cancelled, and not by an error: then its last diagnostic says
// so.
func (r *Row) cutOff() bool {
	if r.Phase != failed || len(r.Diags) == 0 {
		return false
	}
	last := r.Diags[len(r.Diags)-1]
	return last.Severity == "warning" && strings.HasPrefix(strings.TrimPrefix(last.Message, "warning: "), "cut off")
}
