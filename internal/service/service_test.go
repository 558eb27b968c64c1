package service

import (
	"context"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

const someURN = "urn:pulumi:dev::shop::a:b:C::d"

var (
	nightly = deployments.ScheduleName{StackName: dev, Name: "nightly"}
	gone    = deployments.StackName{Organization: "organization", Project: "shop", Stack: "gone"}
)

func asking(id string) deployments.UpdateRequest {
	return deployments.UpdateRequest{Stack: dev, RequestID: id, Kind: engine.KindUp}
}

// settled gives the stack an update that has succeeded, with its request, which a schedule can repeat.
func settled(t *testing.T, s *Service, p deployments.SecretsProvider) {
	t.Helper()
	r := asking("r0")
	r.Secrets = p
	must(t, s.Updates.PutRequest(t.Context(), version(1), r))
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(1), Kind: engine.KindUp,
		Status: string(engine.StatusSucceeded), Started: time.Now(), Ended: time.Now()}))
}

func TestARequestBecomesOneUpdateHoweverOftenItIsSubmitted(t *testing.T) {
	s, f := newFake(t)
	var first []deployments.Accepted
	for _, id := range []string{"a", "b", "a", "b"} {
		a, err := s.Submit(t.Context(), asking(id))
		must(t, err)
		first = append(first, a)
	}
	if first[0].Update != version(1) || first[1].Update != version(2) || first[1].Position != 1 ||
		!reflect.DeepEqual(first[:2], first[2:]) || f.version != 2 {
		t.Errorf("they were answered %+v", first)
	}
}

func TestARequestThatReachesAStackAsItClosesIsSubmittedAgain(t *testing.T) {
	s, f := newFake(t)
	closes := 2
	s.temporal = closingStack{fakeTemporal: f, left: &closes}
	if a, err := s.Submit(t.Context(), asking("a")); err != nil || a.Update != version(1) {
		t.Errorf("it was answered %+v, %v", a, err)
	}
	closes = submitAttempts
	if _, err := s.Submit(t.Context(), asking("b")); err == nil || f.version != 1 {
		t.Errorf("it was answered %v", err)
	}
}

// closingStack is a Temporal whose stack closes when it is asked, a few times.
type closingStack struct {
	*fakeTemporal
	left *int
}

func (c closingStack) UpdateWithStartWorkflow(
	ctx context.Context, o client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	if *c.left > 0 {
		*c.left--
		return nil, missing()
	}
	return c.fakeTemporal.UpdateWithStartWorkflow(ctx, o)
}

func TestAPreviewStartsAtOnceUnderTheNameOfItsRequest(t *testing.T) {
	s, f := newFake(t)
	f.begin(version(1)) // a stack that is busy is no matter
	r := asking("look")
	r.DryRun = true
	for range 2 {
		a, err := s.Submit(t.Context(), r)
		if err != nil || a.Update.Version != "p-look" || a.Position != 0 {
			t.Errorf("it was answered %+v, %v", a, err)
		}
	}
	head, err := s.Head(t.Context(), dev)
	must(t, err)
	if len(f.started) != 1 || f.started[0].Request.Submitted == nil {
		t.Fatalf("it started %+v", f.started)
	}
	r.Submitted = f.started[0].Request.Submitted
	if r.Submitted.StackID != head.ID || r.Submitted.At.IsZero() ||
		!reflect.DeepEqual(f.started[0].Request, r) {
		t.Errorf("it started %+v, submitted as %+v", f.started, r.Submitted)
	}
}

func TestACancelReachesTheUpdateWhereverItIs(t *testing.T) {
	s, f := newFake(t)
	for _, id := range []string{"a", "b"} {
		_, err := s.Submit(t.Context(), asking(id))
		must(t, err)
	}
	must(t, s.Cancel(t.Context(), version(2), false)) // it waits
	must(t, s.Cancel(t.Context(), version(1), true))  // it runs
	forced := []any{engine.Cancelled{Forced: true}}
	want := map[string][]any{deployments.UpdateWorkflowID(version(1)): forced,
		deployments.RunWorkflowID(version(1)): forced}
	if len(f.waiting) != 0 || !reflect.DeepEqual(f.signals, want) {
		t.Errorf("%v waits, and the signals are %v", f.waiting, f.signals)
	}
	delete(f.open, deployments.RunWorkflowID(version(1))) // its program has not begun
	must(t, s.Cancel(t.Context(), version(1), false))
}

