package display

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// network is a resource with nested values, JSON in a text, a list and a text of several lines.
func network(four int, action, subnet, user string) map[string]any {
	return map[string]any{
		"settings": map[string]any{
			"deep": map[string]any{"three": []any{1.0, map[string]any{"four": float64(four)}}},
			"policy": `{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "` + action +
				`", "Resource": "*"}]}`,
			"subnets": []any{map[string]any{"name": "a", "cidr": "10.0.1.0/24"},
				map[string]any{"name": "b", "cidr": subnet}},
		},
		"script":   "#!/bin/sh\nset -e\necho one\necho two\nadduser " + user + "\necho three\necho four\necho five\n",
		"password": "[secret]",
	}
}

func networkStep() step {
	return step{op: apitype.OpUpdate, typ: "fake:index:Named", name: "net",
		old: network(4, "s3:GetObject", "10.0.2.0/24", "ann"), new: network(5, "s3:PutObject", "10.0.9.0/24", "bob"),
		detailed: map[string]apitype.PropertyDiff{
			"settings": {Kind: apitype.DiffUpdate, InputDiff: true},
			"script":   {Kind: apitype.DiffUpdate, InputDiff: true},
			"password": {Kind: apitype.DiffUpdateReplace, InputDiff: true},
		}}
}

const networkShort = `    ~ password: "[secret]" → "[secret]" (replaces)
    ~ script: +1 -1 lines
      - adduser ann
      + adduser bob
    ~ settings.deep.three[1].four: 4 → 5
    ~ settings.policy (json) Statement[0].Action: "s3:GetObject" → "s3:PutObject"
    ~ settings.subnets[1].cidr: "10.0.2.0/24" → "10.0.9.0/24"
`

func TestAPreviewShowsOldAndNewOfEveryPlaceThatChanges(t *testing.T) {
	s := newScene(t, 120, 40, Options{Preview: true}).at(0, networkStep().begins(), networkStep().ends())
	s.at(1, ended("succeeded", "", 1, map[string]int{"update": 1}))
	s.tree.Close()
	s.shows("~ fake:index:Named net  update\n" + networkShort + "\nResources:\n  ~ 1 to update\npreview succeeded in " +
		"1s\n")
}

