package step

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/heartbeat"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/host/ratelimit"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// slowNotes is objects whose notes of absence are written when the gate is open.
type slowNotes struct {
	bucket.Memory
	gate  chan struct{}
	begun int
}

func (s *slowNotes) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if creates.OfSeveral(key) {
		s.begun++
		<-s.gate
	}
	return s.Memory.Put(ctx, key, data, c)
}

// TestOtherStepsRunWhileAnAbsenceIsWritten has one step at a time. Another one takes the turn of a create whose absence
// is being written, and keeps it until the create has waited in vain. The create's next attempt keeps its turn.
func TestOtherStepsRunWhileAnAbsenceIsWritten(t *testing.T) {
	objects := &slowNotes{}
	store, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	u := deployments.UpdateName{Version: "3",
		StackName: deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}}
	if err := store.CreateStack(t.Context(), u.StackName, nil); err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		objects.gate = make(chan struct{})
		s := &Steps{update: u, store: store, parallel: ratelimit.NewSemaphore(1)}
		noted := make(chan error)
		attempting := func() *attempt {
			return &attempt{session: s, heartbeat: heartbeat.New(nil, nil, 0),
				step: engine.Step{Op: 1, Kind: engine.StepCreate, Seed: []byte("seed")}}
		}
		note := func(at *attempt) {
			err := at.takeTurn(t.Context())
			if err == nil {
				err = at.noteAbsence(t.Context(), &lookup.Finder{Rule: &settlerule.Rule{}, ID: "web"})
			}
			noted <- err
		}
		at := attempting()
		go note(at)
		synctest.Wait()
		other := attempting()
		if err := other.takeTurn(t.Context()); err != nil || objects.begun != 1 {
			t.Fatalf("no other step runs while an absence is written (%d): %v", objects.begun, err)
		}
		close(objects.gate)
		if err := <-noted; err == nil || !strings.Contains(err.Error(), "waits for its turn") || at.turn {
			t.Errorf("the create goes on without its turn: %v", err)
		}
		other.endTurn()
		at = attempting()
		go note(at)
		if err := <-noted; err != nil || !at.turn || objects.begun != 1 {
			t.Errorf("the next attempt notes again (%d) or loses its turn (%t): %v", objects.begun, !at.turn, err)
		}
	})
}
