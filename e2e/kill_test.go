package e2e

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// killed are the victims, and how each is killed while an update of the stage is under way.
var killed = map[string]func(*testing.T, *stage, *ran){
	"the service": func(t *testing.T, s *stage, _ *ran) { s.killService(t) },
	"the S3 server": func(t *testing.T, s *stage, _ *ran) {
		killAll(t, processesNamed(t, s.status(t).PID, " dev s3 "))
	},
	"the client":        func(t *testing.T, _ *stage, up *ran) { up.kill(t) },
	"the provider":      func(t *testing.T, s *stage, _ *ran) { killAll(t, s.plugins(t, s.status(t).PID, aPlugin)) },
	"the language host": func(t *testing.T, s *stage, _ *ran) { killAll(t, s.plugins(t, s.status(t).PID, aHost)) },
}

// ofTheService are the victims whose death every stack of the service feels. The others are of one update, which may
// run on the service that tests share.
var ofTheService = []string{"the service", "the S3 server"}

// homeFor is a home in which a victim may be killed.
func homeFor(t *testing.T, victim string) *home {
	t.Helper()
	if slices.Contains(ofTheService, victim) {
		return newHome(t)
	}
	return sharedHome(t)
}

// aPlugin and aHost are processes that updates of a stage have.
const aPlugin, aHost = "pulumi-resource-fake", "pulumi-language-scenario"

// plugins are the processes of a name below a process that have the environment of the stage: those of its updates.
func (s *stage) plugins(t *testing.T, below int, name string) []int {
	t.Helper()
	return slices.DeleteFunc(processesNamed(t, below, name), func(pid int) bool {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
		return err != nil || !strings.Contains(string(environment), "FAKECLOUD_ENDPOINT="+s.cloud.URL()+"\x00")
	})
}

// killAll kills processes, of which there must be some.
func killAll(t *testing.T, pids []int) {
	t.Helper()
	if len(pids) == 0 {
		t.Fatal("what should be killed does not run")
	}
	for _, pid := range pids {
		kill(t, pid)
	}
}

// TestWhateverIsKilledTheUpdateEnds kills each victim while the create of a resource that can be found again is held
// before its effect, and after it.
func TestWhateverIsKilledTheUpdateEnds(t *testing.T) {
	objects := []string{"auto-2"} // it is found again by the name that the engine gave it
	if *soaktest.Full {
		objects = append(objects, "named-2")
	}
	for _, victim := range slices.Sorted(maps.Keys(killed)) {
		for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
			for _, object := range objects {
				t.Run(fmt.Sprintf("%s %s the effect on %s", victim, at, object), func(t *testing.T) {
					if at == fakecloud.After != (victim == "the service") ||
						victim == "the client" || victim == "the S3 server" {
						soaktest.Only(t)
					}
					t.Parallel()
					s := newStage(t, homeFor(t, victim))
					gate := s.gate(t, object, at)
					up := s.start(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
					must(t, gate.Wait(waiting(t)))
					up.knowsTheRest(t)
					killed[victim](t, s, up)
					if victim == "the service" || victim == "the provider" {
						must(t, gate.WaitEmpty(waiting(t)))
					}
					must(t, gate.Open(t.Context()))
					s.attached(t).mustEnd(t, 0)
					if victim != "the client" {
						up.mustEnd(t, 0)
					}
					s.asIfNothingHappened(t)
				})
			}
		}
	}
}

// knowsTheRest waits, while something is held that can be found again, until no create of anything else is in doubt.
func (r *ran) knowsTheRest(t *testing.T) {
	t.Helper()
	r.says(t, "tagged-2 created")
	r.says(t, "server-2 created")
}

// attached comes back to the update, and starts the service if it does not run.
func (s *stage) attached(t *testing.T) *ran {
	t.Helper()
	return s.run(t, "attach")
}