func TestAnAnswerReachesTheRunThatWaitsForIt(t *testing.T) {
	s, f := newFake(t)
	f.begin(version(1))
	f.undecided[someURN] = true
	info, err := s.Stack(t.Context(), dev)
	must(t, err)
	if info.Active == nil || !slices.Equal(info.Active.Waiting, []string{someURN}) {
		t.Errorf("the stack shows %+v", info.Active)
	}
	must(t, s.Resolve(t.Context(), version(1), someURN, "i-1"))
	if got := f.signals[deployments.RunWorkflowID(version(1))]; !reflect.DeepEqual(got,
		[]any{engine.Resolved{URN: someURN, ID: "i-1"}}) {
		t.Errorf("the run got %+v", got)
	}
}

func TestAStackShowsItsActiveAndWaitingUpdates(t *testing.T) {
	s, f := newFake(t)
	if info, err := s.Stack(t.Context(), dev); err != nil || info.Active != nil || len(info.Queued) > 0 {
		t.Errorf("an idle stack shows %+v, %v", info, err)
	}
	for _, id := range []string{"a", "b", "c"} {
		_, err := s.Submit(t.Context(), asking(id))
		must(t, err)
	}
	info, err := s.Stack(t.Context(), dev)
	if err != nil || info.Active == nil || info.Active.Update != version(1) || len(info.Queued) != 2 ||
		info.Queued[1].Update != version(3) {
		t.Errorf("it shows %+v, %v", info, err)
	}
	f.open[deployments.StackWorkflowID(dev)] = false // it was closed from outside: the head says what runs
	_, err = s.Claim(t.Context(), statestore.Claimant{Update: version(1), Writer: "w"})
	must(t, err)
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: version(1), Status: "running",
		Started: time.Now()}))
	if info, err = s.Stack(t.Context(), dev); err != nil || info.Active == nil || info.Active.Update != version(1) {
		t.Errorf("it shows %+v, %v", info, err)
	}
}

func TestAScheduleIsMadeShownPausedRunAndRemoved(t *testing.T) {
	s, f := newFake(t)
	settled(t, s, deployments.SecretsProvider{})
	made := deployments.Schedule{Name: nightly, Kind: deployments.ScheduleUpdate, Every: time.Hour, Initiator: "ann"}
	must(t, s.CreateSchedule(t.Context(), made))
	list, err := s.Schedules(t.Context(), dev)
	if err != nil || len(list) != 1 || !reflect.DeepEqual(list[0], made) {
		t.Errorf("it is listed as %+v, %v", list, err)
	}
	must(t, s.PauseSchedule(t.Context(), nightly, true, "bob"))
	if got, err := s.Schedule(t.Context(), nightly); err != nil || !got.Paused || got.Note != "paused by bob" {
		t.Errorf("it is shown as %+v, %v", got, err)
	}
	must(t, s.PauseSchedule(t.Context(), nightly, false, "bob"))
	must(t, s.RunSchedule(t.Context(), nightly))
	if got, err := s.Schedule(t.Context(), nightly); err != nil || got.Paused || got.Note != "" {
		t.Errorf("it is shown as %+v, %v", got, err)
	}
	if runs, err := s.ScheduleRuns(t.Context(), nightly, 10); err != nil || len(runs) != 0 {
		t.Errorf("its runs are %+v, %v", runs, err)
	}
	must(t, s.RemoveStack(t.Context(), dev, true))
	if len(f.schedules) != 0 {
		t.Errorf("the stack is gone, and %v are left", f.schedules)
	}
}

// refusal is a way in which a call that needs Temporal is refused.
type refusal struct {
	name  string
	given func(*testing.T, *Service, *fakeTemporal)
	call  func(*Service) error
	want  deployments.Code
}

func (r refusal) check(t *testing.T) {
	s, f := newFake(t)
	if r.given != nil {
		r.given(t, s, f)
	}
	if err := r.call(s); deployments.CodeOf(err) != r.want {
		t.Errorf("it is answered %q: %v", deployments.CodeOf(err), err)
	}
}

// busy and claimed make update 1 run; of one that is claimed, the head says so.
func busy(_ *testing.T, _ *Service, f *fakeTemporal) { f.begin(version(1)) }

func claimed(t *testing.T, s *Service, f *fakeTemporal) {
	t.Helper()
	_, err := s.Claim(t.Context(), statestore.Claimant{Update: version(1), Writer: "w"})
	must(t, err)
	f.begin(version(1))
}

var hourly = deployments.Schedule{Name: nightly, Kind: deployments.ScheduleUpdate, Every: time.Hour}

