package workflows

import (
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// Remains are what a Run leaves that was closed from outside. A replay of its history brings them about (see
// Settings.Opened): then the Run knows again what it knew when it was closed.
type Remains struct{ run *run }

// Broken is the error of a Run that has panicked, whose core cannot be asked; nil otherwise.
func (m *Remains) Broken() error {
	if m.run.broken {
		return errDefect
	}
	return nil
}

// Ending is how what remains of a Run is brought to its end.
type Ending struct {
	// Saves are the one that was under way, which may have been made, and one of everything that is left; in order.
	Saves []deployments.SaveInput
	// Last is the number of the last save, whether it is among Saves or not.
	Last    int
	Changes map[string]int
}

// Known tells what became of an operation whose step, or the settling of it, was in flight in a round; false when
// nobody can tell.
type Known func(op, round int) (engine.StepFinished, bool)

// Close ends the Run as a cancel would, at once: what had not begun is not begun, what was in flight came to what is
// known of it, and where nothing is known the step stands as a pending operation. Close it once, after the replay.
func (m *Remains) Close(known Known) Ending {
	r := m.run
	if r.core == nil { // it had not begun
		return Ending{Last: r.saver.number}
	}
	r.handle(engine.Cancelled{})
	for _, c := range slices.Clone(r.parked) {
		r.abandon(c.op)
	}
	for _, f := range r.flights {
		op, round := f.stepping()
		if op == 0 {
			continue
		}
		finished, ok := known(op, round)
		if !ok {
			finished = engine.StepFinished{Outcome: engine.OutcomeUndecidable,
				Error: "its workflow was ended from outside"}
		}
		finished.Op = op
		r.handle(finished)
	}
	for ready := r.core.Ready(); !ready.Empty(); ready = r.core.Ready() {
		r.saver.add(ready.Changes, ready.Events...)
	}
	return Ending{Saves: r.saver.rest(), Last: r.saver.number, Changes: r.core.Progress().Done}
}
