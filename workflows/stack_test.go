package workflows

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// yard runs a Stack in the test environment and logs what it does. Its updates take ten minutes each.
type yard struct {
	env       *testsuite.TestWorkflowEnvironment
	head      deployments.Head
	heads     int
	log       []string // starts and ends, in order
	requests  []string // of the updates that began
	running   int
	recovered []deployments.RecoverInput
	silent    bool                       // updates close without a commit
	stuck     string                     // the version of the update that never ends
	moved     string                     // the version of the update that is to migrate
	broken    error                      // the error of recovery
	unread    error                      // the error of reading the head
	blind     error                      // the error of watching an update
	forged    *deployments.Recovered     // by what somebody completes the first recovery
	settle    *deployments.UpdateRequest // what its first update leaves to be settled
	answers   map[string]deployments.Accepted
	refusals  map[string]error
}

func (y *yard) ReadHead(context.Context, deployments.StackName) (deployments.Head, error) {
	y.heads++
	head := y.head
	if head.StackID == "" {
		head.StackID = theStackID
	}
	return head, y.unread
}

func (y *yard) AwaitWorkflow(context.Context, deployments.UpdateName) error { return y.blind }

func (y *yard) TerminateRun(context.Context, deployments.UpdateName) (string, error) { return "", nil }

func (y *yard) RecoverUpdate(_ context.Context, in deployments.RecoverInput) (out deployments.Recovered, err error) {
	if y.broken != nil && !in.Discard {
		return out, y.broken
	}
	if f := y.forged; f != nil {
		y.forged = nil
		return *f, nil
	}
	y.recovered = append(y.recovered, in)
	if in.Update.Version == y.moved {
		y.silent, out.Next = false, in.Next
	}
	out.Update = in.Update
	if a := y.head.Active; a != nil && *a == in.Update {
		y.head.Active = nil
	}
	if y.settle != nil {
		y.silent = false
	}
	out.Settle, y.settle = y.settle, nil
	return out, nil
}

func (y *yard) Update(ctx workflow.Context, in deployments.UpdateInput) (deployments.UpdateInfo, error) {
	if in.Withdrawn != "" {
		y.log = append(y.log, strings.TrimSuffix(fmt.Sprintf("withdraw %s: %s, now %s", in.Update.Version, in.Withdrawn,
			in.Next), ", now "))
		return deployments.UpdateInfo{}, nil
	}
	y.log = append(y.log, "begin "+in.Update.Version)
	y.requests = append(y.requests, in.Request.RequestID)
	if in.Update.Version == y.stuck {
		return deployments.UpdateInfo{}, workflow.Sleep(ctx, 100*24*time.Hour)
	}
	if y.running++; y.running > 1 {
		y.log = append(y.log, "TWO AT ONCE")
	}
	defer func() { y.running-- }()
	if err := workflow.Sleep(ctx, 10*time.Minute); err != nil {
		return deployments.UpdateInfo{}, err
	}
	y.log = append(y.log, "end "+in.Update.Version)
	if y.silent {
		return deployments.UpdateInfo{}, temporal.NewNonRetryableApplicationError("a defect", "x", nil)
	}
	finished := deployments.UpdateFinished{Update: in.Update, Result: engine.Result{Status: engine.StatusSucceeded},
		Settle: y.settle}
	y.settle = nil
	err := workflow.SignalExternalWorkflow(ctx, "default-test-workflow-id", "", deployments.SignalFinished,
		finished).Get(ctx, nil)
	return deployments.UpdateInfo{}, err
}

func newYard(head deployments.Head) *yard {
	y := &yard{
		env: newEnvironment(), head: head,
		answers: map[string]deployments.Accepted{}, refusals: map[string]error{},
	}
	y.env.RegisterWorkflowWithOptions(New(Settings{}).Stack, workflow.RegisterOptions{Name: deployments.WorkflowStack})
	y.env.RegisterWorkflowWithOptions(y.Update, workflow.RegisterOptions{Name: deployments.WorkflowUpdate})
	y.env.RegisterActivity(y.ReadHead)
	y.env.RegisterActivity(y.AwaitWorkflow)
	y.env.RegisterActivity(y.TerminateRun)
	y.env.RegisterActivity(y.RecoverUpdate)
	return y
}

