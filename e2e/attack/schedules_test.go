//go:build unix

package attack

import (
	"strings"
	"testing"
	"time"

	schedulepb "go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/e2e/harness"
)

// timetable is a stack with schedules that destroy it: one later, one that is paused, one that was removed.
type timetable struct {
	*harness.Tool
	c      client.Client
	copied map[string]*schedulepb.Schedule // as Temporal had them, by their names
	seen   map[string]bool                 // runs that have ended
}

const timed = "scheduled/organization/timed/dev/"

func (f *field) timetable(t *testing.T) *timetable {
	t.Helper()
	tool := f.project(t, "timed", "packages: [{name: fake, version: 0.1.0}]\nsteps: [{register: only, type: "+
		"fake:index:Auto}]\n",
		"FAKECLOUD_ENDPOINT="+f.cloud.URL())
	tool.Update(t, "up")
	s := &timetable{tool, f.temporal(t), map[string]*schedulepb.Schedule{}, map[string]bool{}}
	for _, name := range []string{"later", "paused", "removed"} {
		s.Must(t, "schedule", "new", "destroy", "--in", "2h", "--name", name)
		described, err := s.c.WorkflowService().DescribeSchedule(patient(t),
			&workflowservice.DescribeScheduleRequest{Namespace: namespace, ScheduleId: timed + name})
		harness.Must(t, err)
		s.copied[name] = described.GetSchedule()
	}
	s.Must(t, "schedule", "pause", "paused")
	s.Must(t, "schedule", "rm", "removed")
	return s
}

// start starts a run of a schedule for some time, with the payload that was sealed for the schedule, and gives its id.
func (s *timetable) start(t *testing.T, name string, due time.Time) string {
	t.Helper()
	id := timed + name + due.UTC().Format("-2006-01-02T15:04:05Z")
	action := s.copied[name].GetAction().GetStartWorkflow()
	_, err := s.c.WorkflowService().StartWorkflowExecution(patient(t), &workflowservice.StartWorkflowExecutionRequest{
		Namespace: namespace, RequestId: id, WorkflowId: id, WorkflowType: action.GetWorkflowType(),
		TaskQueue: action.GetTaskQueue(),
		Input:     action.GetInput(), Header: action.GetHeader(),
	})
	harness.Must(t, err)
	return id
}

// patch changes a schedule as its owner in Temporal would, and gives the id of the run that it begins.
func (s *timetable) patch(t *testing.T, name string, p *schedulepb.SchedulePatch) string {
	t.Helper()
	_, err := s.c.WorkflowService().PatchSchedule(patient(t), &workflowservice.PatchScheduleRequest{
		Namespace: namespace, ScheduleId: timed + name, Patch: p, RequestId: name + time.Now().String(),
	})
	harness.Must(t, err)
	run, ctx := "", patient(t)
	harness.Eventually(t, "the schedule "+name+" runs", func() bool {
		d, err := s.c.WorkflowService().DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{
			Namespace: namespace, ScheduleId: timed + name})
		harness.Must(t, err)
		for _, a := range d.GetInfo().GetRecentActions() {
			if id := a.GetStartWorkflowResult().GetWorkflowId(); id != "" && !s.seen[id] && run == "" {
				run = id
			}
		}
		return run != ""
	})
	return run
}

// ended is how a run ends.
func (s *timetable) ended(t *testing.T, id string) error {
	t.Helper()
	s.seen[id] = true
	return s.c.GetWorkflow(patient(t), id, "").Get(patient(t), nil)
}

// scheduleRuns has schedules run that are not due, that are paused or that were removed, and one for another time.
func scheduleRuns(t *testing.T, f *field) {
	s := f.timetable(t)
	// Temporal names runs to the second: one that is begun here is none that a schedule may begin now.
	now, later := time.Now().Add(-time.Minute), s.copied["later"].GetSpec().GetStructuredCalendar()[0]
	at := time.Date(int(later.Year[0].Start), time.Month(later.Month[0].Start), int(later.DayOfMonth[0].Start),
		int(later.Hour[0].Start), int(later.Minute[0].Start), int(later.Second[0].Start), 0, time.UTC)
	trigger := &schedulepb.SchedulePatch{TriggerImmediately: &schedulepb.TriggerImmediatelyRequest{},
		Unpause: "unpaused by intruder"}
	_, err := s.c.WorkflowService().CreateSchedule(patient(t), &workflowservice.CreateScheduleRequest{
		Namespace: namespace, ScheduleId: timed + "removed", RequestId: "again", Schedule: s.copied["removed"],
	})
	harness.Must(t, err)
	for name, begin := range map[string]func() string{
		"triggered before its time":       func() string { return s.patch(t, "later", trigger) },
		"started before its time":         func() string { return s.start(t, "later", now) },
		"started for a time to come":      func() string { return s.start(t, "later", at) },
		"paused, and triggered":           func() string { return s.patch(t, "paused", trigger) },
		"paused, and started":             func() string { return s.start(t, "paused", at) },
		"removed, and started":            func() string { return s.start(t, "removed", now) },
		"removed, made anew and made run": func() string { return s.patch(t, "removed", trigger) },
	} {
		if err := s.ended(t, begin()); err == nil {
			t.Errorf("%s: it runs", name)
		}
	}
	s.asked(t, trigger)
}

// asked shows that a schedule still runs when its owner asks for it, and then no second time.
func (s *timetable) asked(t *testing.T, again *schedulepb.SchedulePatch) {
	t.Helper()
	if state := s.Must(t, "stack", "export"); !strings.Contains(state, "::only") {
		t.Error("the stack was destroyed")
	}
	s.Must(t, "schedule", "run", "later")
	harness.Eventually(t, "the schedule runs when it is asked to", func() bool {
		return strings.Contains(s.Must(t, "schedule", "runs", "later"), "succeeded")
	})
	runs, err := s.c.ListWorkflow(patient(t), &workflowservice.ListWorkflowExecutionsRequest{
		Query: "WorkflowType = 'Scheduled' AND ExecutionStatus = 'Completed' AND WorkflowId STARTS_WITH '" + timed +
			"later'",
	})
	harness.Must(t, err)
	for _, r := range runs.GetExecutions() {
		s.seen[r.GetExecution().GetWorkflowId()] = true
	}
	s.Update(t, "up")
	if err := s.ended(t, s.patch(t, "later", again)); err == nil {
		t.Error("what was asked for once runs twice")
	}
	s.Update(t, "destroy")
	for _, name := range []string{"later", "paused", "removed"} {
		s.Must(t, "schedule", "rm", name)
	}
}
