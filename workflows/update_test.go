package workflows

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// hosts fakes the workers of an update, and a Run that only receives messages.
type hosts struct {
	mu     sync.Mutex
	claims int
	refuse error
	// elsewhere is the queue of the workers that may host it; empty: any.
	elsewhere        string
	settledAt, runAt string // queues
	dead             map[string]bool
	programs         func(ctx context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error)
	epochs           []int
	ran              []string // queues of the program's epochs
	settled          *deployments.CommitInput
	released         []string
	noted            []deployments.UpdateFinished
	entered          []deployments.UpdateInfo

	heard []deployments.Message
	steps int // what the run has reached
	moved []string
	run   func(ctx workflow.Context, h *hosts) (engine.Result, error)
	tell  func(deployments.Messages) // signals the Run
	ended error                      // the error of the workflow, also that of an update that committed
}

func (h *hosts) ClaimStack(ctx context.Context, in deployments.ClaimInput) (deployments.Claimed, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refuse != nil {
		return deployments.Claimed{}, h.refuse
	}
	if at := activity.GetInfo(ctx).TaskQueue; h.elsewhere != "" && at != h.elsewhere {
		return deployments.Claimed{Queue: h.elsewhere}, nil
	}
	h.claims++
	return deployments.Claimed{
		Worker: []string{"first", "second", "third", "fourth"}[(in.Number-1)%4], Base: 7, HasProgram: h.programs != nil,
	}, nil
}

func (h *hosts) RunProgram(ctx context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error) {
	h.mu.Lock()
	h.epochs, h.ran = append(h.epochs, in.Epoch), append(h.ran, activity.GetInfo(ctx).TaskQueue)
	h.mu.Unlock()
	out, err := h.programs(ctx, in)
	if err == nil && !out.Lost {
		h.tell(deployments.Messages{Epoch: in.Epoch, First: 1, Items: []deployments.Message{
			{Exited: &engine.ProgramExited{Epoch: in.Epoch}}}})
	}
	return out, err
}

func (h *hosts) AddToHistory(_ context.Context, in deployments.Entry) error {
	h.entered = append(h.entered, in.Info)
	return nil
}

func (h *hosts) PingWorker(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.dead[activity.GetInfo(ctx).TaskQueue] {
		return errNotStarted
	}
	return nil
}

func (h *hosts) CommitUpdate(ctx context.Context, in deployments.CommitInput) (deployments.UpdateInfo, error) {
	h.settled, h.settledAt = &in, activity.GetInfo(ctx).TaskQueue
	return deployments.UpdateInfo{Update: in.Update, Status: string(in.Result.Status)}, nil
}

func (h *hosts) EndSession(ctx context.Context, _ deployments.ReleaseInput) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.released = append(h.released, activity.GetInfo(ctx).TaskQueue)
	return nil
}

// Run receives messages until the program exited, unless the test has another.
func (h *hosts) Run(ctx workflow.Context, in deployments.RunInput) (deployments.RunOutput, error) {
	h.moved, h.runAt = append(h.moved, in.Worker), workflow.GetInfo(ctx).TaskQueueName
	var box inbox
	exited, cancelled := false, false
	workflow.Go(ctx, func(ctx workflow.Context) {
		for {
			var m deployments.Messages
			workflow.GetSignalChannel(ctx, deployments.SignalMessages).Receive(ctx, &m)
			for _, item := range box.take(m) {
				h.heard = append(h.heard, item)
				if item.Worker != "" {
					h.moved = append(h.moved, item.Worker)
				}
				exited = exited || item.Exited != nil
				if item.Lost > 0 {
					at := deployments.Reached{Lost: item.Lost, Steps: h.steps}
					_ = workflow.SignalExternalWorkflow(ctx, deployments.UpdateWorkflowID(theUpdate), "",
						deployments.SignalReached, at).Get(ctx, nil)
				}
			}
		}
	})
	if h.run != nil {
		result, err := h.run(ctx, h)
		return deployments.RunOutput{Result: result, Saves: 3}, err
	}
	workflow.Go(ctx, func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, deployments.SignalCancel).Receive(ctx, nil)
		cancelled = true
	})
	if err := workflow.Await(ctx, func() bool { return exited }); err != nil {
		return deployments.RunOutput{}, err
	}
	result := engine.Result{Status: engine.StatusSucceeded}
	if last := h.heard[len(h.heard)-1].Exited; cancelled {
		result.Status = engine.StatusCancelled
	} else if last.Error != "" {
		result = engine.Result{Status: engine.StatusFailed, Error: last.Error}
	}
	return deployments.RunOutput{Result: result, Saves: 3}, nil
}

