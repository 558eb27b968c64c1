package workflows

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"go.temporal.io/sdk/worker"
)

const anything = mock.Anything

// quiet drops the test environment's log.
type quiet struct{}

func (quiet) Debug(string, ...any) {}
func (quiet) Info(string, ...any)  {}
func (quiet) Warn(string, ...any)  {}
func (quiet) Error(string, ...any) {}

// newEnvironment is a test environment that does not mind how busy the machine is: by default, an environment gives a
// workflow 3 seconds, and each of its tasks one.
func newEnvironment() *testsuite.TestWorkflowEnvironment {
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(quiet{})
	env := suite.NewTestWorkflowEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: waittest.Patience})
	return env
}

// newReplayer is a replayer that does not mind either.
func newReplayer(t testing.TB) worker.WorkflowReplayer {
	t.Helper()
	r, err := worker.NewWorkflowReplayerWithOptions(worker.WorkflowReplayerOptions{DisableDeadlockDetection: true})
	if err != nil {
		t.Fatal(err)
	}
	New(Settings{}).Register(r)
	return r
}

func fromPayloads(e *workflow.ContinueAsNewError, v any) error {
	return converter.GetDefaultDataConverter().FromPayloads(e.Input, v)
}

func names(n int) []string {
	out := make([]string, 0, n)
	for i := range n {
		out = append(out, "thing-"+string(rune('a'+i)))
	}
	return out
}

func wantSnapshot(t *testing.T, w *world, want []string) {
	t.Helper()
	got, pending := w.snapshot(t)
	if !slices.Equal(got, want) || pending != 0 {
		t.Errorf("stored: %v and %d pending operations, want %v and none", got, pending, want)
	}
	for u, n := range w.created {
		if n != 1 {
			t.Errorf("%s was created %d times", u.Name(), n)
		}
	}
}

func TestAProgramsResourcesAreCreatedAndSaved(t *testing.T) {
	w, p := newWorld(), &program{names: names(4)}
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if out.Result.Status != engine.StatusSucceeded || out.Result.Changes["create"] != 4 || out.Saves != len(w.saves) {
		t.Errorf("came to %+v after %d saves", out, len(w.saves))
	}
	wantSnapshot(t, w, names(4))
}

func TestContinuingAsNewAtEveryQuietMomentChangesNothing(t *testing.T) {
	plain, p := newWorld(), &program{names: names(5)}
	want, _ := perform(t, plain, p, deployments.RunInput{}, nil)
	forced, p := newWorld(), &program{names: names(5)}
	got, runs := perform(t, forced, p, deployments.RunInput{ForceContinue: 1}, nil)
	if runs < 5 {
		t.Errorf("the run continued as new %d times only", runs-1)
	}
	a, _ := json.Marshal(want.Result)
	b, _ := json.Marshal(got.Result)
	if string(a) != string(b) {
		t.Errorf("came to %s, want %s", b, a)
	}
	wantSnapshot(t, forced, names(5))
	if plain.events() != forced.events() {
		t.Errorf("told:\n%s\nwant:\n%s", forced.events(), plain.events())
	}
}

func TestACoreThatIsTooLargeForAnInputIsSpilled(t *testing.T) {
	long := names(26)
	for i := range long {
		long[i] += strings.Repeat("x", 30_000)
	}
	w, p := newWorld(), &program{names: long}
	out, runs := perform(t, w, p, deployments.RunInput{ForceContinue: 20}, nil)
	if out.Result.Status != engine.StatusSucceeded || runs < 2 || len(w.aside) < 2 {
		t.Errorf("came to %+v in %d runs, with %d parts put aside", out.Result.Status, runs, len(w.aside))
	}
	wantSnapshot(t, w, long)
}