// submit asks for an update at a time; the answer is kept under the name.
func (y *yard) submit(at time.Duration, name string, r deployments.UpdateRequest) {
	if r.RequestID == "" {
		r.RequestID = name
	}
	if r.Stack == (deployments.StackName{}) {
		r.Stack = theStack
	}
	r.Kind = engine.KindUp
	y.env.RegisterDelayedCallback(func() {
		if r.Submitted == nil {
			r.Submitted = &deployments.Submission{StackID: theStackID, At: y.env.Now()}
		}
		y.send(name, r)
	}, at)
}

// send sends a request as it is.
func (y *yard) send(name string, r deployments.UpdateRequest) {
	y.env.UpdateWorkflow(deployments.UpdateSubmit, "", &testsuite.TestUpdateCallback{
		OnReject: func(err error) { y.refusals[name] = err },
		OnComplete: func(v any, err error) {
			if err != nil {
				y.refusals[name] = err
				return
			}
			y.answers[name] = v.(deployments.Accepted)
		},
	}, r)
}

func (y *yard) live(t *testing.T, in deployments.StackInput) {
	t.Helper()
	in.Stack = theStack
	y.env.ExecuteWorkflow(deployments.WorkflowStack, in)
	if !y.env.IsWorkflowCompleted() {
		t.Fatal("the stack does not end when it is idle")
	}
}

func (y *yard) want(t *testing.T, log ...string) {
	t.Helper()
	if !slices.Equal(y.log, log) {
		t.Errorf("it went:\n%s\nwant:\n%s", strings.Join(y.log, "\n"), strings.Join(log, "\n"))
	}
}

func (y *yard) wantRefused(t *testing.T, name string) {
	t.Helper()
	var failure *temporal.ApplicationError
	if err := y.refusals[name]; !errors.As(err, &failure) || failure.Type() != string(deployments.CodeConflict) {
		t.Errorf("%s was answered %+v, %v; want a conflict", name, y.answers[name], err)
	}
}

func TestUpdatesOfAStackRunOneAfterAnother(t *testing.T) {
	y := newYard(deployments.Head{Version: 4, Next: 6})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.submit(2*time.Second, "c", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 6", "end 6", "begin 7", "end 7", "begin 8", "end 8")
	// Also for those that wait, when they come and every headPause: Temporal may have been set back.
	if y.heads != 3+2*4 {
		t.Errorf("the head was read %d times", y.heads)
	}
	for name, position := range map[string]int{"a": 0, "b": 1, "c": 2} {
		if got := y.answers[name]; got.Position != position || (got.Behind != nil) != (position > 0) {
			t.Errorf("%s was answered %+v, want position %d", name, got, position)
		}
	}
}

func TestTheSameRequestIsOneUpdate(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "a", deployments.UpdateRequest{RequestID: "same"})
	y.submit(time.Second, "again", deployments.UpdateRequest{RequestID: "same"})
	y.submit(11*time.Minute-time.Second, "later", deployments.UpdateRequest{RequestID: "same"})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1")
	if y.answers["a"].Update != y.answers["again"].Update || y.answers["a"].Update != y.answers["later"].Update {
		t.Errorf("answered %v", y.answers)
	}
}

func TestARequestThatTheHeadRemembersIsOneUpdate(t *testing.T) {
	made := deployments.Accepted{Update: deployments.UpdateName{StackName: theStack, Version: "3"}}
	y := newYard(deployments.Head{Version: 3, Next: 4, Answered: []deployments.AnsweredRequest{
		{RequestID: "same", Accepted: made}}})
	y.submit(0, "again", deployments.UpdateRequest{RequestID: "same"})
	y.live(t, deployments.StackInput{})
	y.want(t)
	if y.answers["again"] != made {
		t.Errorf("answered %+v", y.answers["again"])
	}
}

func TestASupersedingUpdateWithdrawsThoseThatWait(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.submit(2*time.Second, "c", deployments.UpdateRequest{OnBusy: deployments.OnBusySupersede})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "withdraw 2: superseded by version 3", "end 1", "begin 3", "end 3")
}

func TestAStackThatIsCancelledStaysALockAndAQueue(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.env.RegisterDelayedCallback(y.env.CancelWorkflow, 0)
	for _, name := range []string{"a", "b", "c"} {
		y.submit(time.Second, name, deployments.UpdateRequest{})
	}
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 2", "end 2", "begin 3", "end 3")
}

