package workflows

import (
	"errors"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
)

// damaged is the error of recovery while an object of the store is damaged.
var damaged = temporal.NewNonRetryableApplicationError("checkpoints/1 is damaged", string(deployments.CodeFormat), nil)

// wantDamaged checks that a request was rejected with the reason, and with a code on which clients neither wait nor
// retry.
func (y *yard) wantDamaged(t *testing.T, name string) {
	t.Helper()
	var failure *temporal.ApplicationError
	err := y.refusals[name]
	if !errors.As(err, &failure) || failure.Type() != string(deployments.CodeFormat) ||
		!strings.Contains(err.Error(), "checkpoints/1 is damaged") {
		t.Errorf("%s was answered %+v, %v; want the reason", name, y.answers[name], err)
	}
}

// queue asks for the queue at a time.
func (y *yard) queue(t *testing.T, at time.Duration) *deployments.StackInfo {
	info := new(deployments.StackInfo)
	y.env.RegisterDelayedCallback(func() {
		v, err := y.env.QueryWorkflow(deployments.QueryQueue)
		if err == nil {
			err = v.Get(info)
		}
		if err != nil {
			t.Error(err)
		}
	}, at)
	return info
}

func TestAFailedRecoveryKeepsTheQueueAndContinuesOnceItsCauseIsRepaired(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent, y.broken = true, damaged
	y.submit(0, "a", deployments.UpdateRequest{})
	y.submit(time.Second, "b", deployments.UpdateRequest{})
	y.submit(15*time.Minute, "refused", deployments.UpdateRequest{})
	y.submit(16*time.Minute, "a again", deployments.UpdateRequest{RequestID: "a"})
	reserved := y.reserve(17 * time.Minute)
	queue := y.queue(t, 20*time.Minute)
	y.env.RegisterDelayedCallback(func() { y.broken, y.silent = nil, false }, time.Hour)
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 2", "end 2")
	y.wantDamaged(t, "refused")
	if got := y.answers["a again"]; got != y.answers["a"] {
		t.Errorf("a request that is known was answered %+v, %v", got, y.refusals["a again"])
	}
	if !strings.Contains(*reserved, "checkpoints/1 is damaged") {
		t.Errorf("an import was answered %q", *reserved)
	}
	if queue.Active == nil || !strings.Contains(queue.Active.Error, "checkpoints/1 is damaged") ||
		len(queue.Queued) != 1 {
		t.Errorf("the queue was %+v", queue)
	}
	if len(y.recovered) != 1 || y.recovered[0].Error != "a defect" {
		t.Errorf("recovered %+v", y.recovered)
	}
}

func TestARequestAfterTheRepairIsAcceptedWithoutWaitingForTheNextAttempt(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent, y.broken = true, damaged
	y.submit(0, "a", deployments.UpdateRequest{})
	y.env.RegisterDelayedCallback(func() { y.broken, y.silent = nil, false }, time.Hour)
	y.submit(time.Hour+time.Millisecond, "b", deployments.UpdateRequest{})
	said := ""
	y.env.RegisterDelayedCallback(func() {
		y.env.UpdateWorkflow(deployments.UpdateRecover, "", &testsuite.TestUpdateCallback{
			OnComplete: func(_ any, err error) { said = err.Error() },
		}, deployments.Recovery{})
	}, 30*time.Minute)
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 1", "end 1", "begin 2", "end 2")
	if got := y.answers["b"]; got.Update.Version != "2" {
		t.Errorf("b was answered %+v, %v", got, y.refusals["b"])
	}
	if !strings.Contains(said, "checkpoints/1 is damaged") {
		t.Errorf("recovering was answered %q", said)
	}
}

func TestAnUpdateThatNothingCanRecoverIsDiscardedWhenAnAdminSaysSoAndNoOtherIs(t *testing.T) {
	y := newYard(deployments.Head{Next: 1})
	y.silent, y.broken = true, damaged
	y.submit(0, "a", deployments.UpdateRequest{})
	said := map[string]error{}
	for at, version := range []string{"7", "1"} { // what was said of an earlier update counts for no other
		y.env.RegisterDelayedCallback(func() {
			y.env.UpdateWorkflow(deployments.UpdateRecover, "", &testsuite.TestUpdateCallback{
				OnComplete: func(_ any, err error) { said[version] = err },
			}, deployments.Recovery{Discard: deployments.UpdateName{StackName: theStack, Version: version}})
		}, time.Duration(20+9*at)*time.Minute)
	}
	y.submit(29*time.Minute+time.Second, "b", deployments.UpdateRequest{})
	y.env.RegisterDelayedCallback(func() { y.broken = nil }, 2*time.Hour)
	y.live(t, deployments.StackInput{})
	if said["7"] == nil || said["1"] != nil {
		t.Errorf("discarding was answered %v", said)
	}
	if len(y.recovered) != 2 || !y.recovered[0].Discard || y.recovered[1].Discard {
		t.Errorf("recovered %+v", y.recovered)
	}
	y.want(t, "begin 1", "end 1", "begin 2", "end 2")
}

func TestAStackAdoptsTheUpdateOfItsHeadOnceTheHeadCanBeRead(t *testing.T) {
	left := deployments.UpdateName{StackName: theStack, Version: "9"}
	y := newYard(deployments.Head{Version: 8, Next: 10, Active: &left})
	y.unread = damaged
	y.submit(0, "refused", deployments.UpdateRequest{})
	y.env.RegisterDelayedCallback(func() { y.unread = nil }, time.Minute)
	y.submit(2*time.Minute, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 10", "end 10")
	y.wantDamaged(t, "refused")
	if len(y.recovered) != 1 || y.recovered[0].Update != left {
		t.Errorf("recovered %+v", y.recovered)
	}
}

func TestAFailedWatchDoesNotEndItsUpdate(t *testing.T) {
	left := deployments.UpdateName{StackName: theStack, Version: "9"}
	y := newYard(deployments.Head{Version: 8, Next: 10, Active: &left})
	y.blind = damaged
	queue := y.queue(t, 50*time.Second)
	y.env.RegisterDelayedCallback(func() {
		if len(y.recovered) > 0 {
			t.Error("an update that may still run was recovered")
		}
		y.blind = nil
	}, time.Minute)
	y.submit(90*time.Second, "a", deployments.UpdateRequest{})
	y.live(t, deployments.StackInput{})
	y.want(t, "begin 10", "end 10")
	if queue.Active == nil || !strings.Contains(queue.Active.Error, "checkpoints/1 is damaged") {
		t.Errorf("the queue was %+v", queue)
	}
}