// TestACreateThatNobodyCanFindIsNeverMadeTwice kills the service and the provider around the create of a resource of
// which only the lost answer knew the id.
func TestACreateThatNobodyCanFindIsNeverMadeTwice(t *testing.T) {
	for _, victim := range []string{"the service", "the provider"} {
		for _, at := range []fakecloud.Moment{fakecloud.Before, fakecloud.After} {
			t.Run(fmt.Sprintf("%s %s the effect", victim, at), func(t *testing.T) {
				if victim == "the service" || at == fakecloud.Before {
					soaktest.Only(t)
				}
				t.Parallel()
				s := newStage(t, homeFor(t, victim))
				gate := s.gate(t, "server-2", at)
				up := s.start(t, "up", "--yes", "--skip-preview", "--on-unknown", "fail")
				must(t, gate.Wait(waiting(t)))
				up.says(t, "tagged-2 created")
				killed[victim](t, s, up)
				must(t, gate.WaitEmpty(waiting(t)))
				must(t, gate.Open(t.Context()))
				s.attached(t).mustEnd(t, 1)
				up.mustEnd(t, 1)
				s.noDuplicates(t)
				state := s.exported(t)
				if len(state.PendingOperations) != 1 || !strings.HasSuffix(
					string(state.PendingOperations[0].Resource.URN), "::server-2") {
					t.Fatalf("the pending operations are %v", state.PendingOperations)
				}

				// The next update cannot know either, and asks.
				next := s.start(t, "up", "--yes", "--skip-preview", "--on-unknown", "wait")
				next.says(t, "deployctl resolve")
				s.start(t, "stack").says(t, "it is unknown whether urn:pulumi:dev::")
				answer := "--absent"
				if id := s.idOf(t, "server-2"); id != "" {
					answer = "--created=" + id
				}
				s.must(t, "resolve", string(state.PendingOperations[0].Resource.URN), answer)
				next.mustEnd(t, 0)
				s.asIfNothingHappened(t)
			})
		}
	}
}

// onlyFindable leaves in the program only what can be found again.
func (s *stage) onlyFindable(t *testing.T) {
	t.Helper()
	text := strings.ReplaceAll(layers, "fake:index:Tagged", "fake:index:Auto")
	s.write(t, "scenario.yaml", strings.ReplaceAll(text, "fake:index:Server", "fake:index:Auto"))
}

// converged is asIfNothingHappened for a program of onlyFindable.
func (s *stage) converged(t *testing.T) {
	t.Helper()
	s.noDuplicates(t)
	if found := s.objects(t); len(found) != layersCreates {
		t.Errorf("the cloud holds %v", found)
	}
	s.stateAgrees(t)
	s.update(t, "up").expect(t, map[string]int{"same": layersCreates + 1})
	s.noDuplicates(t)
}

// effects counts what the cloud has done.
func (s *stage) effects(t *testing.T) int {
	t.Helper()
	log, err := s.cloud.Effects(t.Context(), 0)
	must(t, err)
	return len(log)
}

func TestTheServiceIsKilledAgainAndAgain(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, newHome(t))
	s.onlyFindable(t)
	up := s.start(t, "up", "--yes", "--skip-preview")
	for _, n := range []int{1, 4, 7, 10} {
		eventually(t, fmt.Sprintf("the cloud has had %d effects", n), func() bool { return s.effects(t) >= n })
		s.killService(t)
		s.must(t, "dev", "--background")
	}
	up.mustEnd(t, 0)
	s.converged(t)
}

// TestTheServiceIsKilledAtEveryLengthOfTheHistory kills it as soon as the Run's history has so many events: before its
// first task, between a task and its activities.
func TestTheServiceIsKilledAtEveryLengthOfTheHistory(t *testing.T) {
	soaktest.Only(t)
	for i, events := range []int{8, 1, 4, 12, 16, 20, 28} {
		t.Run(fmt.Sprintf("%d events", events), func(t *testing.T) {
			if i > 0 {
				soaktest.Only(t)
			}
			t.Parallel()
			s := newStage(t, newHome(t))
			s.onlyFindable(t)
			service := s.status(t)
			up := s.start(t, "up", "--yes", "--skip-preview")
			eventually(t, "the history is so long", func() bool {
				return s.historyLength(service, "run/organization/"+projectName(t)+"/dev/1") >= events || up.hasEnded()
			})
			kill(t, service.PID)
			s.attached(t).mustEnd(t, 0)
			up.mustEnd(t, 0)
			s.converged(t)
		})
	}
}

// TestTheServiceIsKilledBetweenASignalAndThePoll kills it when the Run has been asked something by a signal, and no
// poll was accepted or answered since. What the history holds from before the kill tells whether that was so: once it
// must be.
func TestTheServiceIsKilledBetweenASignalAndThePoll(t *testing.T) {
	soaktest.Only(t)
	aim(t, 8, func() (met bool) {
		s := newStage(t, newHome(t))
		s.onlyFindable(t)
		service, run := s.status(t), "run/organization/"+projectName(t)+"/dev/1"
		up := s.start(t, "up", "--yes", "--skip-preview")
		eventually(t, "a signal waits for its poll", func() bool {
			events, err := s.history(service, run)
			return err == nil && asked(events) || up.hasEnded()
		})
		at := time.Now()
		kill(t, service.PID)
		s.attached(t).mustEnd(t, 0)
		up.mustEnd(t, 0)
		s.converged(t)
		events, err := s.history(s.status(t), run)
		must(t, err)
		return asked(slices.DeleteFunc(events, func(e event) bool { return e.EventTime.After(at) }))
	})
}