func TestAPreviewInAPipeShowsTheSame(t *testing.T) {
	got := shown(Options{Preview: true}, networkStep().begins(), networkStep().ends())
	if want := "~ fake:index:Named net update (password, script, settings)\n" + networkShort; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestOnANarrowScreenOldAndNewStandBelowEachOther(t *testing.T) {
	s := newScene(t, 60, 40, Options{Preview: true}).at(0, networkStep().begins(), networkStep().ends())
	s.tree.draw()
	for _, want := range []string{"~ settings.policy (json) Statement[0].Action:\n      - \"s3:GetObject\"\n      + " +
		"\"s3:PutObject\"\n"} {
		if !strings.Contains(s.term.String(), want) {
			t.Errorf("there is no\n%s\nin\n%s", want, s.term)
		}
	}
}

func TestDetailsAndDiffShowTextWithItsContextAndWhatIsCreatedWithAllProperties(t *testing.T) {
	made := step{op: apitype.OpCreate, typ: object, name: "page", new: map[string]any{
		"content": "<h1>\nhello\n</h1>\n", "tags": map[string]any{"a": strings.Repeat("x", 80)}}}
	state := projection.NewState()
	for _, e := range []deployments.WatchEvent{networkStep().ends(), made.ends()} {
		state.Apply(e)
	}
	details := strings.Join(Details(state, Options{}), "\n")
	diff := shown(Options{Preview: true, Diff: true}, networkStep().ends(), made.ends())
	for _, want := range []string{
		"    ~ script: +1 -1 lines\n        … 2 equal lines\n        echo one\n        echo two\n      - adduser " +
			"ann\n      + adduser bob\n        echo three\n",
		"    + content: |\n        <h1>\n        hello\n        </h1>\n    + tags:\n        a: \"" +
			strings.Repeat("x", 80) + "\"",
	} {
		if !strings.Contains(details, want) || !strings.Contains(diff, want) {
			t.Errorf("there is no\n%s\nin the details\n%s\nor in the diff\n%s", want, details, diff)
		}
	}
}

func TestWhatIsLongIsCutAroundTheChangeAndCounted(t *testing.T) {
	left, right := strings.Repeat("l", 400), strings.Repeat("r", 400)
	one := step{op: apitype.OpUpdate, typ: object, name: "page", old: map[string]any{"key": left + "old" + right},
		new: map[string]any{"key": left + "new" + right}}
	got := shown(Options{Preview: true}, one.ends())
	for _, want := range []string{"lloldrr", "llnewrr", " characters)…"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	if full := shown(Options{Preview: true, Diff: true}, one.ends()); !strings.Contains(full, left+"new"+right) {
		t.Errorf("--diff cuts\n%s", full)
	}
}

func TestWhatIsLongIsCutBetweenItsChangesAlsoInLines(t *testing.T) {
	middle := strings.Repeat("w", 100_000)
	values := func(mark string) map[string]any {
		return map[string]any{"key": "A" + mark + middle + mark + "C", "text": "one\n" + middle + mark + middle + "\n"}
	}
	old := values("")
	old["text"] = old["text"].(string) + middle + "\n"
	one := step{op: apitype.OpUpdate, typ: object, name: "page", old: old, new: values("!")}
	got := shown(Options{Preview: true}, one.ends())
	for _, want := range []string{`+ "A!www`, `www!C"`, "www!www"} {
		if !strings.Contains(got, want) || len(got) > 1000 {
			t.Errorf("there is no %s in the %d characters\n%s", want, len(got), got[:min(len(got), 1000)])
		}
	}
}

func TestAnInsertionIntoAListIsOneChangeWhateverTheProviderNames(t *testing.T) {
	rules := func(ports ...float64) map[string]any {
		var list []any
		for _, p := range ports {
			list = append(list, map[string]any{"port": p, "cidr": "0.0.0.0/0"})
		}
		return map[string]any{"rules": list}
	}
	one := step{op: apitype.OpUpdate, typ: object, name: "fw", old: rules(80, 443), new: rules(22, 80, 443),
		detailed: map[string]apitype.PropertyDiff{
			"rules[0].port": {Kind: apitype.DiffUpdate, InputDiff: true},
			"rules[1].port": {Kind: apitype.DiffUpdate, InputDiff: true},
			"rules[2]":      {Kind: apitype.DiffAdd, InputDiff: true},
		}}
	want := "~ deployctl:s3:Object fw update (rules)\n    + rules[0]: {\"cidr\":\"0.0.0.0/0\",\"port\":22}\n"
	if got := shown(Options{Preview: true}, one.ends()); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestASecretInsideOfAValueIsSaidToDiffer(t *testing.T) {
	value := map[string]any{"env": map[string]any{"A": "[secret]", "B": "b"}}
	one := step{op: apitype.OpUpdate, typ: object, name: "fn", old: value, new: value,
		detailed: map[string]apitype.PropertyDiff{"env": {Kind: apitype.DiffUpdate, InputDiff: true}}}
	if got := shown(Options{Preview: true}, one.ends()); !strings.Contains(got,
		"~ env: a secret inside of it differs\n") {
		t.Error(got)
	}
}

func TestValuesThatLookTheSameAreToldApart(t *testing.T) {
	values := func(space, tab string) map[string]any {
		return map[string]any{
			"key" + space: map[string]any{"in" + space: 1.0}, "list": []any{"a" + space}, "text": "one\ntwo" + space +
				"\n", "value": "ad" + space + "min",
			"make": "all:\n" + tab + "go\n",
		}
	}
	one := step{op: apitype.OpUpdate, typ: object, name: "x\u200b", old: values("", "\t"),
		new: values("\u200b", "    ")}
	want := `deployctl:s3:Object x\u200b update (key, key\u200b, list, make, text, value)
    - key: {"in":1}
    + key\u200b: {"in\u200b":1}
    ~ list[0]: "a" → "a\u200b"
    ~ make: +1 -1 lines
      - \tgo
      +     go
    ~ text: +1 -1 lines
      - two
      + two\u200b
    ~ value: "admin" → "ad\u200bmin"
`
	if got := shown(Options{Preview: true}, one.ends()); !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	details := shown(Options{Preview: true, Diff: true}, one.ends())
	for _, line := range []string{`- key: {"in":1}`, `+ key\u200b: {"in\u200b":1}`, `+ two\u200b`, `- \tgo`} {
		if !strings.Contains(details, line) {
			t.Errorf("there is no %s in\n%s", line, details)
		}
	}
}

func TestARefreshNamesWhatIsGoneAndWhatIsOtherBeforeItAsks(t *testing.T) {
	steps := []step{
		{op: apitype.OpRefresh, typ: object, name: "file", old: map[string]any{"path": "x"}},
		{op: apitype.OpRefresh, typ: object, name: "other", old: map[string]any{"acl": "private"},
			new:      map[string]any{"acl": "public"},
			detailed: map[string]apitype.PropertyDiff{"acl": {Kind: apitype.DiffUpdate}}},
		{op: apitype.OpRefresh, typ: object, name: "same", old: map[string]any{"a": "b"},
			new: map[string]any{"a": "b"}},
	}
	var items []deployments.WatchEvent
	for _, s := range steps {
		items = append(items, s.begins(), s.ends())
	}
	items = append(items, ended("succeeded", "", 1, map[string]int{"delete": 1, "update": 1, "same": 1}))
	want := `- deployctl:s3:Object file gone
~ deployctl:s3:Object other changed outside (acl)
    ~ acl: "private" → "public"
Resources:
  ~ 1 changed outside
  - 1 gone
    1 unchanged
preview succeeded in 1s
`
	if got := shown(Options{Preview: true, Kind: "refresh"}, items...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	s := newScene(t, 80, 24, Options{Preview: true, Kind: "refresh"}).at(0, items...)
	s.tree.Close()
	s.shows(`
- deployctl:s3:Object file   gone
~ deployctl:s3:Object other  changed outside
    ~ acl: "private" → "public"

Resources:
  ~ 1 changed outside
  - 1 gone
    1 unchanged
preview succeeded in 1s
`)
}

func TestALoggedRefreshShowsWhatItFindsAndNothingElse(t *testing.T) {
	gone := step{op: apitype.OpRefresh, typ: object, name: "file", old: map[string]any{"path": "x"}}
	other := step{op: apitype.OpRefresh, typ: object, name: "other", old: map[string]any{"acl": "private"},
		new:      map[string]any{"acl": "public"},
		detailed: map[string]apitype.PropertyDiff{"acl": {Kind: apitype.DiffUpdate}}}
	same := step{op: apitype.OpRefresh, typ: object, name: "same", old: map[string]any{"a": "b"},
		new: map[string]any{"a": "b"}}
	items := []deployments.WatchEvent{gone.begins(), other.begins(), same.begins(), gone.ends(), other.ends(),
		same.ends()}
	want := "- deployctl:s3:Object file gone\n~ deployctl:s3:Object other changed outside\n    ~ acl: \"private\" → " +
		"\"public\"\n"
	if got := shown(Options{Kind: "refresh"}, items...); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	want = "- deployctl:s3:Object file gone\n    - path: \"x\"\n"
	if got := shown(Options{Kind: "refresh", Preview: true, Diff: true}, items...); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestAnUpdateThatPutsRightWhatWasChangedOutsideShowsWhat(t *testing.T) {
	inputs := map[string]any{"path": "/a", "text": "ours", "password": map[string]any{sig.Key: sig.Secret,
		"ciphertext": "x"}}
	one := step{op: apitype.OpUpdate, typ: object, name: "card", old: inputs, new: inputs}.ends()
	m := &one.Event.ResOutputsEvent.Metadata
	m.Old.Outputs = map[string]any{"path": "/a", "text": "theirs",
		"password": map[string]any{sig.Key: sig.Secret, "ciphertext": "y"}}
	want := "~ deployctl:s3:Object card update (text)\n    ~ text: \"theirs\" → \"ours\"\n"
	if got := shown(Options{Preview: true}, one); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	m.Old.Outputs = nil
	want = "~ deployctl:s3:Object card update\n    the provider finds a difference that its values do not show\n"
	for _, full := range []bool{false, true} {
		if got := shown(Options{Preview: true, Diff: full}, one); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
	}
}

// The order of keys in a JSON document and a time of last access are among what a provider does not call a change.
func TestARefreshShowsNoOutputThatItsProviderCallsNoChange(t *testing.T) {
	one := step{op: apitype.OpRefresh, typ: object, name: "file", old: map[string]any{}, new: map[string]any{}}.ends()
	m := &one.Event.ResOutputsEvent.Metadata
	m.Old.Outputs, m.New.Outputs = map[string]any{"size": 1.0}, map[string]any{"size": 2.0}
	if got := shown(Options{Preview: true, Kind: "refresh"}, one); strings.Contains(got, "size") {
		t.Error(got)
	}
}

func TestOutputsAreMarkedAndAPreviewListsOnlyThoseThatChange(t *testing.T) {
	one := step{op: apitype.OpSame, typ: projection.StackType, name: "shop-dev",
		old: map[string]any{"url": "a", "same": 1.0, "gone": true},
		new: map[string]any{"url": "b", "same": 1.0, "more": "x"}}
	changed := "Outputs:\n  - gone: true\n  + more: \"x\"\n"
	if got, want := shown(Options{Preview: true}, one.ends(), ended("succeeded", "", 1, nil)),
		changed+"  ~ url:  \"a\" → \"b\"\npreview succeeded in 1s\n"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	got := shown(Options{}, one.ends(), ended("succeeded", "", 1, map[string]int{"same": 1}))
	if !strings.Contains(got, changed+"    same: 1\n  ~ url:") || strings.Contains(got, "nothing changed") {
		t.Error(got)
	}
}