func TestAWaitingUpdateCanBeWithdrawn(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	answers := map[string]any{}
	for i, version := range []string{"2", "1"} {
		y.env.RegisterDelayedCallback(func() {
			y.env.UpdateWorkflow(deployments.UpdateWithdraw, "", &testsuite.TestUpdateCallback{
				OnComplete: func(v any, err error) { answers[version] = v },
			}, deployments.Withdrawal{Update: deployments.UpdateName{StackName: theStack, Version: version}})
		}, time.Duration(2+i)*time.Second)
	}
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "withdraw 2: cancelled before it began", "end 1")
	if answers["2"] != true || answers["1"] != false {
		t.Errorf("answered %v", answers)
	}
}

func previewed(version int) *int { return &version }

func TestAConfirmedPreviewIsRejectedWhenTheStackHasChanged(t *testing.T) {
	y := newYard(deployments.Head{Version: 5, Next: 6})
	y.submit(0, "stale", deployments.UpdateRequest{BaseVersion: previewed(4)})
	y.submit(time.Second, "right", deployments.UpdateRequest{BaseVersion: previewed(5)})
	y.submit(2*time.Second, "busy", deployments.UpdateRequest{BaseVersion: previewed(5)})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 6", "end 6")
	y.wantRefused(t, "stale")
	y.wantRefused(t, "busy")
}

func TestAnImportWhileTheStackWasIdleIsNoticed(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.env.RegisterDelayedCallback(func() { y.head = deployments.Head{Version: 2, Next: 3} },
		10*time.Minute+10*time.Second)
	y.submit(10*time.Minute+20*time.Second, "b", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 3", "end 3")
}

func TestAChangeOfTheHeadAfterTheStackStartedIsNoticed(t *testing.T) {
	left := deployments.UpdateName{StackName: theStack, Version: "9"}
	for name, head := range map[string]deployments.Head{
		"the update that was recovered": {Version: 8, Next: 10, Active: &left}, "an import": {Version: 8, Next: 9},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(head)
			y.env.RegisterDelayedCallback(func() { y.head = deployments.Head{Version: 9, Next: 10} }, time.Second)
			y.submit(10*time.Second, "a", deployments.UpdateRequest{BaseVersion: previewed(9)})
			y.live(t, deployments.StackInput{})
			y.want(t, "begin 10", "end 10")
		})
	}
}

// TestAnUpdateThatOnlyTheHeadKnowsIsEndedFirst has Temporal's database set back while a Stack runs: an update that came
// after that has the stack, as the head says.
func TestAnUpdateThatOnlyTheHeadKnowsIsEndedFirst(t *testing.T) {
	left := deployments.UpdateName{StackName: theStack, Version: "9"}
	for _, recover := range []bool{false, true} {
		y := newYard(deployments.Head{Version: 8, Next: 9})
		y.env.RegisterDelayedCallback(func() {
			y.head = deployments.Head{Version: 8, Next: 10, Active: &left, Running: &deployments.UpdateInfo{Update: left}}
		}, time.Second)
		recovered := errors.New("it is not answered")
		if recover {
			y.env.RegisterDelayedCallback(func() {
				y.env.UpdateWorkflow(deployments.UpdateRecover, "", &testsuite.TestUpdateCallback{
					OnComplete: func(_ any, err error) { recovered = err },
				}, deployments.Recovery{})
			}, 2*time.Second)
		} else {
			y.submit(2*time.Second, "a", deployments.UpdateRequest{})
		}
		y.live(t, deployments.StackInput{})
		if len(y.recovered) != 1 || y.recovered[0].Update != left {
			t.Errorf("recovered %+v", y.recovered)
		}
		if recover && recovered != nil {
			t.Errorf("recover is answered %v", recovered)
		}
		if !recover {
			y.want(t, "begin 10", "end 10")
		}
	}
}

