package display

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// shown returns what a view without a terminal prints for some items.
func shown(o Options, items ...deployments.WatchEvent) string {
	var out bytes.Buffer
	o.Out = &out
	if o.Kind == "" {
		o.Kind = "up"
	}
	view := New(o)
	for _, e := range items {
		view.Item(e)
	}
	view.Close()
	return out.String()
}

func anUpdate() []deployments.WatchEvent {
	site := step{op: apitype.OpCreate, typ: "aws:s3/bucket:Bucket", name: "site", new: map[string]any{"name": "site"}}
	page := step{op: apitype.OpUpdate, typ: object, name: "index.html", old: map[string]any{"a": 1},
		new: map[string]any{"a": 2}}
	same := step{op: apitype.OpSame, typ: object, name: "about.html", old: map[string]any{}, new: map[string]any{}}
	return []deployments.WatchEvent{
		stackStep().begins(), site.begins(), same.begins(), same.ends(), says("info", "", "hello\n"), site.ends(),
		says("warning", id(object, "index.html"), "old format\n"), page.begins(), page.ends(), stackStep().ends(),
		ended("succeeded", "", 2.5, map[string]int{"create": 1, "update": 1, "same": 1}),
	}
}

func TestWithoutATerminalEachStepIsALine(t *testing.T) {
	want := `+ aws:s3:Bucket site creating
hello
+ aws:s3:Bucket site created
warning: old format (deployctl:s3:Object index.html)
~ deployctl:s3:Object index.html updating (a)
    ~ a: 1 → 2
~ deployctl:s3:Object index.html updated
Outputs:
  ~ url: "http://a/" → "http://b/"
Resources:
  + 1 created
  ~ 1 updated
    1 unchanged
up succeeded in 2.5s (organization/shop/dev/7)
`
	if got := shown(Options{}, anUpdate()...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWhatAPreviewHasShownIsNotShownAgainInLines(t *testing.T) {
	got := shown(Options{Previewed: true}, anUpdate()...)
	if !strings.Contains(got, "updating (a)\n~ deployctl:s3:Object index.html updated\n") {
		t.Errorf("got\n%s", got)
	}
}

func TestALoggedUpdateWithDiffListsAllPropertiesOfWhatIsCreated(t *testing.T) {
	got := shown(Options{Diff: true}, anUpdate()...)
	if want := "+ aws:s3:Bucket site creating\n    + name: \"site\"\n"; strings.Count(got, want) != 1 {
		t.Errorf("there is no\n%s\nin\n%s", want, got)
	}
}

func TestWithoutATerminalEachRetryIsALine(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	attempt := func(n int, due time.Time) deployments.WatchEvent {
		return deployments.WatchEvent{Progress: &deployments.Progress{Running: []deployments.RunningStep{{
			URN: id(bucket, "site"), Attempt: n, LastError: "slow down\nplease", NextRetry: due,
		}}}}
	}
	want := `+ deployctl:s3:Bucket site creating
  deployctl:s3:Bucket site: attempt 2 in 4s, last error: slow down
  deployctl:s3:Bucket site: attempt 3, last error: slow down
`
	clock := func() time.Time { return start }
	got := shown(Options{Now: clock}, site.begins(), attempt(1, time.Time{}), attempt(2, start.Add(4*time.Second)),
		attempt(2, time.Time{}), attempt(3, time.Time{}), site.ends(), attempt(4, time.Time{}))
	if got, _, _ = strings.Cut(got, "+ deployctl:s3:Bucket site created"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestQuietlyOnlyWarningsErrorsAndTheSummaryAreShown(t *testing.T) {
	want := `warning: old format (deployctl:s3:Object index.html)
Resources:
  + 1 created
  ~ 1 updated
    1 unchanged
up succeeded in 2.5s (organization/shop/dev/7)
`
	if got := shown(Options{Quiet: true}, anUpdate()...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheResourceOfAnErrorStandsBeforeTheLinesThatFollow(t *testing.T) {
	bad := step{op: apitype.OpCreate, typ: "deployctl:command:Run", name: "bad", new: map[string]any{}}
	for message, want := range map[string]string{
		"it exited with code 7:\nboom\n": "error: it exited with code 7 (deployctl:command:Run bad):\n  boom\n",
		"there is no quota\n":            "error: there is no quota (deployctl:command:Run bad)\n",
	} {
		got := shown(Options{}, bad.begins(), says("error", id("deployctl:command:Run", "bad"), message), bad.fails())
		if !strings.Contains(got, want) {
			t.Errorf("it says\n%s, not\n%s", got, want)
		}
	}
}

func TestAnUpdateThatChangesNothingSaysSo(t *testing.T) {
	got := shown(Options{}, ended("succeeded", "", 0.5, map[string]int{"same": 3}))
	if want := "Resources:\n    3 unchanged\nup succeeded, nothing changed, in 0.5s " +
		"(organization/shop/dev/7)\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestJSONIsOneEngineEventPerLineAndASummary(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(shown(Options{JSON: true}, anUpdate()...)), "\n")
	if len(lines) != 11 {
		t.Fatalf("%d lines", len(lines))
	}
	if !strings.HasPrefix(lines[0], `{"sequence":0,"timestamp":0,"resourcePreEvent":{"metadata":{"op":"same"`) {
		t.Errorf("the first line is %s", lines[0])
	}
	want := `{"type":"summary","result":"succeeded","changes":{"create":1,"delete":0,"replace":0,"same":1,"update":1},"seconds":2.5,"update":"organization/shop/dev/7"}`
	if got := lines[len(lines)-1]; got != want {
		t.Errorf("the summary is\n%s\nwant\n%s", got, want)
	}
}

func TestProgramsCannotMoveTheCursor(t *testing.T) {
	got := shown(Options{}, says("info", "", "\x1b[2Jwiped\r\x07\ttab"))
	if got != "wiped    tab\n" {
		t.Errorf("%q", got)
	}
}

func TestSecretsAssetsAndUnknownsAreReadable(t *testing.T) {
	for want, value := range map[string]any{
		`"[secret]"`:                 map[string]any{sig.Key: sig.Secret, "ciphertext": "x"},
		`"asset a.html 0123abcd"`:    map[string]any{sig.Key: sig.AssetSig, "path": "a.html", "hash": "0123abcdef"},
		`"(known after the update)"`: sig.UnknownStringValue,
		`[{"a":"<b>"}]`:              []any{map[string]any{"a": "<b>"}},
	} {
		if got := projection.FormatValue(value); got != want {
			t.Errorf("%v is shown as %s, want %s", value, got, want)
		}
	}
}

func TestWithoutATerminalALongUpdateSaysFromTimeToTimeHowFarItIs(t *testing.T) {
	now := start
	var out bytes.Buffer
	view := New(Options{Out: &out, Now: func() time.Time { return now }, Kind: "up", Expected: expected(3)})
	for range 40 {
		now = now.Add(time.Second)
		view.Item(deployments.WatchEvent{Progress: &deployments.Progress{}})
	}
	want := "up: preparing, 15s\nup: preparing, 30s\n"
	if got := out.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAPhaseIsSaidOnceAndInTheMovingLineForAsLongAsItLasts(t *testing.T) {
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	s := projection.NewState()
	s.Apply(deployments.WatchEvent{Progress: &deployments.Progress{
		Phase: &deployments.Phase{Text: "installing packages", Since: since}}})
	s.Apply(deployments.WatchEvent{Progress: &deployments.Progress{}}) // of the steps, which leaves it
	if got := phaseText(s, since.Add(12*time.Second)); got != "installing packages (12s)" {
		t.Errorf("%q", got)
	}
	s.Apply(deployments.WatchEvent{Progress: &deployments.Progress{Phase: &deployments.Phase{}}})
	if got := phaseText(s, since.Add(13*time.Second)); got != "" {
		t.Errorf("%q after its end", got)
	}
}
