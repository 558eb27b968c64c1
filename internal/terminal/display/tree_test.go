package display

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAnUpdateIsALiveTreeAndThenASummary(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{"name": "site"}}
	page := step{
		op: apitype.OpUpdate, typ: object, name: "index.html", parent: id(bucket, "site"),
		old: map[string]any{"content": "hello"}, new: map[string]any{"content": "bye"},
		detailed: map[string]apitype.PropertyDiff{"content": {Kind: apitype.DiffUpdate, InputDiff: true}},
	}
	s := newScene(t, 80, 24, Options{})
	s.at(0, stackStep().begins(), site.begins()).at(3).shows(`
  pulumi:pulumi:Stack shop-dev  running (3s)
+ └─ deployctl:s3:Bucket site   creating (3s)
⠋ up: 0 done, 1 running, 3s
`)
	s.at(4, site.ends(), page.begins()).at(6).shows(`
  pulumi:pulumi:Stack shop-dev          running (6s)
+ └─ deployctl:s3:Bucket site           created (4s)
~    └─ deployctl:s3:Object index.html  updating (2s)
          ~ content: "hello" → "bye"
⠋ up: 1 done, 1 running, 6s
`)
	s.at(7, page.ends(), stackStep().ends(), ended("succeeded", "", 7.25,
		map[string]int{"create": 1, "update": 1, "same": 12}))
	s.tree.Close()
	s.shows(`
  pulumi:pulumi:Stack shop-dev
+ └─ deployctl:s3:Bucket site           created (4s)
~    └─ deployctl:s3:Object index.html  updated (3s)
          ~ content: "hello" → "bye"

Outputs:
  ~ url: "http://a/" → "http://b/"

Resources:
  + 1 created
  ~ 1 updated
    12 unchanged
up succeeded in 7.2s (organization/shop/dev/7)
`)
	if s.term.hidden {
		t.Error("the cursor is still hidden")
	}
}

func TestARetriedStepShowsItsAttemptTheWaitAndTheLastError(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	s := newScene(t, 90, 24, Options{}).at(0, site.begins())
	s.at(5, deployments.WatchEvent{Progress: &deployments.Progress{Running: []deployments.RunningStep{{
		URN: id(bucket, "site"), Attempt: 3, Started: start, LastError: "connection refused\nby the host",
		NextRetry: start.Add(9 * time.Second),
	}}}}).shows(`
+ deployctl:s3:Bucket site  creating (5s), attempt 3 in 4s
    last error: connection refused
⠋ up: 0 done, 1 running, 5s
`)
}

func TestAFailureStandsWithItsResourceAndIsNotRepeated(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	s := newScene(t, 80, 24, Options{}).at(0, site.begins())
	s.at(1, says("error", id(bucket, "site"), "<{%fg 1%}>no quota<{%reset%}>\nask for more\n"), site.fails(),
		ended("failed", "deployctl:s3:Bucket site: no quota", 1, nil))
	s.tree.Close()
	s.shows(`
+ deployctl:s3:Bucket site  create failed
    error: no quota
      ask for more

Resources:
  ! 1 failed
up failed in 1s (organization/shop/dev/7)
`)
}

func TestAReplacementIsOneRow(t *testing.T) {
	var items []deployments.WatchEvent
	for _, op := range []apitype.OpType{apitype.OpCreateReplacement, apitype.OpReplace, apitype.OpDeleteReplaced} {
		one := step{op: op, typ: bucket, name: "site", old: map[string]any{"name": "a"},
			new: map[string]any{"name": "b"}}
		if op == apitype.OpDeleteReplaced {
			one.new = nil
		}
		items = append(items, one.begins())
		if op != apitype.OpDeleteReplaced {
			items = append(items, one.ends())
		}
	}
	s := newScene(t, 80, 24, Options{}).at(0, items...).shows(`
± deployctl:s3:Bucket site  deleting original
    ~ name: "a" → "b"
⠋ up: 0 done, 1 running
`)
	s.at(1, step{op: apitype.OpDeleteReplaced, typ: bucket, name: "site", old: map[string]any{}}.ends(),
		ended("succeeded", "", 1, map[string]int{"replace": 1}))
	s.tree.Close()
	s.shows(`
± deployctl:s3:Bucket site  replaced (1s)
    ~ name: "a" → "b"

Resources:
  ± 1 replaced
up succeeded in 1s (organization/shop/dev/7)
`)
}

