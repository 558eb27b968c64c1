package workflows

import (
	"fmt"
	"slices"

	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// saver makes deltas durable and events visible beside the loop: one save at a time, in order, saveEvery after
// something new has come.
type saver struct {
	update deployments.UpdateName
	base   int
	number int // of the last save begun

	deltas []engine.Delta
	events []engine.Emit
	begun  []*engine.Emit // of refreshes: shown with what is due or last, unless they end before

	flight workflow.Future        // the save in flight, or nil
	sent   *deployments.SaveInput // the last save begun, or left to the commit, until it has succeeded
	timer  workflow.Future        // until the next save, or nil
	failed error                  // why nothing can be saved any more; what is not saved is kept for recovery
}

func (s *saver) unsaved() bool { return len(s.deltas)+len(s.events)+len(s.begun) > 0 }

// add takes new deltas and events. What stays the same, and what is read before anybody could see that it is being
// read, has one event: there may be very many.
func (s *saver) add(deltas []engine.Delta, events ...engine.Emit) {
	s.deltas = append(s.deltas, deltas...)
	for _, e := range events {
		begins := e.Kind == engine.EmitPre
		switch {
		case begins && e.Step == engine.StepSame:
		case begins && e.Step == engine.StepRefresh:
			e = e.Compact()
			s.begun = append(s.begun, &e)
		default:
			s.begun = slices.DeleteFunc(s.begun, func(b *engine.Emit) bool { return b.Op == e.Op && b.URN == e.URN })
			s.events = append(s.events, e.Compact())
		}
	}
}

// showBegun queues the events of what is still being read.
func (s *saver) showBegun() {
	for _, e := range s.begun {
		s.events = append(s.events, *e)
	}
	s.begun = nil
}

// hasWork reports whether tick has something to do.
func (s *saver) hasWork() bool {
	return s.flight != nil && s.flight.IsReady() || s.timer != nil && s.timer.IsReady()
}

// tick handles a save that has ended and starts the next one when it is due, or when it is full.
func (s *saver) tick(ctx workflow.Context) {
	s.collectResult(ctx)
	if s.timer != nil && s.timer.IsReady() {
		s.timer = nil
		s.showBegun()
		s.startSave(ctx)
	}
	if s.flight == nil && s.full() {
		s.startSave(ctx)
	}
	if s.unsaved() && s.failed == nil && s.flight == nil && s.timer == nil {
		s.timer = workflow.NewTimerWithOptions(ctx, saveEvery, workflow.TimerOptions{Summary: "save soon"})
	}
}

// flush saves everything and waits for it.
func (s *saver) flush(ctx workflow.Context) error {
	s.showBegun()
	for s.flight != nil || s.unsaved() && s.failed == nil {
		s.startSave(ctx)
		if err := workflow.Await(ctx, s.flight.IsReady); err != nil {
			return err
		}
		s.collectResult(ctx)
	}
	return s.failed
}

// finalSave returns the last save, if the Run's result can carry it; otherwise it makes all saves and returns nil.
func (s *saver) finalSave(ctx workflow.Context) (*deployments.SaveInput, error) {
	s.showBegun()
	for s.flight != nil {
		if err := workflow.Await(ctx, s.flight.IsReady); err != nil {
			return nil, err
		}
		s.collectResult(ctx)
	}
	if s.failed == nil && s.unsaved() && s.portion(finalSaveBytes) == s.all() {
		s.sent = s.nextSave(finalSaveBytes)
		return s.sent, nil
	}
	return nil, s.flush(ctx)
}

// portion is the number of deltas and events in one save.
type portion struct{ deltas, events int }

func (s *saver) portion(bytes int) portion {
	return portion{
		fits(len(s.deltas), saveItems, bytes, func(i int) int { return deltaSize(s.deltas[i]) }),
		fits(len(s.events), saveItems, bytes, func(i int) int { return emitSize(s.events[i]) }),
	}
}

// full reports whether there is more than one save holds.
func (s *saver) full() bool { return s.portion(saveBytes) != s.all() }

func (s *saver) all() portion { return portion{len(s.deltas), len(s.events)} }

// nextSave returns a save of as much as one holds, and removes that from the queue.
func (s *saver) nextSave(bytes int) *deployments.SaveInput {
	s.number++
	p := s.portion(bytes)
	in := &deployments.SaveInput{
		Update: s.update, Base: s.base, Number: s.number, Deltas: s.deltas[:p.deltas:p.deltas],
		Events: s.events[:p.events:p.events],
	}
	s.deltas, s.events = s.deltas[p.deltas:], s.events[p.events:]
	return in
}

// startSave starts a save of as much as one holds, unless one is in flight.
func (s *saver) startSave(ctx workflow.Context) {
	if s.flight != nil || s.failed != nil || !s.unsaved() {
		return
	}
	s.sent = s.nextSave(saveBytes)
	s.flight = execute(onShared(ctx, fmt.Sprintf("save %d", s.number)), deployments.ActivitySave,
		*s.sent)
}

// collectResult handles a save that has ended. A save that fails is not repeated: another writer has the stack, or what
// is stored cannot be read. Nothing can be saved then; failed says why.
func (s *saver) collectResult(ctx workflow.Context) {
	if s.flight == nil || !s.flight.IsReady() {
		return
	}
	if err := s.flight.Get(ctx, nil); err != nil {
		s.failed = err
	} else {
		s.sent = nil
	}
	s.flight = nil
}

// made returns the number of the last save that was made, or is left to the commit.
func (s *saver) made() int {
	if s.failed != nil && s.sent != nil {
		return s.sent.Number - 1
	}
	return s.number
}

// lost reports whether there are changes of the state that cannot be saved.
func (s *saver) lost() bool {
	return s.failed != nil && (len(s.deltas) > 0 || s.sent != nil && len(s.sent.Deltas) > 0)
}

// unconfirmed returns the saves that are not known to be made: the one in flight, and one of everything else.
func (s *saver) unconfirmed() []deployments.SaveInput {
	var saves []deployments.SaveInput
	s.showBegun()
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