func TestARunWithALargeBaseMakesProgress(t *testing.T) {
	for _, c := range []struct {
		opened, now int // bytes
		runs        int
	}{
		{softBytes, softBytes, 1},
		{softBytes, 2 * softBytes, 2},
		{fullBytes/2 - 1, fullBytes - 3, 1},
		{fullBytes/2 - 1, fullBytes - 2, 2},
	} {
		w, p := newWorld(), &program{names: names(4)}
		p.at = map[int]func(*testsuite.TestWorkflowEnvironment){2: func(env *testsuite.TestWorkflowEnvironment) {
			env.SetCurrentHistorySize(c.now)
		}}
		out, runs := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
			env.SetCurrentHistorySize(c.opened)
			env.SetContinueAsNewSuggested(true)
		})
		if out.Result.Status != engine.StatusSucceeded || runs != c.runs {
			t.Errorf("%d bytes, then %d: came to %+v in %d runs, not %d", c.opened, c.now, out, runs, c.runs)
		}
		wantSnapshot(t, w, names(4))
	}
}

func TestAStateTooLargeForAHistoryIsRejected(t *testing.T) {
	out, runs := perform(t, newWorld(), &program{names: names(1)}, deployments.RunInput{},
		func(env *testsuite.TestWorkflowEnvironment) {
			env.SetCurrentHistorySize(fullBytes / 2)
		})
	if out.Result.Status != engine.StatusFailed || !strings.Contains(out.Result.Error,
		"divide its resources among several stacks") || runs != 1 {
		t.Errorf("came to %+v in %d runs", out, runs)
	}
}

func TestASlowStepDelaysOthersForAWhileAndWithoutEndOnlyWhenTheHistoryIsFull(t *testing.T) {
	w, p := newWorld(), &program{names: names(5)}
	slow := 8 // minutes
	w.outcomes["thing-a"] = func(n int) error {
		if n <= slow {
			return tooBusy
		}
		return nil
	}
	calls := func(name string) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.calls[name]
	}
	p.at = map[int]func(*testsuite.TestWorkflowEnvironment){3: func(env *testsuite.TestWorkflowEnvironment) {
		env.SetCurrentHistoryLength(fullEvents)
		env.RegisterDelayedCallback(func() {
			if calls("thing-d") > 0 || calls("thing-a") > slow {
				t.Error("a full history takes more while something is under way")
			}
		}, 4*time.Minute)
	}}
	out, runs := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SetCurrentHistoryLength(hardEvents)
			p.next(env)
		}, time.Second)
		env.RegisterDelayedCallback(func() {
			if calls("thing-b") > 0 {
				t.Error("a long history does not wait for a quiet moment")
			}
		}, quiesceFor/2)
		env.RegisterDelayedCallback(func() {
			if calls("thing-b") == 0 || calls("thing-c") == 0 {
				t.Error("a long history waits for a quiet moment for ever")
			}
		}, 2*quiesceFor)
	})
	if out.Result.Status != engine.StatusSucceeded || runs != 2 {
		t.Errorf("came to %+v in %d runs", out, runs)
	}
	got, pending := w.snapshot(t)
	// the order of two steps that run at the same time is not defined
	if slices.Sort(got); !slices.Equal(got, names(5)) || pending > 0 {
		t.Errorf("stored %v and %d pending", got, pending)
	}
}

func TestAStepWhoseOutcomeIsUnknownIsSettledAndMadeInASecondRound(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.outcomes["thing-a"] = func(n int) error {
		if n == 1 {
			return errUnknown
		}
		return nil
	}
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if out.Result.Status != engine.StatusSucceeded || !slices.Equal(w.rounds, []int{1, 2}) {
		t.Errorf("came to %+v in rounds %v", out.Result, w.rounds)
	}
	wantSnapshot(t, w, names(1))
}

