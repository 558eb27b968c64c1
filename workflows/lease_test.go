package workflows

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// leasehold runs a Lease in the test environment.
type leasehold struct {
	env     *testsuite.TestWorkflowEnvironment
	begun   int
	ends    []deployments.LeaseEnd
	refused error // of the claim
	renewed []error
	info    deployments.UpdateInfo // that the client got
	took    time.Duration
	settle  *deployments.UpdateRequest   // that its end asks for
	told    []deployments.UpdateFinished // to the stack
}

func (l *leasehold) BeginLease(context.Context, deployments.UpdateInput) error {
	l.begun++
	return l.refused
}

func (l *leasehold) EndLease(_ context.Context, in deployments.LeaseEnd) (deployments.LeaseEnded, error) {
	l.ends = append(l.ends, in)
	return deployments.LeaseEnded{Settle: l.settle, UpdateInfo: deployments.UpdateInfo{Update: in.Update,
		Status: string(in.Status), Error: in.Error}}, nil
}

func newLeasehold() *leasehold {
	l := &leasehold{env: newEnvironment()}
	l.env.RegisterWorkflowWithOptions(New(Settings{}).Lease, workflow.RegisterOptions{Name: deployments.WorkflowLease})
	l.env.RegisterActivity(l.BeginLease)
	l.env.RegisterActivity(l.EndLease)
	l.env.OnSignalExternalWorkflow(anything, anything, anything, deployments.SignalFinished, anything).Return(
		func(_, _, _, _ string, arg any) error {
			l.told = append(l.told, arg.(deployments.UpdateFinished))
			return nil
		})
	return l
}

// renew asks for a renewal at a time.
func (l *leasehold) renew(at, d time.Duration) {
	l.env.RegisterDelayedCallback(func() {
		l.env.UpdateWorkflow(deployments.UpdateRenew, "", &testsuite.TestUpdateCallback{
			OnComplete: func(_ any, err error) { l.renewed = append(l.renewed, err) },
		}, d)
	}, at)
}

// complete completes the update at a time.
func (l *leasehold) complete(at time.Duration, status engine.Status) {
	l.env.RegisterDelayedCallback(func() {
		l.env.UpdateWorkflow(deployments.UpdateComplete, "", &testsuite.TestUpdateCallback{
			OnComplete: func(v any, err error) {
				if err == nil {
					l.info = v.(deployments.UpdateInfo)
				}
			},
		}, status)
	}, at)
}

// live runs a lease of five minutes to its end, and returns how the update ended.
func (l *leasehold) live(t *testing.T) deployments.LeaseEnd {
	t.Helper()
	from := l.env.Now()
	l.env.ExecuteWorkflow(deployments.WorkflowLease, deployments.UpdateInput{Update: theUpdate,
		Request: deployments.UpdateRequest{Stack: theStack, Lease: &deployments.Lease{Duration: 5 * time.Minute}}})
	l.took = l.env.Now().Sub(from)
	if !l.env.IsWorkflowCompleted() || len(l.ends) != 1 || l.begun != 1 {
		t.Fatalf("it began %d times and ended as %+v", l.begun, l.ends)
	}
	return l.ends[0]
}

func TestALeaseEndsWhenItsClientCompletesTheUpdate(t *testing.T) {
	for _, status := range []engine.Status{engine.StatusSucceeded, engine.StatusFailed, engine.StatusCancelled} {
		l := newLeasehold()
		l.complete(time.Minute, status)
		l.complete(time.Minute, status) // a repeated request
		if end := l.live(t); end.Status != status || l.info.Status != string(status) || l.took > 2*time.Minute {
			t.Errorf("it ends as %+v after %s; the client got %+v", end, l.took, l.info)
		}
	}
}

func TestALeaseThatNobodyRenewsExpires(t *testing.T) {
	l := newLeasehold()
	l.renew(4*time.Minute, 5*time.Minute)
	l.renew(8*time.Minute, time.Minute) // ends it no earlier
	l.renew(12*time.Minute, time.Hour)  // is for as long as the lease at most
	if end := l.live(t); end.Status != engine.StatusCancelled || l.took < 9*time.Minute || l.took > 10*time.Minute {
		t.Errorf("it ends as %+v after %s", end, l.took)
	}
	if len(l.renewed) != 2 || errors.Join(l.renewed...) != nil {
		t.Errorf("renewals are answered %v", l.renewed)
	}
}

