package activities

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// inquire asks the worker about a lost attempt in a round, as its own host and as another one does.
func (h *house) inquire(s engine.Step, round int) engine.StepFinished {
	h.t.Helper()
	s.URN, s.Type, s.Provider, s.Seed = thingURN, thingType, h.toy(), seedOf(thingURN)
	in := deployments.SettleInput{Update: h.update, Base: h.base, Round: round, Settle: engine.Settle{Step: s},
		Worker: h.acts.Worker}
	settled, err := call[engine.StepFinished](h, h.acts.Settle, in)
	if err != nil {
		h.t.Fatal(err)
	}
	inquired, err := call[engine.StepFinished](h, h.acts.AskFormerWorker, in)
	if err != nil {
		h.t.Fatal(err)
	}
	// What the worker does not know, settling asks the provider.
	if inquired.Outcome != engine.OutcomeUnknown && (inquired.Outcome != settled.Outcome || inquired.ID != settled.ID) {
		h.t.Errorf("inquired %+v, settled %+v", inquired, settled)
	}
	return inquired
}

// The heartbeats of these attempts are accepted, and their ends are not.
func TestAWorkerRemembersWhatItCouldNotReport(t *testing.T) {
	for name, c := range map[string]struct {
		inputs  []string
		outcome engine.Outcome
	}{
		"what was made":             {[]string{"name", "n"}, engine.OutcomeDone},
		"what is half made":         {[]string{"name", "n", "do", "half"}, engine.OutcomePartial},
		"what was refused":          {[]string{"name", "n", "do", "refuse"}, engine.OutcomeFailed},
		"what was rejected for now": {[]string{"name", "n", "do", "busy"}, engine.OutcomeAbsent},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := bench(t, nil)
			h.unheard = true
			step := h.create(texts(c.inputs...))
			made, _ := h.step(step, 1)
			if got := h.inquire(step, 1); got.Outcome != c.outcome || got.ID != made.ID {
				t.Errorf("it remembers %+v of %+v", got, made)
			}
		})
	}
}

func TestWhatTemporalDidNotAcceptIsStored(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	h.unheard = true
	step := h.create(texts("name", "n"))
	made, err := h.step(step, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.reported(errors.New("the activity has timed out"))
	waittest.Until(t, "the outcome is stored", func() bool {
		left, err := h.store.Updates.Outcome(t.Context(), h.update, step.Op, 1)
		return err == nil && left != nil && left.ID == made.ID
	})
}

// If all is lost that is known of a stack, the first update of the one that is made again in its place has the same
// name, also where the workers go on.
func TestAnAnswerForAFormerStackIsNoneForALaterOne(t *testing.T) {
	t.Parallel()
	objects := &bucket.Memory{}
	h := newHouseOn(t, objects)
	h.claim(deployments.UpdateRequest{Kind: engine.KindUp})
	h.unheard = true
	step := h.create(texts("name", "n"))
	if _, err := h.step(step, 1); err != nil {
		t.Fatal(err)
	}
	former := h.update
	storetest.Lose(t, objects)
	if err := h.store.CreateStack(t.Context(), testStack, nil); err != nil {
		t.Fatal(err)
	}
	h.claim(deployments.UpdateRequest{Kind: engine.KindUp})
	if h.update != former {
		t.Fatalf("it is update %s, and was %s", h.update, former)
	}
	if got := h.inquire(step, 1); got.Outcome != engine.OutcomeAbsent {
		t.Errorf("the later stack's worker knows %+v", got)
	}
	if _, err := h.step(step, 1); err != nil {
		t.Errorf("its step: %v", err)
	}
}

func TestThatThereWasNoEffectIsTrueOnlyUntilTheNextAttempt(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	h.unheard = true
	busy := h.create(texts("name", "n", "do", "busy"))
	_, _ = h.step(busy, 1)
	h.reported(errors.New("no connection"))
	dies := h.create(texts("name", "n", "do", "die-after"))
	if _, err := h.step(dies, 1); errorType(err) != deployments.ErrorUnknownOutcome {
		t.Fatal(err)
	}
	if got := h.inquire(dies, 1); got.Outcome != engine.OutcomeUnknown {
		t.Errorf("after an attempt that may have had its effect: %+v", got)
	}
}

func TestAWorkerKnowsWhatItHasNotSent(t *testing.T) {
	t.Parallel()
	h := bench(t, nil) // no rule says how to find a thing
	step := h.create(texts("name", "n"))
	if got := h.inquire(step, 1); got.Outcome != engine.OutcomeAbsent {
		t.Errorf("an attempt that never called: %+v", got)
	}
	if got, err := h.settleStep(step); err != nil || got.Outcome != engine.OutcomeUndecidable {
		t.Errorf("an attempt of another worker: %+v, %v", got, err)
	}
}

// Temporal may have given a worker, which was about to end, a step that it never saw.
func TestAWorkerThatHasEndedInOrderHasToldWhatItSent(t *testing.T) {
	t.Parallel()
	for name, departs := range map[string]bool{"it has ended in order": true, "it was killed": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			objects := &bucket.Memory{}
			h := newHouseOn(t, objects) // no rule says how to find a thing
			h.update = deployments.UpdateName{StackName: testStack, Version: "1"}
			in := deployments.ClaimInput{Update: h.update, Number: 1, Request: deployments.UpdateRequest{Stack: testStack,
				Kind: engine.KindDestroy, Submitted: h.submitted(testStack), Environment: h.env}}
			if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err != nil {
				t.Fatal(err)
			}
			sent := h.create(texts("name", "n", "do", "die-after"))
			if _, err := h.step(sent, 1); errorType(err) != deployments.ErrorUnknownOutcome {
				t.Fatal(err)
			}
			former, unseen, outcome := h.acts, sent, engine.OutcomeUndecidable
			unseen.Op++
			if departs {
				outcome = engine.OutcomeAbsent
				Depart(t.Context(), former)
				if _, err := h.step(unseen, 1); errorType(err) != deployments.ErrorPostponed {
					t.Errorf("it goes on to send calls: %v", err)
				}
			}
			h.another(objects)
			in.Number++
			if _, err := call[deployments.Claimed](h, h.acts.ClaimStack, in); err != nil {
				t.Fatal(err)
			}
			for _, lost := range []struct {
				step    engine.Step
				outcome engine.Outcome
			}{{sent, engine.OutcomeUndecidable}, {unseen, outcome}} {
				if got := h.settleLost(lost.step, former.Worker); got.Outcome != lost.outcome {
					t.Errorf("step %d: %+v", lost.step.Op, got)
				}
			}
		})
	}
}