func TestACreateWhoseErrorLeavesItsEffectOpenIsSettledBeforeItFails(t *testing.T) {
	failed := temporal.NewApplicationErrorWithOptions("500", deployments.ErrorStepFailed,
		temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{deployments.StepOutput{
			StepFinished: engine.StepFinished{Op: 1, Outcome: engine.OutcomeFailed, Error: "500",
				Evidence: &engine.Evidence{Class: engine.ErrorAmbiguous, Look: true}}}}})
	for name, c := range map[string]struct {
		found  engine.Outcome
		old    bool // an earlier build went on after the error
		status engine.Status
		looked int
	}{
		"it is there":                 {engine.OutcomeDone, false, engine.StatusSucceeded, 1},
		"it is not":                   {engine.OutcomeAbsent, false, engine.StatusFailed, 1},
		"an earlier build has failed": {engine.OutcomeDone, true, engine.StatusFailed, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), &program{names: names(1)}
			w.outcomes["thing-a"] = func(int) error { return failed }
			w.settled = c.found
			out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
				if c.old {
					env.OnGetVersion(lookAfterErrors, workflow.DefaultVersion, workflow.Version(1)).Return(workflow.DefaultVersion)
				}
			})
			if out.Result.Status != c.status || len(w.looked) != c.looked || len(w.rounds) != 1 {
				t.Errorf("came to %+v, looked %v, in rounds %v", out.Result, w.looked, w.rounds)
			}
		})
	}
}

func TestAnUndecidableCreateIsLeftPending(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.settled = engine.OutcomeUndecidable
	w.outcomes["thing-a"] = func(int) error { return errUnknown }
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if got, pending := w.snapshot(t); out.Result.Status != engine.StatusFailed || len(got) != 0 || pending != 1 {
		t.Errorf("came to %+v, stored %v and %d pending", out.Result, got, pending)
	}
}

func TestOnlyAnActivityThatNeverBeganIsNotStarted(t *testing.T) {
	for _, c := range []struct {
		name               string
		err                error
		neverStarted, lost bool
	}{
		{"nobody took it", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_SCHEDULE_TO_START, nil), true, true},
		{"another worker took it", errNotStarted, true, true},
		{"its worker fell silent", temporal.NewHeartbeatTimeoutError(), false, true},
		{"it took too long", temporal.NewTimeoutError(enumspb.TIMEOUT_TYPE_START_TO_CLOSE, nil), false, false},
		{"its provider died", errUnknown, false, false},
		{"it ended well", nil, false, false},
	} {
		if neverStarted(c.err) != c.neverStarted || workerLost(c.err) != c.lost {
			t.Errorf("%s: neverStarted %t, lost %t", c.name, neverStarted(c.err), workerLost(c.err))
		}
	}
}

func TestWhatIsKnownNotToBeDoneIsRetriedByTheServer(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.outcomes["thing-a"] = func(n int) error {
		if n < 4 {
			return temporal.NewApplicationErrorWithOptions("slow down", deployments.ErrorThrottled,
				temporal.ApplicationErrorOptions{NextRetryDelay: time.Second})
		}
		return nil
	}
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if out.Result.Status != engine.StatusSucceeded || !slices.Equal(w.rounds, []int{1, 1, 1, 1}) {
		t.Errorf("came to %+v in rounds %v", out.Result, w.rounds)
	}
}

