package e2e

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestAServiceThatDiedIsStartedAgainByWhoeverWaitsForIt(t *testing.T) {
	soaktest.Only(t)
	for _, command := range []string{"up", "attach"} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			s := newStage(t, newHome(t))
			gate := s.gate(t, "named-2", fakecloud.Before)
			waits := s.start(t, "up", "--yes", "--skip-preview")
			must(t, gate.Wait(waiting(t)))
			waits.knowsTheRest(t)
			if command == "attach" {
				waits.kill(t)
				waits = s.start(t, "attach")
				waits.says(t, "named-1 created")
			}
			s.killService(t)
			must(t, gate.WaitEmpty(waiting(t)))
			must(t, gate.Open(t.Context()))
			waits.mustEnd(t, 0)
			if said := waits.said(); strings.Count(said, "restarting it") != 1 {
				t.Errorf("it says\n%s", said)
			}
			s.asIfNothingHappened(t)
		})
	}
}

func TestAServiceThatWasStoppedIsNotStartedByWhoeverWaitsForIt(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, newHome(t))
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "busy", Do: fakecloud.Fail, Op: fakecloud.Create, Object: "named-2", Status: 503, RetryAfter: 1,
	}))
	up := s.start(t, "up", "--yes", "--skip-preview")
	up.says(t, "named-2: attempt 2")
	s.must(t, "dev", "stop")
	if up.says(t, "has been unreachable since"); s.status(t).State != "stopped" {
		t.Errorf("the service is %s", s.status(t).State)
	}
	must(t, s.cloud.Lift(t.Context(), "busy"))
	foreground := s.start(t, "dev")
	up.mustEnd(t, 0)
	// whoever asks for the worker that ended is told that it is gone: nobody waits for a heartbeat of it
	told := false
	for _, workflow := range []string{"update", "run"} {
		events, err := s.history(s.status(t), workflow+"/organization/"+projectName(t)+"/dev/1")
		must(t, err)
		for _, e := range events {
			failure := e.ActivityTaskFailedEventAttributes.Failure.ApplicationFailureInfo.Type
			told = told || failure == deployments.ErrorNotStarted
			switch how := e.ActivityTaskTimedOutEventAttributes.Failure.TimeoutFailureInfo.TimeoutType; how {
			case "", "TIMEOUT_TYPE_SCHEDULE_TO_START": // the service was down for as long as a task may wait
			default:
				t.Errorf("something of the %s timed out: %s", workflow, how)
			}
		}
	}
	if !told {
		t.Error("nobody was told that the worker is gone")
	}
	s.asIfNothingHappened(t)
	if pid := s.status(t).PID; pid != foreground.cmd.Process.Pid {
		t.Errorf("the service is process %d, not the command's own, %d", pid, foreground.cmd.Process.Pid)
	}
	foreground.interrupt(t)
	foreground.mustEnd(t, 0)
}