func TestWhatDoesNotFitIsLeftOutDoneFirst(t *testing.T) {
	scene := func(rows int) *scene {
		s := newScene(t, 60, rows, Options{})
		for i := range 20 {
			one := step{op: apitype.OpCreate, typ: object, name: fmt.Sprintf("page-%d", i), new: map[string]any{}}
			s.at(0, one.begins())
			if i < 17 {
				s.at(0, one.ends())
			}
		}
		return s
	}
	scene(8).shows(`
+ deployctl:s3:Object page-17  creating
+ deployctl:s3:Object page-18  creating
+ deployctl:s3:Object page-19  creating
⠋ up: 17 done, 3 running
`)
	scene(4).shows(`
+ deployctl:s3:Object page-17  creating
  … 2 more
⠋ up: 17 done, 3 running
`)
}

func TestANarrowerWindowIsRedrawnWithoutLeavings(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: strings.Repeat("long-", 10) + "世界", new: map[string]any{}}
	s := newScene(t, 100, 24, Options{Color: true}).at(0, site.begins())
	s.tree.draw()
	// The terminal wraps what it shows to its new width.
	s.term.columns = 40
	wrapped := &terminal{columns: 40, rows: 24}
	for _, line := range strings.Split(strings.TrimSuffix(s.term.String(), "\n"), "\n") {
		_, _ = wrapped.Write([]byte(line + "\r\n"))
	}
	*s.term = *wrapped
	s.shows(`
+ long-long-long-long…  creating
⠋ up: 0 done, 1 running
`)
}

func TestAQueuedUpdateSaysWhoIsAhead(t *testing.T) {
	behind := ended("running", "", 0, nil).End
	behind.Initiator, behind.Started = "ann", time.Date(2026, 1, 2, 12, 3, 5, 0, time.Local)
	newScene(t, 80, 24, Options{}).at(0, deployments.WatchEvent{Progress: &deployments.Progress{Position: 2, Behind: behind}}).shows(`
⠋ waiting for update 7 of ann, running since 12:03:05; position 2
`)
}

func TestWhoWaitsForTheStockCLIIsToldWhatToDoIfThatIsGone(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 1, 2, 12, minute, 5, 0, time.Local) }
	behind := ended("running", "", 0, nil).End
	behind.Initiator, behind.Started = "ann", at(3)
	behind.Lease = &deployments.ClientLease{Heard: at(4), Ends: at(9)}
	waiting := deployments.WatchEvent{Progress: &deployments.Progress{Position: 2, Behind: behind}}
	newScene(t, 80, 24, Options{}).at(0, waiting).shows(`
The stock CLI executes update 7, and was last heard of at 12:04:05. If it is
gone, deployctl cancel organization/shop/dev/7 frees the stack at once; else it
is free at 12:09:05.
⠋ waiting for update 7 of ann by the stock CLI, running since 12:03:05; positi…
`)
	behind.Cancelling = true
	newScene(t, 120, 24, Options{}).at(0, waiting).shows(`
⠋ waiting for update 7 of ann by the stock CLI, running since 12:03:05, which is being cancelled; position 2
`)
}

func TestAPreviewSaysWhatWouldBeDone(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	s := newScene(t, 80, 24, Options{Preview: true}).at(0, stackStep().begins(), site.begins(), site.ends(),
		stackStep().ends())
	s.at(1, ended("succeeded", "", 1, map[string]int{"create": 1}))
	s.tree.Close()
	s.shows(`
  pulumi:pulumi:Stack shop-dev
+ └─ deployctl:s3:Bucket site   create

Outputs:
  ~ url: "http://a/" → "http://b/"

Resources:
  + 1 to create
preview succeeded in 1s
`)
}

func TestANoteOfTheConnectionIsShownInPlace(t *testing.T) {
	s := newScene(t, 80, 24, Options{})
	s.tree.Note("service unreachable, waiting…")
	s.shows(`
service unreachable, waiting…
⠋ up: preparing
`)
}

