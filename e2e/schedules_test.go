package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"go.temporal.io/api/workflowservice/v1"
)

const twoThings = `packages: [{name: fake, version: 0.1.0}]
steps:
  - {register: a, type: fake:index:Named, properties: {name: a, size: 1}}
  - {register: b, type: fake:index:Named, properties: {name: b, links: ['${a.arn}']}}
`

// told decodes what a command prints as JSON.
func told[T any](t *testing.T, p *project, args ...string) (v T) {
	t.Helper()
	must(t, json.Unmarshal([]byte(p.must(t, append(args, "--json")...)), &v))
	return v
}

// runs gives what is known of a schedule's runs, the latest first.
func (s *scene) runs(t *testing.T, schedule string) []deployments.ScheduleRun {
	t.Helper()
	return told[[]deployments.ScheduleRun](t, s.project, "schedule", "runs", schedule)
}

// now runs a schedule and gives what the run came to.
func (s *scene) now(t *testing.T, schedule string) (run deployments.ScheduleRun) {
	t.Helper()
	before := len(s.runs(t, schedule))
	s.must(t, "schedule", "run", schedule)
	eventually(t, "the run of "+schedule+" ends", func() bool {
		runs := s.runs(t, schedule)
		if len(runs) == before || runs[0].Ended.IsZero() {
			return false
		}
		run = runs[0]
		return true
	})
	return run
}

// succeeds runs a schedule, which must succeed with so many resources drifted and so many updates.
func (s *scene) succeeds(t *testing.T, schedule string, drifted, updates int) {
	t.Helper()
	if run := s.now(t, schedule); run.Status != "succeeded" || run.Drifted != drifted || len(run.Updates) != updates {
		t.Errorf("the run of %s came to %+v", schedule, run)
	}
}

// meddle changes the size of a and removes b, as somebody else would.
func (s *scene) meddle(t *testing.T) {
	t.Helper()
	found, err := s.cloud.Objects(t.Context(), "named")
	must(t, err)
	for _, o := range found {
		if o.Name == "b" {
			must(t, s.cloud.Remove(t.Context(), o.Kind, o.ID))
			continue
		}
		o.Properties["size"] = 5
		must(t, s.cloud.Put(t.Context(), o))
	}
}

// sizes are those of what stands in the cloud, by name.
func (s *scene) sizes(t *testing.T) map[string]any {
	t.Helper()
	found, err := s.cloud.Objects(t.Context(), "named")
	must(t, err)
	sizes := map[string]any{}
	for _, o := range found {
		sizes[o.Name] = o.Properties["size"]
	}
	return sizes
}

func TestDriftIsFoundShownAndPutRightBySchedule(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, twoThings)
	s.fails(t, 2, []string{"has not been checked for drift"}, "drift", "status")
	s.must(t, "schedule", "new", "drift", "--every", "1h")
	s.must(t, "schedule", "new", "drift", "--name", "heal", "--cron", "0 3 * * *", "--remediate", "--paused")
	s.succeeds(t, "drift", 0, 1)
	if said := s.must(t, "drift", "status"); !strings.HasPrefix(said, "No resource of ") {
		t.Errorf("before anything drifted it says\n%s", said)
	}

	s.meddle(t)
	s.succeeds(t, "drift", 2, 1)
	drift := told[deployments.Drift](t, s.project, "drift", "status")
	want := []deployments.DriftedResource{
		{URN: urn(t, "a"), Properties: []deployments.DriftedProperty{{Path: "size", Expected: "1", Actual: "5"}}},
		{URN: urn(t, "b"), Gone: true},
	}
	if got, expected := fmt.Sprint(drift.Resources), fmt.Sprint(want); got != expected || drift.Remediation != nil {
		t.Errorf("found\n%s (remediation %v)\nwant\n%s", got, drift.Remediation, expected)
	}
	said := s.must(t, "drift", "status")
	for _, part := range []string{"2 resources of ", "fake:index:Named a   size       1           5", "it is gone"} {
		if !strings.Contains(said, part) {
			t.Errorf("there is no %q in\n%s", part, said)
		}
	}
	id := s.runs(t, "drift")[0].ID
	s.findsRun(t, "Drift = 'found' AND Kind = 'drift'", id)
	if shown := s.details(t)(id); !strings.Contains(shown, "| fake:index:Named a | size | 1 | 5 |") {
		t.Errorf("the details of the run are\n%s", shown)
	}
	if sizes := s.sizes(t); sizes["a"] != 5.0 || len(sizes) != 1 {
		t.Errorf("looking changed the cloud: %v", sizes)
	}

	s.succeeds(t, "heal", 2, 2)
	if sizes := s.sizes(t); sizes["a"] != 1.0 || len(sizes) != 2 {
		t.Errorf("it was not put right: %v", sizes)
	}
	if said := s.must(t, "drift", "status"); !strings.Contains(said, "Repaired by ") {
		t.Errorf("after the remedy it says\n%s", said)
	}
	s.succeeds(t, "drift", 0, 1)
	s.noDuplicates(t)
}

