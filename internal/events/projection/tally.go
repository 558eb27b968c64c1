package projection

import (
	"reflect"
	"strings"
	"time"
)

// Tally is how many rows stand where. The stack and the providers that nobody declared are not among them, and
// components only once they are done: they have no steps that run.
type Tally struct{ Running, Turnless, Done, Failed int }

// Tally counts the rows by phase.
func (s *State) Tally() Tally {
	var n Tally
	for _, r := range s.Rows {
		if r.Type == StackType || r.Internal() {
			continue
		}
		switch r.Phase {
		case PhaseDone:
			n.Done++
		case PhaseFailed:
			n.Failed++
		}
	}
	for _, r := range s.Issued {
		switch {
		case r.Internal():
		case r.Turnless:
			n.Turnless++
		default:
			n.Running++
		}
	}
	return n
}

// Told are the rows of the resources of which the update will tell, if this is the state of its preview.
func (s *State) Told() (rows []*Row) {
	for _, r := range s.Rows {
		if r.Type != StackType && !r.Internal() && r.Phase != PhaseWaiting {
			rows = append(rows, r)
		}
	}
	return rows
}

// StartedBy is when the first item came, or a moment that is given.
func (s *State) StartedBy(now time.Time) time.Time {
	if s.Begun.IsZero() {
		s.Begun = now
	}
	return s.Begun
}

// CutOff says whether a step ended because its update was cancelled, and not by an error: then its last diagnostic says
// so.
func (r *Row) CutOff() bool {
	if r.Phase != PhaseFailed || len(r.Diags) == 0 {
		return false
	}
	last := r.Diags[len(r.Diags)-1]
	return last.Severity == "warning" && strings.HasPrefix(strings.TrimPrefix(last.Message, "warning: "), "cut off")
}

// OutputsChanged says whether the stack's outputs are other than before.
func (s *State) OutputsChanged() bool {
	return len(s.Outputs)+len(s.Previous) > 0 && !reflect.DeepEqual(s.Outputs, s.Previous)
}