func TestAStepIsRetriedAtThePaceThatTheStackAsksFor(t *testing.T) {
	usual := temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
	for name, c := range map[string]struct {
		retry deployments.Retry
		want  temporal.RetryPolicy
	}{
		"nothing is said": {deployments.Retry{}, usual},
		"only how often":  {deployments.Retry{Attempts: 3}, usual},
		"everything": {deployments.Retry{Initial: 3 * time.Second, Backoff: 1.5,
			Longest: 9 * time.Second}, temporal.RetryPolicy{InitialInterval: 3 * time.Second, BackoffCoefficient: 1.5,
			MaximumInterval: 9 * time.Second}},
		"more than the usual longest": {deployments.Retry{Initial: 2 * time.Minute},
			temporal.RetryPolicy{InitialInterval: 2 * time.Minute, BackoffCoefficient: 2,
				MaximumInterval: 2 * time.Minute}},
		"less than the usual first": {deployments.Retry{Longest: time.Millisecond},
			temporal.RetryPolicy{InitialInterval: time.Millisecond, BackoffCoefficient: 2,
				MaximumInterval: time.Millisecond}},
	} {
		r := newRun(deployments.RunInput{Retries: deployments.Retries{string(theType.Package()): c.retry}})
		got := r.stepCall(engine.Step{Type: theType, URN: "urn:pulumi:dev::shop::fake:index:Thing::a"}).retry
		if got.InitialInterval != c.want.InitialInterval || got.BackoffCoefficient != c.want.BackoffCoefficient ||
			got.MaximumInterval != c.want.MaximumInterval || got.MaximumAttempts != 0 ||
			len(got.NonRetryableErrorTypes) == 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func TestStepsThatALostWorkerDidNotStartRunOnTheNext(t *testing.T) {
	w, p := newWorld(), &program{names: names(3)}
	w.dead["first"] = true
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if out.Result.Status != engine.StatusSucceeded || slices.Contains(w.queues, "first") || w.rounds[0] != 1 {
		t.Errorf("came to %+v on %v in rounds %v", out.Result, w.queues, w.rounds)
	}
	if w.asked != 1 {
		t.Errorf("the update was asked for a worker %d times", w.asked)
	}
	wantSnapshot(t, w, names(3))
}

func TestASecondEpochFindsWhatTheFirstMade(t *testing.T) {
	w, p := newWorld(), &program{names: names(3)}
	p.at = map[int]func(*testsuite.TestWorkflowEnvironment){2: func(
		env *testsuite.TestWorkflowEnvironment) {
		p.begin(env)
	}}
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if out.Result.Status != engine.StatusSucceeded || p.epoch != 2 {
		t.Errorf("came to %+v in epoch %d", out.Result, p.epoch)
	}
	wantSnapshot(t, w, names(3))
}

func TestACancelEndsTheRunAndKeepsWhatIsThere(t *testing.T) {
	for name, cancel := range map[string]func(*testsuite.TestWorkflowEnvironment){
		"by signal": func(env *testsuite.TestWorkflowEnvironment) {
			env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{})
		},
		"of the workflow": func(env *testsuite.TestWorkflowEnvironment) { env.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), &program{names: names(3)}
			p.at = map[int]func(*testsuite.TestWorkflowEnvironment){2: func(env *testsuite.TestWorkflowEnvironment) {
				cancel(env)
				p.asked = len(p.names) // its program is ended
			}}
			out, _ := perform(t, w, p, deployments.RunInput{}, nil)
			if out.Result.Status != engine.StatusCancelled {
				t.Errorf("came to %+v", out.Result)
			}
			wantSnapshot(t, w, names(2))
		})
	}
}

// TestWhatIsNotReadyIsWaitedForByTimers holds that the Run, and no activity, waits until a resource is looked at again,
// and that what does not depend on it goes on.
func TestWhatIsNotReadyIsWaitedForByTimers(t *testing.T) {
	w, p := newWorld(), &program{names: names(3)}
	slow := p.names[1]
	w.awaits = map[string]int{slow: 2}
	var waited time.Duration
	out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.SetOnTimerScheduledListener(func(_ string, d time.Duration) {
			if d == 30*time.Second {
				waited += d
			}
		})
	})
	if out.Result.Status != engine.StatusSucceeded || out.Result.Changes["create"] != 3 {
		t.Errorf("came to %+v", out.Result)
	}
	if w.calls[slow] != 3 || waited != time.Minute {
		t.Errorf("%d steps, and timers of %v", w.calls[slow], waited)
	}
}