// findsRun asks the server for a run of a schedule by its search attributes.
func (s *scene) findsRun(t *testing.T, query, id string) {
	t.Helper()
	temporal := s.dial(t)
	eventually(t, "the run is found by "+query, func() bool {
		found, err := temporal.ListWorkflow(t.Context(), &workflowservice.ListWorkflowExecutionsRequest{
			Query: fmt.Sprintf("%s AND Project = '%s' AND Result = 'succeeded'", query, projectName(t)),
		})
		must(t, err)
		for _, w := range found.GetExecutions() {
			if w.GetExecution().GetWorkflowId() == id {
				return true
			}
		}
		return false
	})
}

func TestAScheduleThatFailsPausesItselfAndSaysWhy(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, twoThings)
	s.must(t, "schedule", "new", "drift", "--every", "7d")
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{
		Name: "locked", Do: fakecloud.Fail, Op: fakecloud.Read, Status: 403, Message: "the account is locked",
	}))
	if run := s.now(t, "drift"); run.Status != "failed" || !strings.Contains(run.Error, "the account is locked") ||
		len(run.Updates) != 1 {
		t.Errorf("the run came to %+v", run)
	}
	var paused deployments.Schedule
	eventually(t, "it is paused", func() bool {
		paused = told[deployments.Schedule](t, s.project, "schedule", "show", "drift")
		return paused.Paused
	})
	if !strings.Contains(paused.Note, "failed: ") || !strings.Contains(paused.Note, "the account is locked") ||
		!paused.Next.IsZero() {
		t.Errorf("it is paused with the note %q, and runs next at %s", paused.Note, paused.Next)
	}
	must(t, s.cloud.Lift(t.Context(), "locked"))
	s.must(t, "schedule", "resume", "drift")
	s.succeeds(t, "drift", 0, 1)
	again := told[deployments.Schedule](t, s.project, "schedule", "show", "drift")
	if again.Paused || again.Note != "" || again.Next.IsZero() {
		t.Errorf("after it was resumed it is %+v", again)
	}
	s.must(t, "schedule", "pause", "drift")
	if said := s.must(t, "schedule", "show", "drift"); !strings.Contains(said, "paused by ") {
		t.Errorf("after it was paused by hand it says\n%s", said)
	}
}

func TestAStackIsDestroyedAndMadeAgainBySchedule(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, twoThings)
	s.must(t, "schedule", "new", "destroy", "--in", "2h")
	s.must(t, "schedule", "new", "update", "--every", "1d")
	if next := told[deployments.Schedule](t, s.project, "schedule", "show", "destroy").Next; next.IsZero() {
		t.Error("its time to live has no end")
	}
	s.must(t, "schedule", "new", "destroy", "--name", "part", "--in", "2h", "--exclude", "**::a")
	s.succeeds(t, "part", 0, 1)
	s.does(t, "delete b")
	s.succeeds(t, "destroy", 0, 1)
	s.does(t, "delete b", "delete a")
	s.write(t, "scenario.yaml", steps()) // not what was deployed last
	s.succeeds(t, "update", 0, 1)
	s.does(t, "delete b", "delete a", "create a", "create b")
	history := told[[]deployments.UpdateInfo](t, s.project, "stack", "history")
	if u := history[0]; u.Initiator != "schedule update" || u.Message != "scheduled update" {
		t.Errorf("the history tells of %+v", u)
	}
}