// settleLost settles an attempt that was lost with another worker.
func (h *house) settleLost(s engine.Step, worker string) engine.StepFinished {
	h.t.Helper()
	s.URN, s.Type, s.Provider, s.Seed = thingURN, thingType, h.toy(), seedOf(thingURN)
	got, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{Update: h.update, Base: h.base,
		Round: 1, Settle: engine.Settle{Step: s}, Worker: worker})
	if err != nil {
		h.t.Fatal(err)
	}
	return got
}

func TestAnotherWorkerIsAnsweredOnceTheCallHasReturned(t *testing.T) {
	t.Parallel()
	h := bench(t, nil)
	step := h.create(texts("name", "n", "do", "hang"))
	done := make(chan engine.StepFinished, 1)
	h.unheard = true
	go func() {
		result, err := h.step(step, 1)
		if err != nil {
			t.Error(err)
		}
		done <- result
	}()
	h.awaitHang()
	inquired := make(chan engine.StepFinished, 1)
	go func() { inquired <- h.inquire(step, 1) }()
	if err := h.endHang(); err != nil { // lets the call answer
		t.Fatal(err)
	}
	if result, got := <-done, <-inquired; got.Outcome != engine.OutcomeDone || got.ID != result.ID {
		t.Errorf("it is told %+v of %+v", got, result)
	}
}

func TestAnAnswerThatComesAfterTheUpdateIsFoundByTheNext(t *testing.T) {
	t.Parallel()
	h := bench(t, nil) // no rule says how to find a thing
	h.unheard = true
	step := h.create(texts("name", "n"))
	made, err := h.step(step, 1)
	if err != nil {
		t.Fatal(err)
	}
	h.reported(errors.New("the workflow is closed"))
	waittest.Until(t, "what was made is stored", func() bool {
		id, err := h.store.Creates.Made(t.Context(), testStack, seedOf(thingURN))
		return err == nil && id == made.ID
	})
	next := step
	next.Op = 7
	next.URN, next.Type, next.Provider, next.Seed = thingURN, thingType, h.toy(), seedOf(thingURN)
	settle := func() engine.StepFinished {
		t.Helper()
		found, err := call[engine.StepFinished](h, h.acts.Settle, deployments.SettleInput{Update: h.update, Base: h.base,
			Settle: engine.Settle{Step: next}})
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if found := settle(); found.Outcome != engine.OutcomeDone || found.ID != made.ID || found.Op != 7 {
		t.Errorf("the next update finds %+v of %+v", found, made)
	}
	if err := os.Remove(filepath.Join(h.world, made.ID)); err != nil {
		t.Fatal(err)
	}
	if found := settle(); found.Outcome != engine.OutcomeAbsent {
		t.Errorf("once somebody has deleted it, the next update finds %+v", found)
	}
}