// asked tells whether a history ends with a signal, with no poll accepted or answered since.
func asked(events []event) bool {
	for _, e := range slices.Backward(events) {
		switch e.EventType {
		case "EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED":
			return true
		case "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_ACCEPTED", "EVENT_TYPE_WORKFLOW_EXECUTION_UPDATE_COMPLETED":
			return false
		}
	}
	return false
}

// attempts reports whether an activity of a workflow is being attempted.
func (h *home) attempts(t *testing.T, workflow, activity string) bool {
	t.Helper()
	return slices.ContainsFunc(h.describe(t, workflow).PendingActivities, func(a pendingActivity) bool {
		return a.ActivityType.Name == activity && a.State == "PENDING_ACTIVITY_STATE_STARTED"
	})
}

// TestASaveIsInterrupted kills the store, and the service, in the middle of a save: the store stands still until it is
// under way.
func TestASaveIsInterrupted(t *testing.T) {
	for _, victim := range []string{"the service", "the S3 server"} {
		t.Run("by the death of "+victim, func(t *testing.T) {
			if victim != "the service" {
				soaktest.Only(t)
			}
			t.Parallel()
			s := newStage(t, newHome(t))
			s.onlyFindable(t)
			gate := s.gate(t, "named-2", fakecloud.After)
			up := s.start(t, "up", "--yes", "--skip-preview")
			must(t, gate.Wait(waiting(t)))
			store := processesNamed(t, s.status(t).PID, " dev s3 ")
			if len(store) != 1 {
				t.Fatalf("the S3 servers are %v", store)
			}
			must(t, syscall.Kill(store[0], syscall.SIGSTOP))
			must(t, gate.Open(t.Context()))
			name := "/organization/" + projectName(t) + "/dev/1"
			eventually(t, "a save is under way", func() bool { // the last one, if everything else has been made meanwhile
				return s.attempts(t, "run"+name, deployments.ActivitySave) ||
					s.attempts(t, "update"+name, deployments.ActivityCommitUpdate)
			})
			killed[victim](t, s, up)
			_ = syscall.Kill(store[0], syscall.SIGCONT) // unless it went with the service
			s.must(t, "dev", "--background")
			up.mustEnd(t, 0)
			s.converged(t)
		})
	}
}

// TestAFirstStartThatIsKilledIsStartedAgain kills the service as soon as something of it is there, for the first time,
// and before it says that it runs. One home after the other: these choose their ports by themselves, and one that
// starts takes now and then what another has just left.
func TestAFirstStartThatIsKilledIsStartedAgain(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	for _, sign := range []string{"data/temporal/temporal.db", "service.json", "token"} { // internal/devserver has more
		t.Run("when "+sign+" is there", func(t *testing.T) {
			aim(t, 20, func() (met bool) {
				h, err := openHome(t.TempDir())
				must(t, err)
				t.Cleanup(func() {
					h.explain(t)
					must(t, h.end())
				})
				p := h.in(t.TempDir())
				p.write(t, "Pulumi.yaml", "name: first\nruntime: scenario\n")
				p.write(t, "scenario.yaml", "steps: []\n")
				first := p.start(t, "stack", "init", "dev")
				hit := h.killStarting(t, filepath.FromSlash(sign))
				if first.wait(t); first.code != 0 { // the stack may have been made all the same
					if again := p.run(t, "stack", "init", "dev"); again.code != 0 &&
						!strings.Contains(again.said(), "already") {
						t.Fatalf("it says\n%s", again.said())
					}
				}
				p.update(t, "up").expect(t, map[string]int{"create": 1})
				return hit
			})
		})
	}
}

// killStarting kills the service of a home once a file of it is there, and tells whether it was still starting: it is
// held until that is known. Some milliseconds decide, so that its process is looked up first and nothing sleeps.
func (h *home) killStarting(t *testing.T, sign string) (starting bool) {
	t.Helper()
	var pids []int
	eventually(t, "the service is a process", func() bool {
		pids = processesNamed(t, 0, "dev --home "+h.state())
		return len(pids) > 0
	})
	for there, deadline := false, time.Now().Add(waittest.Patience); !there; {
		_, err := os.Stat(filepath.Join(h.state(), sign))
		if there = err == nil; !there && time.Now().After(deadline) {
			t.Fatalf("never: %s is there", sign)
		}
	}
	pids = slices.DeleteFunc(pids, func(pid int) bool {
		err := syscall.Kill(pid, syscall.SIGSTOP)
		if errors.Is(err, syscall.ESRCH) {
			return true // Go's runtime forks once, to see whether it can, and the child ends at once
		}
		must(t, err)
		return false
	})
	text, err := os.ReadFile(filepath.Join(h.state(), "service.json"))
	must(t, err)
	var s struct{ State string }
	must(t, json.Unmarshal(text, &s))
	for _, pid := range pids {
		kill(t, pid)
	}
	return s.State == "starting"
}