// TestAScheduledUpdateRepeatsWhatSomebodyIsJustMaking: while it waits, it must not keep the program of before.
func TestAScheduledUpdateRepeatsWhatSomebodyIsJustMaking(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, twoThings)
	s.must(t, "schedule", "new", "update", "--every", "1d")
	s.must(t, "schedule", "new", "drift", "--every", "1d", "--remediate")
	s.write(t, "scenario.yaml", strings.Replace(twoThings, "size: 1", "size: 2", 1)+
		"  - {register: c, type: fake:index:Named, properties: {name: c, links: ['${a.arn}']}}\n")
	gate := s.gate(t, "c", fakecloud.Before)
	up := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	temporal := s.dial(t)
	for _, schedule := range []string{"update", "drift"} {
		s.must(t, "schedule", "run", schedule)
		eventually(t, schedule+" is told to wait", func() bool {
			runs := s.runs(t, schedule)
			if len(runs) == 0 {
				return false
			}
			described, err := temporal.DescribeWorkflowExecution(t.Context(), runs[0].ID, "")
			must(t, err)
			pending := described.GetPendingActivities()
			return len(pending) == 1 && pending[0].GetLastFailure() != nil
		})
	}
	must(t, gate.Open(t.Context()))
	up.mustEnd(t, 0)
	for schedule, most := range map[string]int{"update": 1, "drift": 2} {
		eventually(t, schedule+" ends", func() bool { return !s.runs(t, schedule)[0].Ended.IsZero() })
		if run := s.runs(t, schedule)[0]; run.Status != "succeeded" || run.Drifted != 0 || len(run.Updates) > most {
			t.Errorf("%s came to %+v", schedule, run)
		}
	}
	if sizes := s.sizes(t); sizes["a"] != 2.0 || len(sizes) != 3 {
		t.Errorf("what was just made was unmade: %v", sizes)
	}
}

// TestLookingForDriftInAnAccountWithALimitCostsNoError: what is turned away is made again, and who waits is let
// through.
func TestLookingForDriftInAnAccountWithALimitCostsNoError(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	things := "packages: [{name: fake, version: 0.1.0}]\nsteps:\n"
	for i := range 20 {
		things += fmt.Sprintf("  - {register: s%d, type: fake:index:Server}\n", i)
	}
	s := &scene{stage: newStage(t, newHome(t))} // what limits its account must not slow others down
	s.write(t, "scenario.yaml", things)
	s.update(t, "up")
	s.must(t, "schedule", "new", "drift", "--every", "1h")
	others := []string{"two", "three"}
	for _, stack := range others {
		s.must(t, "stack", "init", stack, "--no-select")
		s.update(t, "up", "--stack", stack)
		s.must(t, "schedule", "new", "drift", "--every", "1h", "--stack", stack)
	}
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{Name: "limit", Do: fakecloud.Fail, Status: 429, RetryAfter: 1,
		PerSecond: 10}))
	for _, stack := range others {
		s.must(t, "schedule", "run", "drift", "--stack", stack)
	}
	s.must(t, "schedule", "run", "drift")
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	s.must(t, "stack", "init", "mine", "--no-select")
	s.update(t, "up", "--stack", "mine")
	for _, stack := range append(others, "dev") {
		var runs []deployments.ScheduleRun
		eventually(t, "the look at "+stack+" ends", func() bool {
			runs = told[[]deployments.ScheduleRun](t, s.project, "schedule", "runs", "drift", "--stack", stack)
			return len(runs) == 1 && !runs[0].Ended.IsZero()
		})
		if runs[0].Status != "succeeded" || runs[0].Drifted != 0 {
			t.Errorf("the look at %s came to %+v", stack, runs[0])
		}
	}
}

// TestOnlyFewUpdatesBeginBySchedule looks at how many look at a cloud at a time that takes its time.
func TestOnlyFewUpdatesBeginBySchedule(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	const due, places = 5, 4
	s := &scene{stage: newStage(t, newHome(t))}
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Auto}"))
	for i := range due {
		stack := fmt.Sprintf("due-%d", i)
		s.must(t, "stack", "init", stack, "--no-select")
		s.update(t, "up", "--stack", stack)
		s.must(t, "schedule", "new", "drift", "--every", "1h", "--stack", stack)
	}
	must(t, s.cloud.Set(t.Context(), fakecloud.Fault{Name: "slow", Do: fakecloud.Delay, Op: fakecloud.Read,
		DelayMS: 1000}))
	for i := range due {
		s.must(t, "schedule", "run", "drift", "--stack", fmt.Sprintf("due-%d", i))
	}
	most := 0
	eventually(t, "all have looked", func() bool {
		all, err := s.cloud.Faults(t.Context())
		must(t, err)
		most = max(most, all[0].Held)
		return all[0].Held == 0 && all[0].Struck >= due
	})
	if most > places {
		t.Errorf("%d look at a time", most)
	}
}