func TestAStackThatSeemsBusyGivesOutNoVersionThatTheHeadKnows(t *testing.T) {
	y := newYard(deployments.Head{Version: 66, Next: 67})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.env.RegisterDelayedCallback(func() { // Temporal was set back to when 67 ran; it and 68 are done
		y.head.Version, y.head.Next = 68, 69
	}, 9*time.Minute)
	y.submit(9*time.Minute+time.Second, "b", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 67", "end 67", "begin 69", "end 69")
}

// TestAnUpdateThatIsOverByTheHeadHasTheStackForMinutesOnly has Temporal's database set back to when 67 ran,
// and lose what would go on with it.
func TestAnUpdateThatIsOverByTheHeadHasTheStackForMinutesOnly(t *testing.T) {
	later := deployments.UpdateName{StackName: theStack, Version: "69"}
	for name, c := range map[string]struct {
		head  deployments.Head
		ask   func(y *yard, at time.Duration)
		ended []string // by recovery
		log   []string
	}{
		"a request waits": {deployments.Head{Version: 68, Next: 69},
			func(y *yard, at time.Duration) { y.submit(at, "b", deployments.UpdateRequest{}) }, []string{"67"},
			[]string{"begin 67", "begin 69", "end 69"}},
		"another update has the stack": {
			deployments.Head{Version: 68, Next: 70, Active: &later, Running: &deployments.UpdateInfo{Update: later}},
			func(y *yard, at time.Duration) { y.submit(at, "b", deployments.UpdateRequest{}) }, []string{"67", "69"},
			[]string{"begin 67", "begin 70", "end 70"}},
		"an import comes": {deployments.Head{Version: 68, Next: 69},
			func(y *yard, at time.Duration) { y.reserve(at) }, []string{"67"}, []string{"begin 67"}},
		"an admin recovers": {deployments.Head{Version: 68, Next: 69},
			func(y *yard, at time.Duration) {
				y.env.RegisterDelayedCallback(func() {
					y.env.UpdateWorkflow(deployments.UpdateRecover, "", &testsuite.TestUpdateCallback{
						OnComplete: func(_ any, err error) { y.refusals["recover"] = err },
					}, deployments.Recovery{})
				}, at)
			}, []string{"67"}, []string{"begin 67"}},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(deployments.Head{Version: 66, Next: 67})
			y.stuck = "67"
			y.submit(0, "a", deployments.UpdateRequest{})
			y.env.RegisterDelayedCallback(func() { y.head = c.head }, time.Second)
			c.ask(y, time.Hour)
			y.env.RegisterDelayedCallback(func() {
				if len(y.recovered) == 0 {
					t.Error("the stack is not free")
				}
			}, time.Hour+3*headPause)
			y.live(t, deployments.StackInput{})
			y.want(t, c.log...)
			var ended []string
			for _, in := range y.recovered {
				ended = append(ended, in.Update.Version)
			}
			if !slices.Equal(ended, c.ended) || y.refusals["recover"] != nil {
				t.Errorf("it recovers %v, and answers %v", ended, y.refusals["recover"])
			}
		})
	}
}

func TestAnUpdateThatRunsIsWaitedForHoweverLongItTakes(t *testing.T) {
	y := newYard(deployments.Head{Version: 66, Next: 67})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	active := deployments.UpdateName{StackName: theStack, Version: "67"}
	y.env.RegisterDelayedCallback(func() { y.head.Next, y.head.Active = 68, &active }, 2*time.Second)
	y.env.RegisterDelayedCallback(func() { // its end, by a signal that comes late
		y.head.Version, y.head.Active = 67, nil
	}, 9*time.Minute)
	y.live(t, deployments.StackInput{})
	if y.want(t, "begin 67", "end 67", "begin 68", "end 68"); len(y.recovered) > 0 {
		t.Errorf("recovered %+v", y.recovered)
	}
}