func TestACancelDoesNotWaitForWhatIsNotReady(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.awaits = map[string]int{p.names[0]: 1000}
	out, _ := perform(t, w, p, deployments.RunInput{}, p.cancelledByForce(10*time.Second))
	if out.Result.Status != engine.StatusCancelled || w.calls[p.names[0]] != 1 {
		t.Errorf("came to %+v after %d steps", out.Result, w.calls[p.names[0]])
	}
	wantSnapshot(t, w, names(1))
}

// cancelledByForce cancels the update after some time, when the program has asked for everything.
func (p *program) cancelledByForce(after time.Duration) func(*testsuite.TestWorkflowEnvironment) {
	return func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			p.asked = len(p.names)
			env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{Forced: true})
			p.next(env)
		}, after)
	}
}

func TestAForcedCancelAnswersStepsThatWaitForAWorker(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.dead["first"], w.dead["second"] = true, true
	out, _ := perform(t, w, p, deployments.RunInput{}, p.cancelledByForce(time.Hour))
	if out.Result.Status != engine.StatusCancelled {
		t.Errorf("came to %+v", out.Result)
	}
	if got, pending := w.snapshot(t); len(got) != 0 || pending != 0 {
		t.Errorf("stored %v and %d pending", got, pending)
	}
}

func TestChangesAreSavedWhileALongStepRuns(t *testing.T) {
	w, p := newWorld(), &program{names: names(2)}
	saves := 0
	w.outcomes["thing-b"] = func(n int) error {
		if n < 5 {
			return tooBusy
		}
		saves = len(w.saves)
		return nil
	}
	perform(t, w, p, deployments.RunInput{}, nil)
	if saves == 0 || saves > 3 {
		t.Errorf("%d saves were made while a step was under way, want one or two", saves)
	}
}

func TestARunThatCannotSaveItsChangesEndsWithoutAResultAndKeepsThemForRecovery(t *testing.T) {
	for name, forced := range map[string]int{"at its end": 0, "before it continues as new": 4} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), &program{names: names(3)}
			w.unsavable = true
			w.outcomes["thing-b"] = func(n int) error {
				if n < 5 { // so that there is a save while it runs
					return tooBusy
				}
				return nil
			}
			var replayed *Replayed
			env := w.environment(Settings{OnRun: func(r *Replayed) { replayed = r }})
			env.RegisterDelayedCallback(func() { p.begin(env) }, 0)
			env.ExecuteWorkflow(deployments.WorkflowRun, ofTheUpdate(deployments.RunInput{ForceContinue: forced}))
			err := env.GetWorkflowError()
			if out, trusted := OutputOf(err); trusted || err == nil ||
				!strings.Contains(messageOf(err), "the keyring is damaged") {
				t.Fatalf("it ended with %+v, %v", out, err)
			}
			end := replayed.Finish(func(int, int) (engine.StepFinished, bool) { return engine.StepFinished{}, false })
			for _, save := range end.Saves {
				w.saves[save.Number] = save
			}
			stored, pending := w.snapshot(t)
			if len(stored) != len(w.created) || pending != 0 || len(w.created) == 0 || end.Last != len(end.Saves) {
				t.Errorf("%v were created; recovery stores %v with %d pending operations in %d of %d saves", w.created,
					stored, pending, len(end.Saves), end.Last)
			}
		})
	}
}

func TestProgressIsATable(t *testing.T) {
	p := engine.Progress{Done: map[string]int{"create": 2, "same": 1}, Waiting: nil}
	for range 5000 {
		p.Running = append(p.Running, engine.RunningStep{URN: "urn:pulumi:dev::shop::fake:index:Thing::a|b",
			Step: engine.StepCreate})
	}
	got := progressTable(p, 1)
	for _, want := range []string{"| create | 2 |", "| same | 1 |", "| create | fake:index:Thing | a\\|b |", "more",
		"waiting for a worker"} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q", want)
		}
	}
	if len(got) > detailsBytes {
		t.Errorf("the table has %d bytes", len(got))
	}
}

