package workflows

import (
	"fmt"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

func TestWhatIsReadBeforeItCanBeShownHasOneEvent(t *testing.T) {
	stored := storedThings(3)
	emit := func(kind engine.EmitKind, step engine.StepKind, i int) engine.Emit {
		return engine.Emit{Kind: kind, Op: i + 1, Step: step, URN: stored[i].URN, Old: &stored[i], New: &stored[i]}
	}
	var s saver
	shown := func() (events []string) {
		for _, e := range s.nextSave(saveBytes).Events {
			events = append(events, fmt.Sprint(e.Kind, e.Op))
			if w := e.Whole(); !e.Unchanged || e.New != nil || w.New != e.Old {
				t.Errorf("an equal state travels twice: %+v", e)
			}
		}
		return events
	}
	s.add(nil, emit(engine.EmitPre, engine.StepRefresh, 0), emit(engine.EmitPre, engine.StepRefresh, 1),
		emit(engine.EmitPre, engine.StepSame, 2), emit(engine.EmitOutputs, engine.StepSame, 2))
	s.add(nil, emit(engine.EmitOutputs, engine.StepRefresh, 0))
	s.showBegun()
	if got := shown(); !slices.Equal(got, []string{"outputs3", "outputs1", "pre2"}) {
		t.Errorf("the first save shows %v", got)
	}
	s.add(nil, emit(engine.EmitOutputs, engine.StepRefresh, 1))
	if got := shown(); !slices.Equal(got, []string{"outputs2"}) || s.unsaved() {
		t.Errorf("the second save shows %v", got)
	}
}

func TestASaveThatIsFullDoesNotWaitForTheTimer(t *testing.T) {
	var s saver
	for range saveItems {
		s.add(nil, engine.Emit{Kind: engine.EmitDiagnostic})
	}
	if s.full() {
		t.Errorf("%d events are full", saveItems)
	}
	if s.add(nil, engine.Emit{Kind: engine.EmitDiagnostic}); !s.full() {
		t.Errorf("%d events are not full", len(s.events))
	}
}
