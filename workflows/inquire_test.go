package workflows

import (
	"slices"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// silence and notBegun are the errors of an activity whose worker does not respond, and of one that no worker has
// begun in time. The test environment, unlike Temporal, would repeat bare timeouts.
var (
	silence  = temporal.NewNonRetryableApplicationError("", "Timeout", temporal.NewHeartbeatTimeoutError())
	notBegun = temporal.NewNonRetryableApplicationError("", "Timeout",
		temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil))
)

func TestTheWorkerOfALostCreateIsAskedBeforeItIsMadeAgainOrLeft(t *testing.T) {
	says := func(outcome engine.Outcome) func(int) (engine.StepFinished, error) {
		return func(int) (engine.StepFinished, error) {
			known := engine.StepFinished{Outcome: outcome, ID: "id-thing-a", At: "2026-01-01T00:00:00Z"}
			if outcome == engine.OutcomeFailed {
				known.Error = "not allowed"
			}
			return known, nil
		}
	}
	isSilent := func(int) (engine.StepFinished, error) { return engine.StepFinished{}, notBegun }
	for name, c := range map[string]struct {
		found     engine.Outcome // by the worker that has taken over
		answering func(*world) func(int) (engine.StepFinished, error)
		earlier   bool // the update is one of an earlier build
		asked     int
		calls     int // of the create
		status    engine.Status
	}{
		"it has the answer to what cannot be found": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) { return says(engine.OutcomeDone) },
			false, 1, 1, engine.StatusSucceeded},
		"it has the answer to what is not there yet": {engine.OutcomeAbsent,
			func(*world) func(int) (engine.StepFinished, error) { return says(engine.OutcomeDone) },
			false, 1, 1, engine.StatusSucceeded},
		"it was refused": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) { return says(engine.OutcomeFailed) },
			false, 1, 1, engine.StatusFailed},
		"it has not sent the call": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) { return says(engine.OutcomeAbsent) },
			false, 1, 2, engine.StatusSucceeded},
		"it knows nothing": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) { return says(engine.OutcomeUnknown) },
			false, 1, 1, engine.StatusFailed},
		"it has ended for certain": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) {
				return func(int) (engine.StepFinished, error) { return engine.StepFinished{}, errNotStarted }
			}, false, 1, 1, engine.StatusFailed},
		"it is silent": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) { return isSilent },
			false, maxSilencesUndecidable, 1, engine.StatusFailed},
		"it is silent about what is not there": {engine.OutcomeAbsent,
			func(*world) func(int) (engine.StepFinished, error) { return isSilent },
			false, maxSilencesAbsent, 2, engine.StatusSucceeded},
		"both are silent, since Temporal is slow": {engine.OutcomeUndecidable,
			func(w *world) func(int) (engine.StepFinished, error) {
				return func(n int) (engine.StepFinished, error) {
					if w.dead["second"] = n < 6; n < 6 {
						return engine.StepFinished{}, notBegun
					}
					return says(engine.OutcomeDone)(n)
				}
			}, false, 6, 1, engine.StatusSucceeded},
		"an earlier build has not asked it": {engine.OutcomeUndecidable,
			func(*world) func(int) (engine.StepFinished, error) { return says(engine.OutcomeDone) },
			true, 0, 1, engine.StatusFailed},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), &program{names: names(1)}
			w.settled = c.found
			w.outcomes["thing-a"] = func(n int) error {
				if n == 1 {
					return silence
				}
				return nil
			}
			w.answering = c.answering(w)
			out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
				if c.earlier {
					env.OnGetVersion(inquiries, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
				}
			})
			if out.Result.Status != c.status || len(w.inquired) != c.asked || w.calls["thing-a"] != c.calls ||
				slices.Contains(w.inquired, "second") {
				t.Errorf("came to %+v after %d calls; asked were %v", out.Result, w.calls["thing-a"], w.inquired)
			}
			if _, pending := w.snapshot(t); (pending == 1) != (c.status == engine.StatusFailed && c.found ==
				engine.OutcomeUndecidable && name != "it was refused") {
				t.Errorf("%d operations are pending", pending)
			}
		})
	}
}

func TestAWorkerThatHasSaidItselfThatItLostAnAnswerIsNotAskedAgain(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.settled = engine.OutcomeUndecidable
	w.outcomes["thing-a"] = func(int) error { return errUnknown }
	perform(t, w, p, deployments.RunInput{}, nil)
	if len(w.looked) != 1 || len(w.inquired) > 0 {
		t.Errorf("looked %v, asked %v", w.looked, w.inquired)
	}
}

func TestAForcedCancelAsksNoWorkerAboutALostCreate(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.settled = engine.OutcomeUndecidable
	w.outcomes["thing-a"] = func(int) error { return silence }
	w.answering = func(int) (engine.StepFinished, error) { return engine.StepFinished{}, notBegun }
	out, _ := perform(t, w, p, deployments.RunInput{}, p.cancelledByForce(5*time.Second))
	if _, pending := w.snapshot(t); out.Result.Status != engine.StatusCancelled || len(w.inquired) > 1 || pending != 1 {
		t.Errorf("came to %+v, asked %v, %d pending", out.Result, w.inquired, pending)
	}
}