// carryOut runs an Update workflow.
func (h *hosts) carryOut(
	t *testing.T, in deployments.UpdateInput, at func(*testsuite.TestWorkflowEnvironment),
) (deployments.UpdateInfo, error) {
	t.Helper()
	env := newEnvironment()
	env.RegisterWorkflowWithOptions(New(Settings{}).Update, workflow.RegisterOptions{Name: deployments.WorkflowUpdate})
	env.RegisterWorkflowWithOptions(h.Run, workflow.RegisterOptions{Name: deployments.WorkflowRun})
	env.RegisterWorkflowWithOptions(func(ctx workflow.Context) error { return workflow.Sleep(ctx, time.Hour) },
		workflow.RegisterOptions{Name: deployments.WorkflowStack})
	env.RegisterActivity(h.ClaimStack)
	env.RegisterActivity(h.RunProgram)
	env.RegisterActivity(h.PingWorker)
	env.RegisterActivity(h.AddToHistory)
	env.RegisterActivity(h.CommitUpdate)
	env.RegisterActivity(h.EndSession)
	env.OnSignalExternalWorkflow(anything, deployments.StackWorkflowID(theStack), "", deployments.SignalFinished,
		anything).Return(
		func(_, _, _, _ string, arg any) error {
			h.noted = append(h.noted, arg.(deployments.UpdateFinished))
			return nil
		})
	env.OnSignalExternalWorkflow(anything, deployments.UpdateWorkflowID(theUpdate), "", deployments.SignalReached,
		anything).Return(
		func(_, _, _, _ string, arg any) error {
			env.SignalWorkflow(deployments.SignalReached, arg)
			return nil
		})
	h.tell = func(m deployments.Messages) {
		_ = env.SignalWorkflowByID(deployments.RunWorkflowID(theUpdate), deployments.SignalMessages, m)
	}
	if at != nil {
		at(env)
	}
	in.Update = theUpdate
	env.ExecuteWorkflow(deployments.WorkflowUpdate, in)
	if !env.IsWorkflowCompleted() {
		t.Fatal("the update has not ended")
	}
	h.ended = env.GetWorkflowError()
	var info deployments.UpdateInfo
	if settled, ok := InfoOf(env.GetWorkflowError()); ok {
		if settled.Status != string(engine.StatusFailed) {
			t.Errorf("an update that is %s ends with %v", settled.Status, env.GetWorkflowError())
		}
		return settled, nil
	}
	if err := env.GetWorkflowError(); err != nil {
		return info, err
	}
	return info, env.GetWorkflowResult(&info)
}

// exits is a program that ends at once.
func exits(
	out deployments.ProgramOutput,
) func(context.Context, deployments.ProgramInput) (deployments.ProgramOutput, error) {
	return func(context.Context, deployments.ProgramInput) (deployments.ProgramOutput, error) { return out, nil }
}

func TestAnUpdateRunsOnlyOnWorkersThatMayHostIt(t *testing.T) {
	h := &hosts{programs: exits(deployments.ProgramOutput{}), elsewhere: deployments.OrganizationTaskQueue(
		deployments.SharedTaskQueue, "acme")}
	info, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || info.Status != "succeeded" || h.claims != 1 {
		t.Fatalf("came to %+v, %v, after %d claims", info, err, h.claims)
	}
	if h.runAt != h.elsewhere || h.settledAt != h.elsewhere {
		t.Errorf("its Run is at %q, and it is settled at %q", h.runAt, h.settledAt)
	}
}

func TestAnUpdateRunsItsProgramCommitsAndSignalsItsStack(t *testing.T) {
	h := &hosts{programs: exits(deployments.ProgramOutput{})}
	info, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || info.Status != "succeeded" {
		t.Fatalf("came to %+v, %v", info, err)
	}
	if h.settled == nil || h.settled.Base != 7 || h.settled.Saves != 3 || len(h.noted) != 1 ||
		!slices.Equal(h.released, []string{"first"}) {
		t.Errorf("settled %+v, told the stack %v, released %v", h.settled, h.noted, h.released)
	}
}

func TestAnUpdateWithoutAProgramWaitsForItsRunOnly(t *testing.T) {
	h := &hosts{run: func(workflow.Context, *hosts) (engine.Result, error) {
		return engine.Result{Status: engine.StatusSucceeded}, nil
	}}
	info, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || info.Status != "succeeded" || len(h.epochs) != 0 {
		t.Errorf("came to %+v, %v after epochs %v", info, err, h.epochs)
	}
}

