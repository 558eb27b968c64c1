package e2e

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// runsBelow reports whether plugins of the stage's updates run below a process.
func (s *stage) runsBelow(t *testing.T, pid int) bool {
	t.Helper()
	return len(s.plugins(t, pid, aPlugin)) > 0
}

// lastRun runs a schedule and gives the status of the run.
func (s *stage) lastRun(t *testing.T, schedule string) (status string) {
	t.Helper()
	s.must(t, "schedule", "run", schedule)
	eventually(t, "the run of "+schedule+" ends", func() bool {
		runs := told[[]deployments.ScheduleRun](t, s.project, "schedule", "runs", schedule)
		if len(runs) == 0 || runs[0].Ended.IsZero() {
			return false
		}
		status = runs[0].Status
		return true
	})
	return status
}

// The embedded service is a worker for all; it does not run what belongs to an organization's own workers, although the
// stack's workflow is still on the queue of all.
func TestAnOrganizationsUpdatesRunOnItsOwnWorkersAlone(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	settings, shared := h.parts(t)
	operator := h.in(t.TempDir(), settings...)
	acme, globex := newStage(t, h, "DEPLOYCTL_ORGANIZATION=acme"), newStage(t, h, "DEPLOYCTL_ORGANIZATION=globex")
	acme.write(t, "scenario.yaml", steps(`{register: first, type: fake:index:Named, properties: {name: "first"}}`))
	acme.must(t, "up", "--yes", "--skip-preview") // on the embedded service, like everybody's
	acme.write(t, "scenario.yaml", layers)
	acme.must(t, "schedule", "new", "drift", "--every", "12h")
	own := func(organization string) *ran {
		worker := operator.start(t, "worker", "--organization", organization)
		t.Cleanup(func() {
			if t.Failed() {
				t.Logf("the worker of %s says\n%s", organization, worker.said())
			}
		})
		eventually(t, organization+" has workers of its own", func() bool {
			return strings.Contains(operator.must(t, "organization", "ls"), "\n"+organization+" ")
		})
		return worker
	}
	ofAcme, ofGlobex := own("acme"), own("globex")

	begin := func(s *stage) (goOn func()) {
		gate := s.gate(t, "named-2", fakecloud.Before)
		up := s.start(t, "up", "--yes", "--skip-preview")
		must(t, gate.Wait(waiting(t)))
		return func() {
			must(t, gate.Open(t.Context()))
			up.mustEnd(t, 0)
		}
	}
	goOnAcme := begin(acme)
	if !acme.runsBelow(t, ofAcme.cmd.Process.Pid) || acme.runsBelow(t, ofGlobex.cmd.Process.Pid) ||
		acme.runsBelow(t, shared.PID) {
		t.Error("an update of acme is not on the worker of acme alone")
	}
	goOnGlobex := begin(globex)
	if !globex.runsBelow(t, ofGlobex.cmd.Process.Pid) || globex.runsBelow(t, shared.PID) {
		t.Error("an update of globex is not on the worker of globex")
	}
	goOnAcme()
	goOnGlobex()
	if status := acme.lastRun(t, "drift"); status != "succeeded" {
		t.Errorf("a look for drift %s", status)
	}

	if !*soaktest.Full {
		return // make soak also plays the time in which acme has no worker, which lasts until all know it
	}
	ofAcme.interrupt(t)
	ofAcme.mustEnd(t, 0)
	acme.replaceIn(t, "scenario.yaml", `name: "two"`, `name: "other"`)
	previewed, blind := acme.start(t, "up", "--yes"), acme.start(t, "up", "--yes", "--skip-preview")
	for _, up := range []*ran{previewed, blind} {
		up.says(t, "worker of organization acme")
		up.says(t, "deployctl worker --organization acme")
	}
	if acme.runsBelow(t, shared.PID) || acme.runsBelow(t, ofGlobex.cmd.Process.Pid) {
		t.Error("an update of acme runs although no worker of acme does")
	}
	own("acme")
	previewed.mustEnd(t, 0)
	blind.mustEnd(t, 0)
	for _, s := range []*stage{acme, globex} {
		s.must(t, "destroy", "--yes", "--skip-preview")
		if left := s.objects(t); len(left) > 0 {
			t.Errorf("there are left %v", left)
		}
	}
}

func TestAnOrganizationSharesWorkersAgainOnceItIsToldTo(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	settings, _ := h.parts(t)
	operator := h.in(t.TempDir(), settings...)
	worker := operator.start(t, "worker", "--organization", "initech")
	eventually(t, "initech has workers of its own", func() bool {
		return strings.Contains(operator.must(t, "organization", "ls"), "\ninitech ")
	})
	worker.interrupt(t)
	worker.mustEnd(t, 0)
	if said := operator.must(t, "organization", "share", "initech"); !strings.Contains(said,
		"You can stop the workers of initech") {
		t.Errorf("it says %s", said)
	}
	operator.fails(t, 2, []string{"has no workers of its own"}, "organization", "share", "initech")
	s := newStage(t, h, "DEPLOYCTL_ORGANIZATION=initech")
	s.must(t, "up", "--yes", "--skip-preview")
	s.must(t, "destroy", "--yes", "--skip-preview")
}
