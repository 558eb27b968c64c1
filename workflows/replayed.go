package workflows

import (
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// Replayed is a Run that was closed from outside, as the replay of its history rebuilt it (see Settings.OnRun). Its
// state is that of the Run when it was closed.
type Replayed struct{ run *run }

// Broken returns the error of a Run that panicked, whose core cannot be used; nil otherwise.
func (m *Replayed) Broken() error {
	if m.run.broken {
		return errDefect
	}
	return nil
}

// Salvage is what recovery still has to write for a Run that was closed from outside.
type Salvage struct {
	// Saves are, in order, the save that was in flight, which may have been made, and one save of everything after it.
	Saves []deployments.SaveInput
	// Last is the number of the last save, whether or not it is among Saves.
	Last    int
	Changes map[string]int
}

// OutcomeOf returns the outcome of an operation whose step, or its settling, was in flight in a round; false if it is
// not known.
type OutcomeOf func(op, round int) (engine.StepFinished, bool)

// Finish ends the Run at once, as a cancel would: operations that had not begun are dropped, those in flight end with
// their known outcome, and those without one become pending operations. Call it once, after the replay.
func (m *Replayed) Finish(outcomeOf OutcomeOf) Salvage {
	r := m.run
	if r.core == nil { // it had not begun
		return Salvage{Last: r.saver.number}
	}
	r.handle(engine.Cancelled{})
	// That a step was not started is believed of the live Run, whose worker knows better; here the history must say it.
	var others []call
	for _, c := range r.waitingForWorker {
		if c.name == deployments.ActivityStep {
			r.flights = append(r.flights, flight{call: c})
		} else {
			others = append(others, c)
		}
	}
	r.waitingForWorker = others
	for _, c := range slices.Clone(r.waitingForWorker) {
		for _, op := range slices.Clone(c.ops) {
			r.abandon(op)
		}
	}
	for _, f := range r.flights {
		op, round := f.stepRound()
		if op == 0 {
			continue
		}
		finished, ok := outcomeOf(op, round)
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
	return Salvage{Saves: r.saver.unconfirmed(), Last: r.saver.number, Changes: r.core.Progress().Done}
}