// scheduled makes a schedule.
func scheduled(t *testing.T, s *Service, _ *fakeTemporal) {
	t.Helper()
	settled(t, s, deployments.SecretsProvider{})
	must(t, s.CreateSchedule(t.Context(), hourly))
}

func TestACallAboutAnUpdateThatIsRefusedSaysWhy(t *testing.T) {
	ctx := t.Context()
	submit := func(change func(*deployments.UpdateRequest)) func(*Service) error {
		r := asking("r")
		change(&r)
		return func(s *Service) error { _, err := s.Submit(ctx, r); return err }
	}
	recovering := func(name deployments.StackName) func(*Service) error {
		return func(s *Service) error {
			_, err := s.Recover(ctx, deployments.RecoverRequest{Stack: name})
			return err
		}
	}
	for _, c := range []refusal{
		{"an update of a stack that is not there", nil,
			submit(func(r *deployments.UpdateRequest) { r.Stack = gone }), deployments.CodeNotFound},
		{"an update of no kind", nil, submit(func(r *deployments.UpdateRequest) { r.Kind = "" }),
			deployments.CodeInvalid},
		{"an update that does not wait", busy,
			submit(func(r *deployments.UpdateRequest) { r.OnBusy = deployments.OnBusyFail }),
			deployments.CodeConflict},
		{"the cancel of an update that has ended", nil,
			func(s *Service) error { return s.Cancel(ctx, version(1), false) }, deployments.CodeNotFound},
		{"the cancel of no update", nil, func(s *Service) error {
			return s.Cancel(ctx, deployments.UpdateName{StackName: dev, Version: "x"}, false)
		}, deployments.CodeInvalid},
		{"an answer that nothing waits for", busy,
			func(s *Service) error { return s.Resolve(ctx, version(1), someURN, "i") }, deployments.CodeConflict},
		{"an answer to an update that has ended", nil,
			func(s *Service) error { return s.Resolve(ctx, version(1), someURN, "i") }, deployments.CodeNotFound},
		{"an answer about no resource", busy,
			func(s *Service) error { return s.Resolve(ctx, version(1), "d", "i") }, deployments.CodeInvalid},
		{"watching an update that never was", nil, func(s *Service) error {
			return s.Watch(ctx, version(9), func(deployments.WatchEvent) error { return nil })
		}, deployments.CodeNotFound},
		{"recovering an update that runs", claimed, recovering(dev), deployments.CodeConflict},
		{"recovering a stack that is not there", nil, recovering(gone), deployments.CodeNotFound},
		{"importing while an update runs", busy, func(s *Service) error {
			_, err := s.Import(ctx, deployments.ImportRequest{Stack: dev,
				Deployment: apitype.UntypedDeployment{Version: 3,
					Deployment: []byte(`{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""}}`)}})
			return err
		}, deployments.CodeConflict},
		{"renaming a stack that has a schedule", scheduled,
			func(s *Service) error { return s.RenameStack(ctx, deployments.RenameRequest{From: dev, To: gone}) },
			deployments.CodeConflict},
	} {
		t.Run(c.name, c.check)
	}
}

func TestACallAboutAScheduleThatIsRefusedSaysWhy(t *testing.T) {
	ctx := t.Context()
	for _, c := range []refusal{
		{"a schedule that is there", scheduled,
			func(s *Service) error { return s.CreateSchedule(ctx, hourly) }, deployments.CodeExists},
		{"a schedule of a stack without an update", nil,
			func(s *Service) error { return s.CreateSchedule(ctx, hourly) }, deployments.CodeInvalid},
		{"a schedule of a stack under a passphrase", func(t *testing.T, s *Service, _ *fakeTemporal) {
			settled(t, s, deployments.SecretsProvider{Type: deployments.SecretsPassphrase})
		}, func(s *Service) error { return s.CreateSchedule(ctx, hourly) }, deployments.CodeInvalid},
		{"a schedule in the past", nil, func(s *Service) error {
			past := deployments.Schedule{Name: nightly, Kind: deployments.ScheduleDestroy,
				At: time.Now().Add(-time.Hour)}
			return s.CreateSchedule(ctx, past)
		}, deployments.CodeInvalid},
		{"showing a schedule that is not there", nil,
			func(s *Service) error { _, err := s.Schedule(ctx, nightly); return err }, deployments.CodeNotFound},
		{"the runs of a schedule that is not there", nil,
			func(s *Service) error { _, err := s.ScheduleRuns(ctx, nightly, 1); return err }, deployments.CodeNotFound},
		{"removing a schedule that is not there", nil,
			func(s *Service) error { return s.RemoveSchedule(ctx, nightly) }, deployments.CodeNotFound},
		{"pausing a schedule that is not there", nil,
			func(s *Service) error { return s.PauseSchedule(ctx, nightly, true, "ann") }, deployments.CodeNotFound},
		{"resuming a schedule that is not there", nil,
			func(s *Service) error { return s.PauseSchedule(ctx, nightly, false, "ann") }, deployments.CodeNotFound},
		{"running a schedule that is not there", nil,
			func(s *Service) error { return s.RunSchedule(ctx, nightly) }, deployments.CodeNotFound},
		{"running a schedule that runs", func(t *testing.T, s *Service, f *fakeTemporal) {
			scheduled(t, s, f)
			must(t, s.RunSchedule(ctx, nightly))
		}, func(s *Service) error { return s.RunSchedule(ctx, nightly) }, deployments.CodeConflict},
		{"running a schedule that the store does not have", func(t *testing.T, s *Service, f *fakeTemporal) {
			scheduled(t, s, f)
			kept := f.schedules[deployments.ScheduleID(nightly)]
			must(t, s.RemoveSchedule(ctx, nightly))
			f.schedules[deployments.ScheduleID(nightly)] = kept
		}, func(s *Service) error { return s.RunSchedule(ctx, nightly) }, deployments.CodeInvalid},
	} {
		t.Run(c.name, c.check)
	}
}

