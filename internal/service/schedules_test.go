package service

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

var now = time.Date(2026, 3, 4, 5, 6, 7, 890, time.UTC)

func optionsAt(s deployments.Schedule) client.ScheduleOptions {
	s.Name = deployments.ScheduleName{StackName: deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
		Name: "n"}
	return optionsOf(deployments.ScheduledInput{Schedule: s, StackID: "stack-id"}, deployments.SharedTaskQueue, now)
}

func TestASchedulePausesOnFailureSkipsOverlapsAndCatchesUpWithinAnHour(t *testing.T) {
	o := optionsAt(deployments.Schedule{Kind: deployments.ScheduleDrift, Every: 6 * time.Hour})
	if !o.PauseOnFailure || o.Overlap != enums.SCHEDULE_OVERLAP_POLICY_SKIP || o.CatchupWindow != time.Hour ||
		o.RemainingActions != 0 || o.Paused {
		t.Errorf("the options are %+v", o)
	}
}

func TestAnIntervalCountsFromTheMomentItIsMade(t *testing.T) {
	every := 6 * time.Hour
	spec := optionsAt(deployments.Schedule{Kind: deployments.ScheduleDrift, Every: every}).Spec.Intervals[0]
	if at := now.Truncate(time.Second); spec.Every != every || time.Duration(at.UnixNano())%every != spec.Offset {
		t.Errorf("it runs at %+v", spec)
	}
}

func TestAOneTimeRunHappensOnceHoweverLate(t *testing.T) {
	o := optionsAt(deployments.Schedule{Kind: deployments.ScheduleDestroy, At: now.In(time.FixedZone("east", 3600))})
	c := o.Spec.Calendars[0]
	got := time.Date(c.Year[0].Start, time.Month(c.Month[0].Start), c.DayOfMonth[0].Start, c.Hour[0].Start,
		c.Minute[0].Start, c.Second[0].Start, 0, time.UTC)
	if !got.Equal(now.Truncate(time.Second)) || o.RemainingActions != 1 || o.CatchupWindow < 300*24*time.Hour {
		t.Errorf("it happens at %s, %d times, at most %s late", got, o.RemainingActions, o.CatchupWindow)
	}
}

func TestANoteOfTemporalsOwnGivesWayToTheErrorOfItsRun(t *testing.T) {
	n := deployments.ScheduleName{StackName: deployments.StackName{Organization: "o", Project: "p", Stack: "s"},
		Name: "n"}
	const own = "paused due to workflow failure: scheduled/o/p/s/n-2026: Encoded failure"
	last := deployments.ScheduleRun{ID: "scheduled/o/p/s/n-2026", Started: now, Error: "quota exceeded"}
	later := last
	later.ID = "scheduled/o/p/s/n-2027"
	const because = "paused because its run of 2026-03-04 05:06:07 UTC failed: quota exceeded"
	for _, c := range []struct {
		note string
		last *deployments.ScheduleRun
		want string
	}{
		{own, &last, because},
		{own, &later, because},
		{own, &deployments.ScheduleRun{ID: later.ID, Started: now},
			"paused because a run failed: `deployctl schedule runs n` shows which"},
		{own, nil, "paused because a run failed: `deployctl schedule runs n` shows which"},
		{"paused by ann", &last, "paused by ann"},
	} {
		if got := noteOf(n, c.note, c.last); got != c.want {
			t.Errorf("it says %q, want %q", got, c.want)
		}
	}
}

func TestAScheduledUpdateMayReadWhatBothItsCreatorAndTheDeployerMayRead(t *testing.T) {
	grant := func(organization string) *deployments.Authority {
		return &deployments.Authority{Grants: [][]deployments.Grant{
			{{Role: deployments.RoleViewer, Organization: organization}}}}
	}
	in := func(organization string) deployments.StackName {
		return deployments.StackName{Organization: organization, Project: "p", Stack: "s"}
	}
	for _, c := range []struct {
		name             string
		maker, deployer  *deployments.Authority
		acme, everywhere bool
	}{
		{"both of a time before that was kept", nil, nil, true, true},
		{"the maker is of acme", grant("acme"), nil, true, false},
		{"the deployer is of acme, and the maker of all", grant("*"), grant("acme"), true, false},
		{"they have nothing in common", grant("acme"), grant("initech"), false, false},
	} {
		a := authorityOf(deployments.Schedule{Authority: c.maker}, deployments.UpdateRequest{Authority: c.deployer})
		if acme, all := a.May(deployments.RoleViewer, in("acme")),
			a.May(deployments.RoleViewer, in("other")); acme != c.acme || all != c.everywhere {
			t.Errorf("%s: acme %v, others %v", c.name, acme, all)
		}
	}
}