func TestAnUndecidableCreateSaysWhatToAnswer(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	newScene(t, 60, 24, Options{}).at(0, site.begins(), deployments.WatchEvent{Progress: &deployments.Progress{Waiting: []string{id(bucket, "site")}}}).shows(`
+ deployctl:s3:Bucket site  creating
waiting for you: was deployctl:s3:Bucket site created?
Look, and answer: deployctl resolve
'urn:pulumi:dev::shop::deployctl:s3:Bucket::site' --created
ID, or --absent
⠋ up: 0 done, 1 running
`)
}

func TestALongNameDoesNotHideWhatBecomesOfTheOthers(t *testing.T) {
	long := step{op: apitype.OpCreate, typ: bucket, name: strings.Repeat("long-", 12), new: map[string]any{}}
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	newScene(t, 80, 24, Options{}).at(0, long.begins(), site.begins()).at(3).shows(`
+ deployctl:s3:Bucket long-long-long-long-lon…  creating (3s)
+ deployctl:s3:Bucket site                      creating (3s)
⠋ up: 0 done, 2 running, 3s
`)
}

func TestOnANarrowScreenPathsAreBrokenBetweenTheirPartsAndURNsStayWhole(t *testing.T) {
	site := step{op: apitype.OpCreate, typ: bucket, name: "site", new: map[string]any{}}
	s := newScene(t, 40, 24, Options{})
	s.at(0, site.begins(), deployments.WatchEvent{Progress: &deployments.Progress{Waiting: []string{id(bucket, "site")}}}).shows(`
+ s3:Bucket site        creating
waiting for you: was
deployctl:s3:Bucket site created? Look,
and answer: deployctl resolve
'urn:pulumi:dev::shop::deployctl:s3:Buc
ket::site'
--created ID, or --absent
⠋ up: 0 done, 1 running
`)
	why := "no plugin at /var/lib/deployctl/pulumi/plugins/resource-fake-v1.2.3: see https://example.com/providers"
	s.at(1, site.fails(), says("error", id(bucket, "site"), why), ended("failed", why, 1, nil))
	s.tree.Close()
	s.shows(`
+ deployctl:s3:Bucket site  create
    failed
    error: no plugin at /var/lib/
    deployctl/pulumi/plugins/
    resource-fake-v1.2.3: see
    https://example.com/providers

Resources:
  ! 1 failed
up failed in 1s
(organization/shop/dev/7)
`)
}

func TestSentencesAreBrokenBetweenWords(t *testing.T) {
	screen := &Screen{Size: func() (int, int) { return 20, 10 }}
	if got, want := Fold("the service has died; starting it\n  again", screen),
		"the service has\ndied; starting it\n  again"; got != want {
		t.Errorf("%q", got)
	}
	if text := strings.Repeat("word ", 50); Fold(text, nil) != text {
		t.Error("what is no terminal is given other lines")
	}
}

func TestOnANarrowScreenRowsKeepTheNamesThatTellThemApart(t *testing.T) {
	s := newScene(t, 40, 24, Options{})
	s.at(0, stackStep().begins())
	for _, name := range []string{"a", "migrations-of-orders"} {
		s.at(0, step{op: apitype.OpUpdate, typ: "deployctl:command:Run", name: name, old: map[string]any{},
			new: map[string]any{}}.begins())
	}
	s.at(16).shows(`
  Stack shop-dev        running (16s)
~ ├─ command:Run a      updating (16s)
  │    the provider finds a difference…
~ └─ migrations-of-or…  updating (16s)
       the provider finds a difference…
⠋ up: 0 done, 2 running, 16s
`)
}

func TestAStepThatWaitsForItsTurnDoesNotRun(t *testing.T) {
	s := newScene(t, 80, 24, Options{Expected: expected(61)})
	var running []deployments.RunningStep
	for i := range 3 {
		one := step{op: apitype.OpCreate, typ: object, name: fmt.Sprintf("page-%d", i), new: map[string]any{}}
		s.at(0, one.begins())
		attempt := 1
		if i == 2 {
			attempt = 0
		}
		running = append(running, deployments.RunningStep{URN: id(object, fmt.Sprintf("page-%d", i)), Attempt: attempt})
	}
	s.at(72, deployments.WatchEvent{Progress: &deployments.Progress{Running: running}}).shows(`
+ deployctl:s3:Object page-0  creating (1m12s)
+ deployctl:s3:Object page-1  creating (1m12s)
+ deployctl:s3:Object page-2  waiting for its turn
⠋ up: 0 of 61 done, 2 running, 1 waiting for their turn, 1m12s
`)
}