func TestAnImportThatHasTheStackIsNotRecovered(t *testing.T) {
	importing := deployments.UpdateName{StackName: theStack, Version: "9"}
	y := newYard(deployments.Head{Version: 8, Next: 9})
	y.env.RegisterDelayedCallback(func() { y.head = deployments.Head{Version: 8, Next: 10, Active: &importing} },
		time.Second)
	y.submit(2*time.Second, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	if y.want(t, "begin 10", "end 10"); len(y.recovered) > 0 {
		t.Errorf("recovered %+v", y.recovered)
	}
}

// reserve asks for a version at a time, as an import does, and returns the answer.
func (y *yard) reserve(at time.Duration) *string {
	said := new(string)
	y.env.RegisterDelayedCallback(func() {
		y.env.UpdateWorkflow(deployments.UpdateReserve, "", &testsuite.TestUpdateCallback{
			OnComplete: func(v any, err error) { *said = fmt.Sprint(v, " ", err) },
		})
	}, at)
	return said
}

func TestNoUpdateHasTheVersionOfAnImport(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	before := y.reserve(0)
	y.submit(time.Second, "a", deployments.UpdateRequest{})
	y.submit(2*time.Second, "b", deployments.UpdateRequest{})
	during := y.reserve(3 * time.Second)
	after := y.reserve(20*time.Minute + time.Second)
	y.submit(20*time.Minute+30*time.Second, "c", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 2", "end 2", "begin 3", "end 3", "begin 5", "end 5")
	if *before != "1 <nil>" || !strings.Contains(*during, "busy with update 2") || *after != "4 <nil>" {
		t.Errorf("answered %q, %q and %q", *before, *during, *after)
	}
}

func TestAnImportThatComesAtTheEndOfAnUpdateWaitsForIt(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "a", deployments.UpdateRequest{})
	said := y.reserve(10*time.Minute - time.Second)
	y.live(t, deployments.StackInput{})
	if y.want(t, "begin 1", "end 1"); *said != "2 <nil>" {
		t.Errorf("answered %q", *said)
	}
}

func TestAnUpdateThatClosedWithoutACommitIsRecoveredBeforeTheNext(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent = true
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 2", "end 2")
	if len(y.recovered) != 2 || y.recovered[0].Error != "a defect" {
		t.Errorf("recovered %+v", y.recovered)
	}
}

func TestAMigratedUpdateRunsBeforeThoseThatWait(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent, y.moved = true, "1"
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.submit(2*time.Second, "c", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "withdraw 2: update 1 is repeated first, now 5",
		"withdraw 3: update 1 is repeated first, now 6",
		"begin 4", "end 4", "begin 5", "end 5", "begin 6", "end 6")
	if want := []string{"a", "a after 1", "b", "c"}; !slices.Equal(y.requests, want) {
		t.Errorf("what began was asked for by %q, not %q", y.requests, want)
	}
}

func TestTheUpdateThatTheHeadNamesIsEndedFirst(t *testing.T) {
	left := deployments.UpdateName{StackName: theStack, Version: "9"}
	y := newYard(deployments.Head{Version: 8, Next: 10, Active: &left})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 10", "end 10")
	if len(y.recovered) != 1 || y.recovered[0].Update != left {
		t.Errorf("recovered %+v", y.recovered)
	}
}

func TestARenameOrARemovalThatTheHeadNamesIsNotRecovered(t *testing.T) {
	y := newYard(deployments.Head{Version: 8, Next: 10, Active: &deployments.UpdateName{StackName: theStack,
		Version: "removal"}})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	if len(y.recovered) != 0 {
		t.Errorf("recovered %+v", y.recovered)
	}
}

func TestAQueuedRequestLearnsTheInitiatorOfTheUpdateThatTheHeadNames(t *testing.T) {
	left := deployments.UpdateName{StackName: theStack, Version: "9"}
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	y := newYard(deployments.Head{Version: 8, Next: 10, Active: &left, Running: &deployments.UpdateInfo{
		Update: left, Kind: engine.KindDestroy, Initiator: "ann", Started: since,
	}})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	got := y.answers["a"]
	if got.Position != 1 || got.Behind == nil || got.Behind.Kind != engine.KindDestroy ||
		got.Behind.Initiator != "ann" || !got.Behind.Started.Equal(since) {
		t.Errorf("answered %+v behind %+v", got, got.Behind)
	}
}

func TestAStackContinuesAsNewWithItsQueue(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.submit(2*time.Second, "c", deployments.UpdateRequest{})
	y.env.RegisterDelayedCallback(func() { y.env.SetCurrentHistoryLength(stackEvents + 1) }, 3*time.Second)
	y.submit(4*time.Second, "d", deployments.UpdateRequest{}) // too late for this run, which does not answer it
	y.live(t, deployments.StackInput{})
	var again *workflow.ContinueAsNewError
	if !errors.As(y.env.GetWorkflowError(), &again) {
		t.Fatalf("ended with %v", y.env.GetWorkflowError())
	}
	var in deployments.StackInput
	if err := fromPayloads(again, &in); err != nil {
		t.Fatal(err)
	}
	if in.Active == nil || in.Active.Update.Version != "1" || len(in.Queue) != 2 || len(in.Answered) != 3 ||
		in.Version != 3 || in.Continues == "" || in.Since.IsZero() || in.StackID != theStackID {
		t.Fatalf("carried over %+v", in)
	}
	// The next run watches update 1 by asking; here it has closed without a signal, so it is recovered. It reads the head
	// only while 3 waits for 2.
	next := newYard(deployments.Head{Version: 1, Next: 2})
	next.env.SetContinuedExecutionRunID(in.Continues)
	next.live(t, in)
	next.want(t, "begin 2", "end 2", "begin 3", "end 3")
	if len(next.recovered) != 1 || next.recovered[0].Update.Version != "1" || next.heads != 4 {
		t.Errorf("recovered %+v after reading the head %d times", next.recovered, next.heads)
	}
}

func TestARequestIsTakenFreshAndForItsStackAlone(t *testing.T) {
	for name, c := range map[string]struct {
		of   string
		age  time.Duration
		kept bool
	}{
		"of this stack, now":       {theStackID, 0, true},
		"a while ago":              {theStackID, 9 * time.Minute, true},
		"by a clock that is ahead": {theStackID, -9 * time.Minute, true},
		"long ago":                 {theStackID, 11 * time.Minute, false},
		"in the future":            {theStackID, -11 * time.Minute, false},
		"of an earlier stack":      {"an earlier life", 0, false},
		"by nobody":                {"", 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			y := newYard(deployments.Head{Version: 4, Next: 5})
			y.submit(0, "first", deployments.UpdateRequest{})
			r := deployments.UpdateRequest{Stack: theStack, RequestID: "a", Kind: engine.KindUp}
			y.env.RegisterDelayedCallback(func() {
				if c.of != "" {
					r.Submitted = &deployments.Submission{StackID: c.of, At: y.env.Now().Add(-c.age)}
				}
				y.send("a", r)
			}, 10*time.Minute+30*time.Second)
			y.live(t, deployments.StackInput{})
			if _, kept := y.answers["a"]; kept != c.kept || kept == (y.refusals["a"] != nil) {
				t.Errorf("it is answered %+v, %v", y.answers["a"], y.refusals["a"])
			}
		})
	}
}