func TestAProgramThatDiesIsStartedAgainOnItsWorker(t *testing.T) {
	h := &hosts{}
	h.programs = func(_ context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error) {
		return deployments.ProgramOutput{Lost: in.Epoch == 1}, nil
	}
	_, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || !slices.Equal(h.ran, []string{"first", "first"}) || h.claims != 1 {
		t.Errorf("%v: epochs ran on %v after %d claims", err, h.ran, h.claims)
	}
}

func TestAProgramWhoseWorkerIsLostIsStartedOnAnother(t *testing.T) {
	h := &hosts{}
	h.programs = func(_ context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error) {
		if in.Epoch == 1 {
			return deployments.ProgramOutput{}, temporal.NewHeartbeatTimeoutError()
		}
		return deployments.ProgramOutput{}, nil
	}
	_, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || !slices.Equal(h.ran, []string{"first", "second"}) ||
		!slices.Equal(h.moved, []string{"first", "second"}) {
		t.Errorf("%v: epochs ran on %v, the run moved to %v", err, h.ran, h.moved)
	}
	if slices.Sort(h.released); !slices.Equal(h.released, []string{"first", "second"}) {
		t.Errorf("released %v", h.released)
	}
}

func TestThreeEpochsWithoutProgressFailTheUpdate(t *testing.T) {
	h := &hosts{programs: exits(deployments.ProgramOutput{Lost: true})}
	info, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || info.Status != "failed" || len(h.epochs) != 3 || h.settled.Result.Error == "" {
		t.Errorf("came to %+v, %v after epochs %v", info, err, h.epochs)
	}
}

func TestLostEpochsCountOnlyInARowWithoutProgress(t *testing.T) {
	for name, c := range map[string]struct {
		last int // the epoch that is not lost
		lost func(*hosts, int) (deployments.ProgramOutput, error)
	}{
		"a program that gets further each time": {6, func(h *hosts, epoch int) (deployments.ProgramOutput, error) {
			h.steps = epoch
			return deployments.ProgramOutput{Lost: true}, nil
		}},
		"what was reached since the epoch began counts for it": {4,
			func(h *hosts, epoch int) (deployments.ProgramOutput, error) {
				if epoch == 3 {
					h.steps = 1
				}
				return deployments.ProgramOutput{Lost: true}, nil
			}},
		"hosts that Temporal does not hear": {10, func(*hosts, int) (deployments.ProgramOutput, error) {
			return deployments.ProgramOutput{Lost: true, OutOfSight: true}, nil
		}},
		"workers that die": {10, func(*hosts, int) (deployments.ProgramOutput, error) {
			return deployments.ProgramOutput{}, temporal.NewHeartbeatTimeoutError()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			h := &hosts{}
			h.programs = func(_ context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error) {
				h.mu.Lock()
				defer h.mu.Unlock()
				if in.Epoch < c.last {
					return c.lost(h, in.Epoch)
				}
				return deployments.ProgramOutput{}, nil
			}
			info, err := h.carryOut(t, deployments.UpdateInput{}, nil)
			if err != nil || info.Status != "succeeded" || len(h.epochs) != c.last {
				t.Errorf("came to %+v, %v after epochs %v", info, err, h.epochs)
			}
		})
	}
}

func TestAnUpdateFailsWhenItsWorkersAlwaysDie(t *testing.T) {
	h := &hosts{programs: func(context.Context, deployments.ProgramInput) (deployments.ProgramOutput, error) {
		return deployments.ProgramOutput{}, temporal.NewHeartbeatTimeoutError()
	}}
	info, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || info.Status != "failed" || len(h.epochs) != maxWorkerLosses {
		t.Errorf("came to %+v, %v after epochs %v", info, err, h.epochs)
	}
}

func TestACancelEndsTheProgramAndTheRun(t *testing.T) {
	for name, cancel := range map[string]func(*testsuite.TestWorkflowEnvironment){
		"by signal": func(e *testsuite.TestWorkflowEnvironment) {
			e.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{})
		},
		"of the workflow": func(e *testsuite.TestWorkflowEnvironment) { e.CancelWorkflow() },
	} {
		t.Run(name, func(t *testing.T) {
			h := &hosts{}
			h.programs = func(ctx context.Context, _ deployments.ProgramInput) (deployments.ProgramOutput, error) {
				<-ctx.Done()
				return deployments.ProgramOutput{}, ctx.Err()
			}
			info, err := h.carryOut(t, deployments.UpdateInput{}, func(e *testsuite.TestWorkflowEnvironment) {
				e.RegisterDelayedCallback(func() { cancel(e) }, time.Second)
			})
			if err != nil || info.Status != "cancelled" {
				t.Errorf("came to %+v, %v", info, err)
			}
		})
	}
}