func TestACallThatTemporalDoesNotAnswerIsUnavailable(t *testing.T) {
	ctx := t.Context()
	for name, call := range map[string]func(*Service) error{
		"submit":  func(s *Service) error { _, err := s.Submit(ctx, asking("a")); return err },
		"cancel":  func(s *Service) error { return s.Cancel(ctx, version(1), false) },
		"resolve": func(s *Service) error { return s.Resolve(ctx, version(1), someURN, "") },
		"stack":   func(s *Service) error { _, err := s.Stack(ctx, dev); return err },
		"rename": func(s *Service) error {
			return s.RenameStack(ctx,
				deployments.RenameRequest{From: dev, To: gone})
		},
		"schedules":  func(s *Service) error { _, err := s.Schedules(ctx, dev); return err },
		"schedule":   func(s *Service) error { _, err := s.Schedule(ctx, nightly); return err },
		"runs":       func(s *Service) error { _, err := s.ScheduleRuns(ctx, nightly, 1); return err },
		"run":        func(s *Service) error { return s.RunSchedule(ctx, nightly) },
		"pause":      func(s *Service) error { return s.PauseSchedule(ctx, nightly, true, "") },
		"unschedule": func(s *Service) error { return s.RemoveSchedule(ctx, nightly) },
		"schedule it": func(s *Service) error {
			return s.CreateSchedule(ctx, deployments.Schedule{Name: nightly, Kind: deployments.ScheduleUpdate,
				Every: time.Hour})
		},
	} {
		s, f := newFake(t)
		settled(t, s, deployments.SecretsProvider{})
		f.away = serviceerror.NewUnavailable("connection refused")
		if err := call(s); deployments.CodeOf(err) != deployments.CodeUnavailable {
			t.Errorf("%s is answered %q: %v", name, deployments.CodeOf(err), err)
		}
	}
}

func TestAnUpdateSetsTheTagsOfItsConfiguration(t *testing.T) {
	s, _ := newFake(t)
	must(t, s.TagStack(t.Context(), dev, map[string]string{"owner": "ann", "team": "old"}))
	r := asking("a")
	r.Config = map[string]deployments.ConfigValue{"pulumi:tags": {Value: `{"team":"web","cost":"7"}`, Object: true}}
	preview := r
	preview.DryRun = true
	_, _ = s.Submit(t.Context(), preview)
	if info, err := s.Stack(t.Context(), dev); err != nil || info.Tags["team"] != "old" {
		t.Errorf("a preview sets %v, %v", info.Tags, err)
	}
	_, err := s.Submit(t.Context(), r)
	must(t, err)
	info, err := s.Stack(t.Context(), dev)
	must(t, err)
	if want := map[string]string{"owner": "ann", "team": "web", "cost": "7"}; !reflect.DeepEqual(info.Tags, want) {
		t.Errorf("the tags are %v", info.Tags)
	}
	r.RequestID = "b"
	for _, value := range []deployments.ConfigValue{
		{Value: `{"team":7}`, Object: true}, {Value: "web"}, {Value: `{"team":"web"}`, Object: true, Secret: true},
	} {
		r.Config["pulumi:tags"] = value
		if _, err := s.Submit(t.Context(), r); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%+v: %v", value, err)
		}
	}
}
