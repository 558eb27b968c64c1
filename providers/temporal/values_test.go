package temporal

import (
	"reflect"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/schedule/v1"
)

func TestATimeSpanHasOneForm(t *testing.T) {
	for text, want := range map[string]Duration{
		"3d": "72h", "72h": "72h", "4320m": "72h", "90m": "1h30m", "90s": "1m30s", "1h0m5s": "1h0m5s", "0s": "", "0d": "",
	} {
		var d Duration
		if err := d.UnmarshalProperty(resource.NewProperty(text)); err != nil || d != want {
			t.Errorf("%s is %q, %v", text, d, err)
		}
	}
	for _, text := range []string{"", "3", "-1h", "3 days", "99999999d", "d"} {
		var d Duration
		if err := d.UnmarshalProperty(resource.NewProperty(text)); err == nil {
			t.Errorf("%q is %q", text, d)
		}
	}
	for _, text := range []string{"6h/6h", "6h/", "/1h", "100ms", "0s"} {
		var i Interval
		if err := i.UnmarshalProperty(resource.NewProperty(text)); err == nil {
			t.Errorf("%q is %v", text, i)
		}
	}
}

// TestAChangedCalendarIsShownAlthoughItsCommentStayed: the comment of a calendar is the cron expression it comes from.
func TestAChangedCalendarIsShownAlthoughItsCommentStayed(t *testing.T) {
	daily := &schedule.StructuredCalendarSpec{Hour: []*schedule.Range{{Start: 3}}, Comment: "0 3 * * *"}
	whole := &schedule.Schedule{Spec: &schedule.ScheduleSpec{
		StructuredCalendar: []*schedule.StructuredCalendarSpec{daily}}}
	first := scheduleOf(place{"a", "b"}, whole, nil)
	if !slices.Equal(first.Cron, []string{"0 3 * * *"}) {
		t.Errorf("it reads as %v", first.Cron)
	}
	daily.Hour[0].Start = 4
	if seen := scheduleOf(place{"a", "b"}, whole, first.calendars); slices.Equal(seen.Cron, first.Cron) {
		t.Error("another hour is not seen")
	}
	daily.Comment = ""
	if seen := scheduleOf(place{"a", "b"}, whole, nil); !slices.Equal(seen.Cron, []string{"* * 4-4/1 * * * *"}) {
		t.Errorf("a calendar without a comment reads as %v", seen.Cron)
	}
}

func TestWhatIsNotDeclaredOfAScheduleStays(t *testing.T) {
	in := ScheduleIn{Name: "b", Overlap: "Skip", WorkflowType: "Report", TaskQueue: "reports",
		Memo: map[string]any{"team": "web"}}
	whole, err := in.on(nil, nil, mark{"me", "web/dev"}, "b")
	if err != nil {
		t.Fatal(err)
	}
	action := whole.GetAction().GetStartWorkflow()
	action.Memo.Fields["theirs"], _ = payload("kept")
	action.RetryPolicy = &common.RetryPolicy{MaximumAttempts: 3}
	whole.State.Paused, whole.State.Notes = true, "by hand"
	olds := in
	in.Memo = nil
	if whole, err = in.on(whole, &olds, mark{"me", "web/dev"}, "b"); err != nil {
		t.Fatal(err)
	}
	seen := scheduleOf(place{"a", "b"}, whole, nil)
	if want := map[string]any{"theirs": "kept"}; !reflect.DeepEqual(seen.Memo, want) || seen.owner != "me" {
		t.Errorf("its memo is %v, its owner %q", seen.Memo, seen.owner)
	}
	if !*seen.Paused || seen.Note != "by hand" || whole.GetAction().GetStartWorkflow().GetRetryPolicy() == nil {
		t.Error("what was set by hand is gone")
	}
}

func TestAMarkTellsWhoseAThingIs(t *testing.T) {
	us := provider.Identity{StackID: "identity-1", URN: "urn:pulumi:dev::web::deployctl:temporal:Schedule::nightly"}
	them := us
	them.StackID = "identity-2"
	ours, theirs := markOf(us), markOf(them)
	switch {
	case ours.refuses(us, "it", "id", false, "") != nil, ours.ownership(us, "") != provider.Owned:
		t.Error("our own thing is refused")
	case theirs.refuses(us, "it", "id", false, "") == nil, mark{}.refuses(us, "it", "id", false, "") == nil:
		t.Error("a create takes what is not ours")
	case theirs.refuses(us, "it", "id", true, ours.owner) == nil, !theirs.lost(us, ours.owner):
		t.Error("an update takes back what another stack has taken over")
	case theirs.refuses(us, "it", "id", true, theirs.owner) != nil,
		mark{}.refuses(us, "it", "id", true, ours.owner) != nil:
		t.Error("what was adopted, or has lost its mark, is refused")
	case !ours.of(us), ours.of(them), mark{}.of(us):
		t.Error("a list has others' things")
	}
}