// TestWhatArrivesWhileTheCoreIsSuspendedIsDeliveredInTheNextRun: of each kind.
func TestWhatArrivesWhileTheCoreIsSuspendedIsDeliveredInTheNextRun(t *testing.T) {
	long := names(26)
	for i := range long {
		long[i] += strings.Repeat("x", 30_000)
	}
	end := func(say func(*testsuite.TestWorkflowEnvironment)) func(*testsuite.TestWorkflowEnvironment, *program) {
		return func(env *testsuite.TestWorkflowEnvironment, p *program) {
			p.asked = len(p.names) // its program is ended
			say(env)
		}
	}
	for name, c := range map[string]struct {
		arrives func(*testsuite.TestWorkflowEnvironment, *program)
		want    engine.Status
	}{
		"a cancel": {end(func(env *testsuite.TestWorkflowEnvironment) {
			env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{})
		}), engine.StatusCancelled},
		"a cancel of the workflow": {end(func(env *testsuite.TestWorkflowEnvironment) { env.CancelWorkflow() }),
			engine.StatusCancelled},
		"a registration": {func(env *testsuite.TestWorkflowEnvironment, p *program) { p.next(env) },
			engine.StatusSucceeded},
	} {
		w, p := newWorld(), &program{names: long}
		w.putting = func(env *testsuite.TestWorkflowEnvironment) {
			w.putting = nil
			c.arrives(env, p)
		}
		out, runs := perform(t, w, p, deployments.RunInput{ForceContinue: 20}, nil)
		if out.Result.Status != c.want || runs < 2 {
			t.Errorf("%s: came to %+v in %d runs", name, out.Result, runs)
		}
		if got, _ := w.snapshot(t); c.want == engine.StatusSucceeded && len(got) != len(long) {
			t.Errorf("%s: %d of %d are stored", name, len(got), len(long))
		}
	}
}

func TestAPollIsNotAnsweredWhileTheStoreIsAwayAndARunIsToContinue(t *testing.T) {
	w, p := newWorld(), &program{names: names(3)}
	w.away = 6
	out, runs := perform(t, w, p, deployments.RunInput{ForceContinue: 1}, nil)
	if out.Result.Status != engine.StatusSucceeded || p.polls > 5*runs {
		t.Errorf("came to %+v with %d polls in %d runs", out.Result, p.polls, runs)
	}
}

func TestAForcedCancelEndsAStepThatAFullHistoryWaitsFor(t *testing.T) {
	w, p := newWorld(), &program{names: names(2)}
	w.outcomes["thing-a"] = func(int) error {
		return tooBusy
	}
	out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SetCurrentHistoryLength(fullEvents)
			p.asked = len(p.names)
			env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{Forced: true})
			p.next(env)
		}, 10*time.Minute)
	})
	if out.Result.Status != engine.StatusCancelled || w.calls["thing-a"] > 12 {
		t.Errorf("came to %+v after %d attempts", out.Result, w.calls["thing-a"])
	}
}

// The first attempt is lost, and the second, which would settle it, is cancelled by force: the outcome of the
// first stays unknown.
func TestAForcedCancelEndsTheSearchForAnAttemptThatWasLost(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.outcomes["thing-a"] = func(n int) error {
		if n == 1 {
			return errUnknown
		}
		w.settling = errors.New("the store is away")
		return tooBusy
	}
	out, _ := perform(t, w, p, deployments.RunInput{}, p.cancelledByForce(5*time.Second))
	if out.Result.Status != engine.StatusCancelled || len(w.looked) > 10 || w.looked[len(w.looked)-1] != 1 {
		t.Errorf("came to %+v after %d looks in the rounds %v", out.Result, len(w.looked), w.looked)
	}
	if got, pending := w.snapshot(t); len(got) != 0 || pending != 1 {
		t.Errorf("stored %v and %d pending", got, pending)
	}
}