func TestARepeatedCancelIsNotPassedOnUnlessItIsStronger(t *testing.T) {
	h := &hosts{programs: func(context.Context, deployments.ProgramInput) (deployments.ProgramOutput, error) {
		return deployments.ProgramOutput{}, nil
	}}
	var passed []bool // whether each is forced
	h.run = func(ctx workflow.Context, _ *hosts) (engine.Result, error) {
		workflow.Go(ctx, func(ctx workflow.Context) {
			for {
				var c engine.Cancelled
				workflow.GetSignalChannel(ctx, deployments.SignalCancel).Receive(ctx, &c)
				passed = append(passed, c.Forced)
			}
		})
		return engine.Result{Status: engine.StatusCancelled}, workflow.Sleep(ctx, time.Minute)
	}
	_, err := h.carryOut(t, deployments.UpdateInput{}, func(e *testsuite.TestWorkflowEnvironment) {
		for i, forced := range []bool{false, false, true, true, false} {
			e.RegisterDelayedCallback(func() {
				e.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{Forced: forced})
			}, time.Duration(i+1)*time.Second)
		}
	})
	if err != nil || !slices.Equal(passed, []bool{false, true}) {
		t.Errorf("the Run gets cancels that are forced: %v (%v)", passed, err)
	}
}

func TestARunThatLosesItsWorkerGetsAnother(t *testing.T) {
	h := &hosts{dead: map[string]bool{"first": true}}
	h.run = func(ctx workflow.Context, h *hosts) (engine.Result, error) {
		parent := workflow.GetInfo(ctx).ParentWorkflowExecution.ID
		workflow.SignalExternalWorkflow(ctx, parent, "", deployments.SignalLost,
			deployments.WorkerLost{Worker: "first"})
		err := workflow.Await(ctx, func() bool { return len(h.moved) == 2 })
		return engine.Result{Status: engine.StatusSucceeded}, err
	}
	_, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || !slices.Equal(h.moved, []string{"first", "second"}) {
		t.Errorf("%v: the run moved to %v", err, h.moved)
	}
}

func TestAWorkerThatIsAliveIsKeptOnceAndThenReplaced(t *testing.T) {
	h := &hosts{}
	h.run = func(ctx workflow.Context, h *hosts) (engine.Result, error) {
		parent := workflow.GetInfo(ctx).ParentWorkflowExecution.ID
		for n := 2; n <= 3; n++ {
			workflow.SignalExternalWorkflow(ctx, parent, "", deployments.SignalLost,
				deployments.WorkerLost{Worker: "first"})
			if err := workflow.Await(ctx, func() bool { return len(h.moved) == n }); err != nil {
				return engine.Result{}, err
			}
		}
		return engine.Result{Status: engine.StatusSucceeded}, nil
	}
	_, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	if err != nil || !slices.Equal(h.moved, []string{"first", "first", "second"}) {
		t.Errorf("%v: the run moved to %v", err, h.moved)
	}
}

func TestAnUpdateThatNoWorkerClaimsFailsWithoutACommit(t *testing.T) {
	h := &hosts{refuse: temporal.NewNonRetryableApplicationError("the stack has moved on",
		string(deployments.CodeConflict), nil)}
	_, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	var failure *temporal.ApplicationError
	if !errors.As(err, &failure) || failure.Type() != string(deployments.CodeConflict) || h.settled != nil {
		t.Errorf("ended in %v, settled %v", err, h.settled)
	}
}

func TestTheFailureOfAnUpdateNamesTheResource(t *testing.T) {
	h := &hosts{run: func(workflow.Context, *hosts) (engine.Result, error) {
		return engine.Result{Status: engine.StatusFailed, Error: "the command exited with code 7",
			Resource: "urn:pulumi:dev::shop::deployctl:command:Run::bad"}, nil
	}}
	_, err := h.carryOut(t, deployments.UpdateInput{}, nil)
	var failure *temporal.ApplicationError
	if err != nil || !errors.As(h.ended, &failure) ||
		failure.Message() != "deployctl:command:Run bad: the command exited with code 7" {
		t.Errorf("ended in %v, %v", h.ended, err)
	}
}

func TestAWithdrawnUpdateEndsCancelled(t *testing.T) {
	h := &hosts{}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	info, err := h.carryOut(t, deployments.UpdateInput{Withdrawn: "superseded by version 3", Since: since}, nil)
	if err != nil || info.Status != "cancelled" || info.Error != "superseded by version 3" ||
		!info.Started.Equal(since) || h.claims != 0 {
		t.Errorf("came to %+v, %v", info, err)
	}
	if len(h.entered) != 1 || h.entered[0].Error != info.Error || !h.entered[0].Unbegun {
		t.Errorf("the store has %+v", h.entered)
	}
}
