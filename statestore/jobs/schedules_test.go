package jobs_test

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/jobs"
)

func TestTheDesiredScheduleIsBoundToItsName(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	name := deployments.ScheduleName{StackName: dev, Name: "one"}
	w := jobs.Schedule{Since: time.Now()}
	w.Schedule.Name = name
	if err := s.Jobs.PutSchedule(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Jobs.Schedule(t.Context(), name); err != nil {
		t.Error(err)
	}
	const schedules = "stacks/organization/web/dev/schedules/"
	copyObject(t, objects, schedules+"one", schedules+"two")
	if _, err := s.Jobs.Schedule(t.Context(), deployments.ScheduleName{StackName: dev, Name: "two"}); err == nil {
		t.Error("the schedule of one name is taken for that of another")
	}
	if err := s.Jobs.DeleteSchedule(t.Context(), name); err != nil {
		t.Error(err)
	}
	if _, err := s.Jobs.Schedule(t.Context(), name); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("a schedule that was removed: %v", err)
	}
}