func TestNoMoreStepsRunThanMayAndTheOthersClocksStartWithTheirTurns(t *testing.T) {
	s := newScene(t, 80, 24, Options{})
	s.tree.state.Parallel = 2
	var pages []step
	for i := range 3 {
		pages = append(pages, step{op: apitype.OpCreate, typ: object, name: fmt.Sprintf("page-%d", i),
			new: map[string]any{}})
	}
	s.at(0, pages[0].begins(), pages[1].begins(), pages[2].begins()).at(4).shows(`
+ deployctl:s3:Object page-0  creating (4s)
+ deployctl:s3:Object page-1  creating (4s)
+ deployctl:s3:Object page-2  waiting for its turn
⠋ up: 0 done, 2 running, 1 waiting for their turn, 4s
`)
	s.at(5, pages[0].ends()).at(7).shows(`
+ deployctl:s3:Object page-0  created (5s)
+ deployctl:s3:Object page-1  creating (7s)
+ deployctl:s3:Object page-2  creating (2s)
⠋ up: 1 done, 2 running, 7s
`)
}

// expected are the rows of a preview of pages.
func expected(n int) (rows []*projection.Row) {
	for i := range n {
		name := fmt.Sprintf("page-%d", i)
		rows = append(rows, &projection.Row{URN: id(object, name), Type: object, Name: name})
	}
	return rows
}

func TestBeforeTheFirstResourceTheStatusSaysWhatIsGoingOn(t *testing.T) {
	s := newScene(t, 80, 24, Options{})
	s.shows(`
⠋ up: preparing
`)
	root := step{op: apitype.OpCreate, typ: projection.StackType, name: "shop-dev", new: map[string]any{}}
	s.at(12, root.begins()).shows(`
+ pulumi:pulumi:Stack shop-dev  running
⠋ up: the program runs, and has declared nothing yet, 12s
`)
}

func TestACancelledUpdateSaysWhatWasCutOffAndWhatItDidNotComeTo(t *testing.T) {
	var items []deployments.WatchEvent
	for i := range 3 {
		one := step{op: apitype.OpCreate, typ: object, name: fmt.Sprintf("page-%d", i), new: map[string]any{}}
		items = append(items, one.begins())
		if i == 0 {
			items = append(items, one.ends())
		} else {
			items = append(items, says("warning", id(object, fmt.Sprintf("page-%d", i)), "cut off by the cancel"),
				one.fails())
		}
	}
	s := newScene(t, 80, 24, Options{Expected: expected(9)}).at(0, append(items,
		ended("cancelled", "", 1, map[string]int{"create": 1}))...)
	s.tree.Close()
	s.shows(`
+ deployctl:s3:Object page-0  created
+ deployctl:s3:Object page-1  creating: cut off
    warning: cut off by the cancel
+ deployctl:s3:Object page-2  creating: cut off
    warning: cut off by the cancel

Resources:
  + 1 created
  ! 2 cut off: deployctl:s3:Object page-1, deployctl:s3:Object page-2
  ! 6 not begun: deployctl:s3:Object page-3, deployctl:s3:Object page-4,
deployctl:s3:Object page-5 and 3 more
up cancelled in 1s (organization/shop/dev/7)
`)
}

func TestRowsAreInTheSameOrderHoweverEventsCome(t *testing.T) {
	s := newScene(t, 80, 24, Options{Preview: true})
	for _, name := range []string{"b-10", "b-9", "a"} {
		one := step{op: apitype.OpCreate, typ: object, name: name, new: map[string]any{}}
		s.at(0, one.begins(), one.ends())
	}
	s.at(0, ended("succeeded", "", 1, nil))
	s.tree.Close()
	s.shows(`
+ deployctl:s3:Object a     create
+ deployctl:s3:Object b-9   create
+ deployctl:s3:Object b-10  create

preview succeeded in 1s
`)
}
