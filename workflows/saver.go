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

// last gives the last save, when the Run's result can carry it, and makes all before.
func (s *saver) last(ctx workflow.Context) (*deployments.SaveInput, error) {
	for s.flight != nil {
		if err := workflow.Await(ctx, s.flight.IsReady); err != nil {
			return nil, err
		}
		s.land(ctx)
	}
	if s.failed == nil && s.unsaved() && s.portion(carryBytes) == (portion{len(s.deltas), len(s.events)}) {
		return s.take(carryBytes), nil
	}
	return nil, s.flush(ctx)
}

// portion says how many deltas and events one save holds.
type portion struct{ deltas, events int }

func (s *saver) portion(bytes int) portion {
	return portion{
		fits(len(s.deltas), saveItems, bytes, func(i int) int { return deltaSize(s.deltas[i]) }),
		fits(len(s.events), saveItems, bytes, func(i int) int { return emitSize(s.events[i]) }),
	}
}

// take makes the next save of as much as one holds.
func (s *saver) take(bytes int) *deployments.SaveInput {
	s.number++
	p := s.portion(bytes)
	in := &deployments.SaveInput{
		Update: s.update, Base: s.base, Number: s.number, Deltas: s.deltas[:p.deltas:p.deltas],
		Events: s.events[:p.events:p.events],
	}
	s.deltas, s.events = s.deltas[p.deltas:], s.events[p.events:]
	return in
}

// begin starts a save of as much as one holds, unless one is under way.
func (s *saver) begin(ctx workflow.Context) {
	if s.flight != nil || s.failed != nil || !s.unsaved() {
		return
	}
	s.sent = s.take(saveBytes)
	s.flight = workflow.ExecuteActivity(onShared(ctx, fmt.Sprintf("save %d", s.number)), deployments.ActivitySave,
		*s.sent)
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