func TestAOneTimeScheduleNeedsATokenThatIsValidUntilThen(t *testing.T) {
	s := newService(t)
	text, err := s.CreateToken(t.Context(), deployments.Token{
		Name: "ci", Grant: &deployments.Grant{Role: deployments.RoleDeployer, Organization: "*"},
		Expires: time.Now().Add(24 * time.Hour),
	})
	must(t, err)
	caller, err := s.Authenticate(t.Context(), text)
	must(t, err)
	for after, want := range map[time.Duration]string{
		time.Hour:      "has no update that a schedule could repeat", // which comes later
		48 * time.Hour: "the schedule would not run: the token ci may not do this any more: the token is good until ",
	} {
		err := s.CreateSchedule(t.Context(), deployments.Schedule{
			Name: deployments.ScheduleName{StackName: dev, Name: "ttl"}, Kind: deployments.ScheduleDestroy,
			At: time.Now().Add(after), Authority: caller.Delegated(),
			Options: deployments.ScheduleOptions{RunProgram: true},
		})
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("after %s: %v", after, err)
		}
	}
}

func TestWhatNeedsNoProgramIsScheduledOnAStackThatOnlyTheStockCLIHasUpdated(t *testing.T) {
	s, _ := newFake(t)
	u := version(1)
	must(t, s.Updates.PutRequest(t.Context(), u, deployments.UpdateRequest{Stack: dev, Kind: engine.KindUp,
		Lease: &deployments.Lease{Duration: time.Minute}}))
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: u, Kind: engine.KindUp,
		Status: deployments.StatusSucceeded, Started: now, Ended: now}))
	for _, c := range []struct {
		name  string
		sched deployments.Schedule
		why   string
	}{
		{"a check", deployments.Schedule{Kind: deployments.ScheduleDrift}, ""},
		{"a refresh", deployments.Schedule{Kind: deployments.ScheduleRefresh}, ""},
		{"a destroy", deployments.Schedule{Kind: deployments.ScheduleDestroy}, ""},
		{"a destroy with the program", deployments.Schedule{Kind: deployments.ScheduleDestroy,
			Options: deployments.ScheduleOptions{RunProgram: true}}, "executed by the stock CLI"},
		{"a remediation", deployments.Schedule{Kind: deployments.ScheduleDrift, Remediate: true},
			"executed by the stock CLI"},
		{"an update", deployments.Schedule{Kind: deployments.ScheduleUpdate}, "executed by the stock CLI"},
		{"a preview", deployments.Schedule{Kind: deployments.SchedulePreview}, "executed by the stock CLI"},
	} {
		c.sched.Name = deployments.ScheduleName{StackName: dev, Name: "n"}
		r, err := s.template(t.Context(), c.sched, c.sched.Kind == deployments.ScheduleDrift && !c.sched.Remediate)
		if c.why == "" && (err != nil || r.Bundle != "" || r.Secrets.Type != deployments.SecretsService || r.Lease != nil) {
			t.Errorf("%s: %+v, %v", c.name, r, err)
		}
		if c.why != "" && (deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), c.why)) {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

func TestAScheduleRepeatsTheLastUpThatTheServiceHasExecuted(t *testing.T) {
	s, _ := newFake(t)
	up := func(n int, status string, lease *deployments.Lease) {
		must(t, s.Updates.PutRequest(t.Context(), version(n), deployments.UpdateRequest{Stack: dev, Kind: engine.KindUp,
			Parallel: n, Refresh: n == 1, Lease: lease}))
		must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(n), Kind: engine.KindUp, Status: status,
			Started: now, Ended: now}))
	}
	repeated := func(kind deployments.ScheduleKind) int {
		r, err := s.template(t.Context(), deployments.Schedule{Kind: kind,
			Name: deployments.ScheduleName{StackName: dev, Name: "n"}}, false)
		if err != nil {
			return -1
		}
		if r.Refresh != (r.Parallel == 1) {
			t.Errorf("what repeats update %d refreshes first: %t", r.Parallel, r.Refresh)
		}
		return r.Parallel
	}
	up(1, deployments.StatusSucceeded, nil)
	up(2, deployments.StatusFailed, nil)
	if update, destroy := repeated(deployments.ScheduleUpdate), repeated(deployments.ScheduleDestroy); update != 1 ||
		destroy != 2 {
		t.Errorf("an update repeats %d, a destroy %d", update, destroy)
	}
	up(3, deployments.StatusSucceeded, &deployments.Lease{})
	if update, refresh := repeated(deployments.ScheduleUpdate), repeated(deployments.ScheduleRefresh); update != -1 ||
		refresh != 2 {
		t.Errorf("after an up of the stock CLI, an update repeats %d, a refresh %d", update, refresh)
	}
}

func TestAStackHasOnlySoManySchedules(t *testing.T) {
	s, _ := newFake(t)
	settled(t, s, deployments.SecretsProvider{})
	one := hourly
	for n := range deployments.MaxSchedules {
		one.Name.Name = fmt.Sprint("s", n)
		must(t, s.CreateSchedule(t.Context(), one))
	}
	one.Name.Name = "more"
	if err := s.CreateSchedule(t.Context(), one); deployments.CodeOf(err) != deployments.CodeConflict ||
		!strings.Contains(err.Error(), "remove one") {
		t.Errorf("one more: %v", err)
	}
	must(t, s.RemoveSchedule(t.Context(), deployments.ScheduleName{StackName: dev, Name: "s0"}))
	must(t, s.CreateSchedule(t.Context(), one))
}