func TestAScheduleThatTemporalHasLostRunsAgainOnceSomebodyLooksForIt(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, twoThings)
	s.must(t, "schedule", "new", "drift", "--every", "1h")
	s.must(t, "schedule", "new", "drift", "--name", "later", "--every", "1h", "--paused")
	schedules := s.dial(t).ScheduleClient()
	for _, name := range []string{"drift", "later"} {
		id := deployments.ScheduleID(deployments.ScheduleName{StackName: deployments.StackName{
			Organization: "organization", Project: projectName(t), Stack: "dev"}, Name: name})
		must(t, schedules.GetHandle(t.Context(), id).Delete(t.Context()))
	}
	eventually(t, "Temporal does not know them", func() bool {
		said := s.must(t, "schedule", "show", "drift")
		return strings.Contains(said, "next run: 20")
	})
	s.succeeds(t, "drift", 0, 1) // its run is admitted
	if said := s.must(t, "schedule", "show", "later"); !strings.Contains(said, "it was paused when Temporal lost it") {
		t.Errorf("the paused one is shown as\n%s", said)
	}
	s.must(t, "schedule", "resume", "later")
	s.must(t, "schedule", "rm", "later")
	if said := s.must(t, "schedule", "ls"); strings.Contains(said, "later") || !strings.Contains(said, "drift") {
		t.Errorf("the list is\n%s", said)
	}
}

func TestSchedulesGoWithTheirStack(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, twoThings)
	s.must(t, "schedule", "new", "drift", "--every", "1h")
	s.fails(t, 2, []string{"has a schedule drift already"}, "schedule", "new", "drift", "--every", "2h")
	eventually(t, "it is listed", func() bool { return strings.Contains(s.must(t, "schedule", "ls"), "drift") })
	s.fails(t, 4, []string{"has a schedule drift, which knows it by its name"}, "stack", "rename", "prod")
	s.update(t, "destroy")
	s.must(t, "stack", "rm", "--yes", "--preserve-config")
	s.must(t, "stack", "init", "dev")
	eventually(t, "there are no schedules", func() bool {
		return len(told[[]deployments.Schedule](t, s.project, "schedule", "ls")) == 0
	})
	s.fails(t, 2, []string{"has no schedule drift"}, "schedule", "show", "drift")
}

func TestAScheduleNeedsSomethingToRepeatAndAKeyToItsSecrets(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, sharedHome(t))
	s.fails(t, 2, []string{"run `deployctl up` first"}, "schedule", "new", "update", "--every", "1h")
	s.env = append(s.env, "PULUMI_CONFIG_PASSPHRASE=correct horse")
	s.must(t, "stack", "init", "sealed", "--secrets-provider", "passphrase")
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	s.update(t, "up")
	s.fails(t, 2, []string{"under a passphrase"}, "schedule", "new", "drift", "--every", "1h")
	for _, c := range []struct {
		says string
		args []string
	}{
		{"exactly one of", []string{"drift"}},
		{"exactly one of", []string{"drift", "--every", "1h", "--cron", "0 3 * * *"}},
		{"every minute at most", []string{"drift", "--every", "5s"}},
		{"takes a duration", []string{"drift", "--every", "often"}},
		{"takes a time", []string{"destroy", "--at", "noon"}},
		{"--remediate is for", []string{"update", "--every", "1h", "--remediate"}},
		{"leave out --run-program", []string{"update", "--every", "1h", "--run-program"}},
		{"only a destroy keeps", []string{"drift", "--every", "1h", "--exclude-protected"}},
		{"cannot be scheduled", []string{"import", "--every", "1h"}},
	} {
		s.fails(t, 2, []string{c.says}, slices.Concat([]string{"schedule", "new"}, c.args)...)
	}
}
