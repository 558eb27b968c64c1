package command

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

func TestASchedulesLife(t *testing.T) {
	d := inProject(t)
	if got := d.must("schedule", "new", "drift", "--every", "1d12h", "--remediate"); !strings.Contains(got,
		"drift, remediate, every 36h0m0s") {
		t.Errorf("made\n%s", got)
	}
	d.must("schedule", "new", "destroy", "--in", "2h", "--name", "ttl", "--paused")
	if got := d.must("schedule", "ls"); !strings.Contains(got, "ttl     destroy            once, at ") ||
		!strings.Contains(got, "paused") {
		t.Errorf("listed\n%s", got)
	}
	d.must("schedule", "run", "drift")
	if got := d.must("schedule", "runs", "drift"); !strings.Contains(got, "succeeded") {
		t.Errorf("ran\n%s", got)
	}
	d.must("schedule", "pause", "drift")
	if got := d.must("schedule", "ls"); !strings.Contains(got, "drift: paused by ") {
		t.Errorf("listed\n%s", got)
	}
	if got := d.must("schedule", "show", "drift"); !strings.Contains(got, "paused by ") ||
		!strings.Contains(got, "deployctl schedule resume drift") {
		t.Errorf("shown\n%s", got)
	}
	d.must("schedule", "resume", "drift")
	if got := d.must("schedule", "show", "drift"); strings.Contains(got, "paused") {
		t.Errorf("after it was resumed\n%s", got)
	}
	d.must("schedule", "rm", "drift")
	d.refused(2, "there is no schedule", "schedule", "show", "drift")
}

func TestAScheduleThatDoesNotRunSaysWhyAndARunThatGoesOnHasNoEnd(t *testing.T) {
	d := inProject(t)
	name := deployments.ScheduleName{StackName: deployments.StackName{Organization: "organization", Project: "shop",
		Stack: "dev"}, Name: "later"}
	if err := d.service.CreateSchedule(t.Context(), deployments.Schedule{Kind: deployments.ScheduleDrift, Name: name,
		Every: time.Hour, Note: "Temporal has lost it", Last: &deployments.ScheduleRun{Started: time.Now(),
			Status: deployments.StatusRunning}}); err != nil {
		t.Fatal(err)
	}
	if got := d.must("schedule", "show", "later"); !strings.Contains(got, "Temporal has lost it") ||
		strings.Contains(got, "next run") {
		t.Errorf("it is shown as\n%s", got)
	}
	if got := d.must("schedule", "runs", "later"); strings.Contains(got, "never") || !strings.Contains(got, "running") {
		t.Errorf("its runs are\n%s", got)
	}
}

func TestTheSchedulesOfAllStacksAreListedWithoutAProject(t *testing.T) {
	d := newDesk(t, nil) // without a Pulumi.yaml
	shop := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	blog := deployments.StackName{Organization: "organization", Project: "blog", Stack: "live"}
	for _, name := range []deployments.StackName{blog, shop} {
		if err := d.service.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		if err := d.service.CreateSchedule(t.Context(), deployments.Schedule{Kind: deployments.ScheduleDrift,
			Every: time.Hour, Name: deployments.ScheduleName{StackName: name, Name: "hourly"}}); err != nil {
			t.Fatal(err)
		}
	}
	of := deployments.ScheduleName{StackName: blog, Name: "hourly"}
	if err := d.service.PauseSchedule(t.Context(), of, true, "ann"); err != nil {
		t.Fatal(err)
	}
	got := d.must("schedule", "ls", "--all")
	for _, part := range []string{"acme/shop/dev/hourly", "organization/blog/live/hourly   drift   every 1h0m0s   paused",
		"organization/blog/live/hourly: paused by ann"} {
		if !strings.Contains(got, part) {
			t.Errorf("it does not list %q but\n%s", part, got)
		}
	}
	if got := d.must("schedule", "ls", "--all", "--json"); strings.Count(got, `"paused": true`) != 1 {
		t.Errorf("it lists\n%s", got)
	}
	d.refused(2, "leave --stack out", "schedule", "ls", "--all", "--stack", "dev")
}

func TestTimesOfSchedulesAreReadAsPeopleWriteThem(t *testing.T) {
	d := inProject(t)
	d.must("schedule", "new", "destroy", "--at", "2099-12-31T23:00:00Z")
	d.must("schedule", "new", "destroy", "--name", "local", "--at", "2099-12-31 23:00")
	list, err := d.service.Schedules(t.Context(), deployments.StackName{Organization: "organization", Project: "shop",
		Stack: "dev"})
	if err != nil || len(list) != 2 {
		t.Fatalf("there are %v, %v", list, err)
	}
	if at := time.Date(2099, 12, 31, 23, 0, 0, 0, time.UTC); !list[0].At.Equal(at) {
		t.Errorf("it runs at %s", list[0].At)
	}
	if at := time.Date(2099, 12, 31, 23, 0, 0, 0, time.Local); !list[1].At.Equal(at) {
		t.Errorf("it runs at %s", list[1].At)
	}
	for _, c := range [][]string{{"--every", "1x"}, {"--every", "-1h"}, {"--in", "d"}, {"--at", "soon"},
		{"--at", "2099-12-31 23:00", "--in", "1h"}, {}} {
		d.refused(2, "", append([]string{"schedule", "new", "drift", "--name", "bad"}, c...)...)
	}
}

func TestDriftIsToldPropertyByProperty(t *testing.T) {
	d := inProject(t)
	d.refused(2, "has not been checked for drift", "drift", "status")
	stack := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
	drift := deployments.Drift{At: time.Unix(1700000000, 0), Resources: []deployments.DriftedResource{{
		URN: "urn:pulumi:dev::shop::aws:s3/bucket:Bucket::site", Properties: []deployments.DriftedProperty{
			{Path: "acl", Actual: `"public"`}},
	}}}
	d.service.Drifted[stack] = drift
	if got := d.must("drift", "status"); !strings.Contains(got,
		`aws:s3/bucket:Bucket site   acl        (nothing)   "public"`) {
		t.Errorf("it says\n%s", got)
	}
	drift.Remediation = &deployments.UpdateName{StackName: stack, Version: "5"}
	d.service.Drifted[stack] = drift
	if got := d.must("drift", "status"); !strings.Contains(got, "Repaired by organization/shop/dev/5.") {
		t.Errorf("it says\n%s", got)
	}
	if got := d.must("drift", "status", "--json"); !strings.Contains(got, `"path": "acl"`) {
		t.Errorf("it says\n%s", got)
	}
}