func TestAForcedCancelEndsTheSettlingOfAStep(t *testing.T) {
	for name, settling := range map[string]error{"that is under way": errors.New("the store is away"),
		"that waits for a worker": errNotStarted} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), &program{names: names(1)}
			w.settling = settling
			w.outcomes["thing-a"] = func(int) error { return errUnknown }
			out, _ := perform(t, w, p, deployments.RunInput{}, p.cancelledByForce(5*time.Second))
			if got, pending := w.snapshot(t); out.Result.Status != engine.StatusCancelled || len(got) != 0 ||
				pending != 1 || len(w.looked) > 6 {
				t.Errorf("came to %+v after %d looks, stored %v and %d pending", out.Result, len(w.looked), got,
					pending)
			}
		})
	}
}

func TestWhatEndsWhileAHistoryIsFullIsSaved(t *testing.T) {
	w, p := newWorld(), &program{names: names(2)}
	for name, attempts := range map[string]int{"thing-a": 8, "thing-b": 3} {
		w.outcomes[name] = func(n int) error {
			if n < attempts {
				return tooBusy
			}
			return nil
		}
	}
	var stored []string
	out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() { p.next(env) }, time.Second)
		env.RegisterDelayedCallback(func() { env.SetCurrentHistoryLength(fullEvents) }, time.Minute)
		env.RegisterDelayedCallback(func() {
			w.mu.Lock()
			defer w.mu.Unlock()
			stored, _ = w.snapshot(t)
		}, 4*time.Minute)
	})
	if out.Result.Status != engine.StatusSucceeded || !slices.Equal(stored, []string{"thing-b"}) {
		t.Errorf("came to %+v; while one was slow, %v was stored", out.Result, stored)
	}
}

func TestACreateWhoseAnswerIsAlwaysLostIsLeftPending(t *testing.T) {
	w, p := newWorld(), &program{names: names(1)}
	w.outcomes["thing-a"] = func(int) error { return errUnknown }
	out, _ := perform(t, w, p, deployments.RunInput{}, nil)
	if out.Result.Status != engine.StatusFailed || w.calls["thing-a"] != maxRounds ||
		!strings.Contains(out.Result.Error, "in each of 16 attempts (the last error was: connection reset);") ||
		strings.Count(out.Result.Error, "connection reset") != 1 {
		t.Errorf("came to %+v after %d calls", out.Result, w.calls["thing-a"])
	}
	if got, pending := w.snapshot(t); len(got) != 0 || pending != 1 {
		t.Errorf("stored %v and %d pending", got, pending)
	}
}

func TestADeleteWhoseAnswerIsAlwaysLostFailsAndSaysTheLastError(t *testing.T) {
	w := newWorld()
	w.base = storedThings(1)
	w.outcomes["thing-0"] = func(int) error { return errUnknown }
	out, _ := perform(t, w, nil, deployments.RunInput{Base: 1, Goal: engine.Goal{Kind: engine.KindDestroy}}, nil)
	if out.Result.Status != engine.StatusFailed || w.calls["thing-0"] != maxRounds ||
		!strings.Contains(out.Result.Error, "in each of 16 attempts (the last error was: connection reset);") {
		t.Errorf("came to %+v after %d calls", out.Result, w.calls["thing-0"])
	}
}

// tooBusy is the error of an account that rejects calls for a minute.
var tooBusy = temporal.NewApplicationErrorWithOptions("slow down", deployments.ErrorThrottled,
	temporal.ApplicationErrorOptions{NextRetryDelay: time.Minute})

func TestACancelDuringTheWaitForAQuietMomentEndsTheRun(t *testing.T) {
	w, p := newWorld(), &program{names: names(2)}
	w.outcomes["thing-a"] = func(n int) error {
		if n < 5 {
			return tooBusy
		}
		return nil
	}
	out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SetCurrentHistoryLength(hardEvents)
			p.next(env)
		}, time.Second)
		env.RegisterDelayedCallback(func() {
			p.asked = len(p.names)
			env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{})
			p.next(env)
		}, quiesceFor/2)
	})
	if out.Result.Status != engine.StatusCancelled {
		t.Errorf("came to %+v", out.Result)
	}
	wantSnapshot(t, w, names(1))
}