func TestALeaseIsNeverRenewedForLongerThanItself(t *testing.T) {
	l := newLeasehold()
	l.renew(time.Minute, time.Hour)
	if l.live(t); l.took < 6*time.Minute || l.took > 7*time.Minute {
		t.Errorf("it ends after %s", l.took)
	}
}

func TestALeaseEndsAfterADayHoweverOftenItIsRenewed(t *testing.T) {
	l := newLeasehold()
	for at := time.Minute; at < deployments.LeaseLife+time.Hour; at += 4 * time.Minute {
		l.renew(at, 5*time.Minute)
	}
	if end := l.live(t); end.Status != engine.StatusCancelled || l.took > deployments.LeaseLife+time.Minute {
		t.Errorf("it ends as %+v after %s", end, l.took)
	}
}

func TestACancelledLeaseEndsAtOnceAndOnce(t *testing.T) {
	l := newLeasehold()
	for range 2 {
		l.env.RegisterDelayedCallback(func() { l.env.SignalWorkflow(deployments.SignalCancel, engine.Cancelled{}) },
			time.Minute)
	}
	l.complete(time.Minute, engine.StatusSucceeded)
	if end := l.live(t); end.Status != engine.StatusCancelled || l.took > 2*time.Minute ||
		l.info.Status != deployments.StatusCancelled {
		t.Errorf("it ends as %+v after %s; the client got %+v", end, l.took, l.info)
	}
}

func TestALeaseThatDoesNotGetTheStackCommitsNothing(t *testing.T) {
	l := newLeasehold()
	l.refused = temporal.NewNonRetryableApplicationError("busy", string(deployments.CodeConflict), nil)
	l.env.ExecuteWorkflow(deployments.WorkflowLease, deployments.UpdateInput{Update: theUpdate,
		Request: deployments.UpdateRequest{Stack: theStack, Lease: &deployments.Lease{Duration: time.Minute}}})
	if l.env.GetWorkflowError() == nil || len(l.ends) != 0 {
		t.Errorf("it ends with %v, as %+v", l.env.GetWorkflowError(), l.ends)
	}
}

func TestAStackStartsTheLeaseOfAClientInItsTurn(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.env.RegisterWorkflowWithOptions(func(ctx workflow.Context, in deployments.UpdateInput) (deployments.UpdateInfo,
		error) {
		y.log = append(y.log, "lease")
		return y.Update(ctx, in)
	}, workflow.RegisterOptions{Name: deployments.WorkflowLease})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{Lease: &deployments.Lease{Duration: time.Minute}})
	y.submit(2*time.Second, "c", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "lease", "begin 2", "end 2", "begin 3", "end 3")
}

func TestALeaseTellsTheStackWhatIsToBeSettled(t *testing.T) {
	l := newLeasehold()
	l.settle = &deployments.UpdateRequest{RequestID: "settling"}
	l.live(t)
	if len(l.told) != 1 || l.told[0].Settle == nil || l.told[0].Settle.RequestID != "settling" {
		t.Errorf("the stack was told %+v", l.told)
	}
}

func TestWhatAClientLeftPendingIsSettledBeforeWhatWaits(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.settle = &deployments.UpdateRequest{Stack: theStack, RequestID: "settling", Kind: engine.KindRefresh}
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "withdraw 2: what update 1 left pending is settled first, now 4", "begin 3", "end 3",
		"begin 4", "end 4")
	if want := []string{"a", "settling", "b"}; !slices.Equal(y.requests, want) {
		t.Errorf("what began was asked for by %q, not %q", y.requests, want)
	}
}

func TestWhatARecoveredClientLeftPendingIsSettledBeforeWhatWaits(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent, y.settle = true, &deployments.UpdateRequest{Stack: theStack, RequestID: "settling",
		Kind: engine.KindRefresh}
	y.submit(0, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 2", "end 2")
	if want := []string{"a", "settling"}; !slices.Equal(y.requests, want) {
		t.Errorf("what began was asked for by %q, not %q", y.requests, want)
	}
}
