package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// saver makes deltas durable and events visible beside the loop: after a while when there is something new, one save
// at a time, in order.
type saver struct {
	update deployments.UpdateName
	base   int
	number int // of the last save begun

	deltas []engine.Delta
	events []engine.Emit

	flight workflow.Future        // the save under way, or nil
	sent   *deployments.SaveInput // the last save begun, until it is known to be made
	timer  workflow.Future        // until the next, or nil
	failed error                  // why nothing can be saved any more
}

func (s *saver) unsaved() bool { return len(s.deltas)+len(s.events) > 0 }

// add takes what is new.
func (s *saver) add(deltas []engine.Delta, events ...engine.Emit) {
	if s.failed == nil {
		s.deltas, s.events = append(s.deltas, deltas...), append(s.events, events...)
	}
}

// awake reports that tick has something to do.
func (s *saver) awake() bool {
	return s.flight != nil && s.flight.IsReady() || s.timer != nil && s.timer.IsReady()
}

// tick keeps the rhythm.
func (s *saver) tick(ctx workflow.Context) {
	s.land(ctx)
	if s.timer != nil && s.timer.IsReady() {
		s.timer = nil
		s.begin(ctx)
	}
	if s.unsaved() && s.flight == nil && s.timer == nil {
		s.timer = workflow.NewTimerWithOptions(ctx, saveEvery, workflow.TimerOptions{Summary: "save soon"})
	}
}

// flush saves everything and waits for it.
func (s *saver) flush(ctx workflow.Context) error {
	for s.flight != nil || s.unsaved() && s.failed == nil {
		s.begin(ctx)
		if err := workflow.Await(ctx, s.flight.IsReady); err != nil {
			return err
		}
		s.land(ctx)
	}
	return s.failed
}

// begin starts a save of as much as one holds, unless one is under way.
func (s *saver) begin(ctx workflow.Context) {
	if s.flight != nil || s.failed != nil || !s.unsaved() {
		return
	}
	s.number++
	in := deployments.SaveInput{Update: s.update, Base: s.base, Number: s.number}
	n := fits(len(s.deltas), saveItems, saveBytes, func(i int) int { return deltaSize(s.deltas[i]) })
	in.Deltas, s.deltas = s.deltas[:n:n], s.deltas[n:]
	n = fits(len(s.events), saveItems, saveBytes, func(i int) int { return emitSize(s.events[i]) })
	in.Events, s.events = s.events[:n:n], s.events[n:]
	s.sent = &in
	s.flight = workflow.ExecuteActivity(onShared(ctx, fmt.Sprintf("save %d", s.number)), deployments.ActivitySave, in)
}

// land takes note of a save that has ended. A save fails only for good: the stack belongs to another writer, or
// what is stored cannot be read.
func (s *saver) land(ctx workflow.Context) {
	if s.flight == nil || !s.flight.IsReady() {
		return
	}
	if err := s.flight.Get(ctx, nil); err != nil {
		s.failed = err
		s.deltas, s.events = nil, nil
	} else {
		s.sent = nil
	}
	s.flight = nil
}

// rest gives the saves that are not known to be made: the one under way, and one of everything else.
func (s *saver) rest() []deployments.SaveInput {
	var saves []deployments.SaveInput
	if s.sent != nil {
		saves = append(saves, *s.sent)
	}
	if s.unsaved() {
		s.number++
		saves = append(saves, deployments.SaveInput{
			Update: s.update, Base: s.base, Number: s.number, Deltas: s.deltas, Events: s.events,
		})
	}
	return saves
}