func TestWhatWasSubmittedBeforeAStackBeganIsNotTaken(t *testing.T) {
	y := newYard(deployments.Head{Version: 4, Next: 5})
	began := y.env.Now()
	y.submit(0, "a", deployments.UpdateRequest{Submitted: &deployments.Submission{StackID: theStackID,
		At: began.Add(-clockSkew - time.Second)}})
	y.submit(0, "b", deployments.UpdateRequest{Submitted: &deployments.Submission{StackID: theStackID,
		At: began.Add(-clockSkew / 2)}})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 5", "end 5")
	if y.refusals["a"] == nil || y.refusals["b"] != nil {
		t.Errorf("they are answered %v and %v", y.refusals["a"], y.refusals["b"])
	}
}

func TestARejectedRequestIsTakenOnlyIfItIsSubmittedAgain(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.submit(0, "first", deployments.UpdateRequest{})
	r := deployments.UpdateRequest{RequestID: "same", OnBusy: deployments.OnBusyFail,
		Submitted: &deployments.Submission{StackID: theStackID, At: y.env.Now().Add(9 * time.Minute)}}
	y.submit(9*time.Minute, "busy", r)
	y.submit(10*time.Minute+10*time.Second, "copied", r)
	r.Submitted = nil
	y.submit(10*time.Minute+20*time.Second, "again", r)
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 2", "end 2")
	y.wantRefused(t, "busy")
	if y.refusals["copied"] == nil || y.answers["again"].Update.Version != "2" {
		t.Errorf("the copy is answered %v, and the second submission %+v", y.refusals["copied"], y.answers["again"])
	}
}

func TestTheInputOfAnotherRunRunsNothing(t *testing.T) {
	waiting := deployments.UpdateName{StackName: theStack, Version: "4"}
	in := deployments.StackInput{Continues: "a run of yesterday", Version: 4, Queue: []deployments.QueuedUpdate{{
		Update: waiting, Request: deployments.UpdateRequest{Stack: theStack, RequestID: "destroy"}}}}
	for _, continued := range []string{"", "a run of today"} {
		y := newYard(deployments.Head{Version: 8, Next: 9})
		y.env.SetContinuedExecutionRunID(continued)
		y.live(t, in)
		y.want(t)
		if err := y.env.GetWorkflowError(); err == nil || !strings.Contains(err.Error(), "is of another run") {
			t.Errorf("it ends with %v", err)
		}
	}
}

func TestARecoveryThatIsOfAnotherUpdateIsNotBelieved(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent = true
	y.forged = &deployments.Recovered{UpdateInfo: deployments.UpdateInfo{Next: "7",
		Update: deployments.UpdateName{StackName: theStack, Version: "6"}},
		Request: deployments.UpdateRequest{Stack: theStack, RequestID: "of yesterday"}}
	y.submit(0, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1")
	if !slices.Equal(y.requests, []string{"a"}) || len(y.recovered) != 1 {
		t.Errorf("%q ran, after the recoveries %+v", y.requests, y.recovered)
	}
}
