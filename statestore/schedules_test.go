package statestore_test

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestTheDesiredScheduleIsBoundToItsName(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	name := deployments.ScheduleName{StackName: dev, Name: "one"}
	w := statestore.DesiredSchedule{Since: time.Now()}
	w.Schedule.Name = name
	if err := s.PutSchedule(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Schedule(t.Context(), name); err != nil {
		t.Error(err)
	}
	put(t, objects, "stacks/organization/web/dev/schedules/two", get(t, objects,
		"stacks/organization/web/dev/schedules/one"))
	if _, err := s.Schedule(t.Context(), deployments.ScheduleName{StackName: dev, Name: "two"}); err == nil {
		t.Error("the schedule of one name is taken for that of another")
	}
	if err := s.DeleteSchedule(t.Context(), name); err != nil {
		t.Error(err)
	}
	if _, err := s.Schedule(t.Context(), name); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("a schedule that was removed: %v", err)
	}
}