func TestWithAFullHistoryOnlyOperationsInFlightGoOn(t *testing.T) {
	w, p := newWorld(), &program{names: names(3)}
	var others int
	w.outcomes["thing-a"] = func(n int) error {
		switch n {
		case 1, 2, 3, 4:
			return tooBusy
		case 5:
			return errUnknown
		case 6:
			others = w.calls["thing-b"] + w.calls["thing-c"]
		}
		return nil
	}
	out, _ := perform(t, w, p, deployments.RunInput{}, func(env *testsuite.TestWorkflowEnvironment) {
		env.RegisterDelayedCallback(func() {
			env.SetCurrentHistoryLength(fullEvents)
			p.next(env)
			p.next(env)
		}, time.Second)
	})
	if out.Result.Status != engine.StatusSucceeded || others > 0 || w.calls["thing-a"] != 6 {
		t.Errorf("came to %+v; %d others were begun before the step that was under way", out.Result, others)
	}
}

func TestAResolutionThatArrivesDuringContinueAsNewIsCarriedOut(t *testing.T) {
	w, p := newWorld(), &program{names: names(2)}
	w.settled, w.away = engine.OutcomeUndecidable, 6
	w.outcomes["thing-a"] = func(n int) error {
		if n == 1 {
			return errUnknown
		}
		return nil
	}
	out, runs := perform(t, w, p, deployments.RunInput{ForceContinue: 5, Goal: engine.Goal{WaitOnUnknown: true}},
		func(env *testsuite.TestWorkflowEnvironment) {
			env.RegisterDelayedCallback(func() {
				env.SignalWorkflow(deployments.SignalResolve, engine.Resolved{
					URN: "urn:pulumi:dev::shop::fake:index:Thing::thing-a",
				})
			}, 3*time.Second)
		})
	if out.Result.Status != engine.StatusSucceeded || runs < 2 {
		t.Errorf("came to %+v in %d runs", out, runs)
	}
	wantSnapshot(t, w, names(2))
}

// Whoever can write to Temporal answers an activity with the sealed result of an earlier one of its type.
func TestTheResultOfAnEarlierAttemptIsNotThatOfALaterOne(t *testing.T) {
	lost := func(err error, times int) func(int) error {
		return func(n int) error {
			if n <= times {
				return err
			}
			return nil
		}
	}
	for name, c := range map[string]struct {
		lost  func(int) error
		found engine.Outcome // by the host
		said  engine.Outcome // by the worker that made the attempt
		of    int            // the attempt of which all results are
		calls int
	}{
		"of a step":                  {lost(errUnknown, 1), "absent", "", deployments.StepInput{Round: 1}.Attempt(), 2},
		"of settling":                {lost(errUnknown, 2), "absent", "", deployments.SettleInput{Round: 1}.Attempt(), 2},
		"of a worker that was asked": {lost(silence, 1), "undecidable", "absent", deployments.SettleInput{}.Attempt(), 1},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), &program{names: names(1)}
			w.outcomes["thing-a"], w.settled, w.repeated = c.lost, c.found, c.of
			w.answering = func(int) (engine.StepFinished, error) { return engine.StepFinished{Outcome: c.said}, nil }
			out, _ := perform(t, w, p, deployments.RunInput{}, nil)
			_, pending := w.snapshot(t)
			if w.calls["thing-a"] != c.calls || out.Result.Status != engine.StatusFailed || pending != 1 {
				t.Errorf("came to %+v after %d calls with %d pending", out.Result, w.calls["thing-a"], pending)
			}
		})
	}
}
