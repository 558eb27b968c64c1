package activities

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// valuesByDigest decodes the bags of a test.
type valuesByDigest map[string]resource.PropertyMap

func (v valuesByDigest) Decode(_ context.Context, b engine.Bag) (resource.PropertyMap, error) {
	return v[b.Digest], nil
}

// testValue parses a value from JSON. A text that begins with "hush" is a secret.
func testValue(v any) resource.PropertyValue {
	switch v := v.(type) {
	case string:
		if strings.HasPrefix(v, "hush") {
			return resource.MakeSecret(resource.NewProperty(v))
		}
	case []any:
		list := make([]resource.PropertyValue, len(v))
		for i := range v {
			list[i] = testValue(v[i])
		}
		return resource.NewProperty(list)
	case map[string]any:
		object := resource.PropertyMap{}
		for key, e := range v {
			object[resource.PropertyKey(key)] = testValue(e)
		}
		return resource.NewProperty(object)
	}
	return resource.NewPropertyValue(v)
}

func testValues(t *testing.T, text string) resource.PropertyMap {
	t.Helper()
	var value map[string]any
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatal(err)
	}
	return testValue(value).ObjectValue()
}

// displayed returns what --diff shows of one step, and the projection of its events. It fails the test if the event has
// any part of a secret.
func displayed(t *testing.T, e engine.Emit, values valuesByDigest) (string, *projection.State) {
	t.Helper()
	e.Kind = engine.EmitOutputs
	event, err := eventEncoder{values: values, preview: true}.event(t.Context(), e)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ := json.Marshal(event); strings.Contains(string(data), "hush") {
		t.Errorf("a secret leaves the worker: %s", data)
	}
	state := projection.NewState()
	state.Apply(deployments.WatchEvent{Event: &event})
	return strings.Join(display.Details(state, display.Options{Kind: string(e.Step)}), "\n"), state
}

func TestASecretThatDiffersIsNamedBesideWhatElseDiffers(t *testing.T) {
	for _, c := range []struct{ name, old, now, want string }{
		{"alone", `{"p":{"user":"bob","pw":"hush1"}}`, `{"p":{"user":"bob","pw":"hush2"}}`,
			`~ p.pw: "[secret]" → "[another secret]"`},
		{"beside a text", `{"p":{"user":"bob","pw":"hush1"}}`, `{"p":{"user":"eve","pw":"hush2"}}`,
			"~ p.pw: \"[secret]\" → \"[another secret]\"\n    ~ p.user: \"bob\" → \"eve\""},
		{"and only if it does", `{"p":{"user":"bob","pw":"hush1"}}`, `{"p":{"user":"eve","pw":"hush1"}}`,
			`~ p.user: "bob" → "eve"`},
		{"as the property itself", `{"p":"hush1"}`, `{"p":"hush2"}`, `~ p: "[secret]" → "[another secret]"`},
		{"under a key that is no name", `{"p":{"a.b\n":"hush1"}}`, `{"p":{"a.b\n":"hush2"}}`,
			`~ p["a.b\n"]: "[secret]" → "[another secret]"`},
		{"when it is the whole object", `{"p":{"a":"hush1","x":1}}`, `{"p":{"a":"hush2","x":2}}`,
			"~ p.a: \"[secret]\" → \"[another secret]\"\n    ~ p.x: 1 → 2"},
		{"not behind an insertion into a list", `{"p":[{"n":"a","v":"hush1"},{"n":"b","v":"hush2"}]}`,
			`{"p":[{"n":"z","v":"hush3"},{"n":"a","v":"hush1"},{"n":"b","v":"hush2"}]}`,
			`+ p[0]: {"n":"z","v":"[another secret]"}`},
		{"in an element that an insertion moves", `{"p":[{"n":"a","v":"hush1"},{"n":"b","v":"hush2"}]}`,
			`{"p":[{"n":"z"},{"n":"a","v":"hush1"},{"n":"b","v":"hush3"}]}`,
			"+ p[0]: {\"n\":\"z\"}\n    ~ p[2].v: \"[secret]\" → \"[another secret]\""},
		{"in a list of as many as before", `{"p":["hush1","hush2"]}`, `{"p":["hush2","hush3"]}`,
			`~ p[1]: "[secret]" → "[another secret]"`},
		{"when two have changed places", `{"p":["hush1","hush2"]}`, `{"p":["hush2","hush1"]}`, `[another secret]`},
		{"when it comes", `{"p":{"x":1}}`, `{"p":{"x":1,"pw":"hush1"}}`, `+ p.pw: "[secret]"`},
		{"when it is no longer secret", `{"p":{"pw":"hush1"}}`, `{"p":{"pw":"open"}}`, `~ p.pw: "[secret]" → "open"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			values := valuesByDigest{"old": testValues(t, c.old), "now": testValues(t, c.now)}
			old, now := &engine.State{Inputs: engine.Bag{Digest: "old"}},
				&engine.State{Inputs: engine.Bag{Digest: "now"}}
			for _, paths := range [][]engine.PropertyDiff{nil, {{Path: "p", Kind: "update"}},
				{{Path: "p", Kind: "update", InputDiff: true}}} {
				diff := &engine.Diff{Change: engine.ChangeUpdate, ChangedKeys: []string{"p"}, Detailed: paths}
				for _, step := range []engine.StepKind{engine.StepUpdate, engine.StepRefresh} {
					got, _ := displayed(t, engine.Emit{Step: step, URN: "urn:pulumi:dev::p::a:b:C::c", Type: "a:b:C",
						Old: old, New: now, Diff: diff}, values)
					if _, got, _ = strings.Cut(got, "\n    "); got != c.want &&
						!(c.want[0] == '[' && strings.Contains(got, c.want)) {
						t.Errorf("%s %v: got\n%s\nwant\n%s", step, paths, got, c.want)
					}
				}
			}
		})
	}
}

func TestASecretThatWasChangedOutsideIsNamed(t *testing.T) {
	values := valuesByDigest{
		"ours":   testValues(t, `{"p":{"user":"bob","pw":"hush1"}}`),
		"theirs": testValues(t, `{"p":{"user":"eve","pw":"hush2"},"token":"hush3"}`),
		"before": testValues(t, `{"p":{"user":"bob","pw":"hush1"},"token":"hush4"}`),
	}
	ours, theirs, before := engine.Bag{Digest: "ours"}, engine.Bag{Digest: "theirs"}, engine.Bag{Digest: "before"}
	emit := engine.Emit{
		Step: engine.StepUpdate, URN: "urn:pulumi:dev::p::a:b:C::c", Type: "a:b:C",
		Old: &engine.State{Inputs: ours, Outputs: theirs}, New: &engine.State{Inputs: ours, Outputs: theirs},
		Diff: &engine.Diff{Change: engine.ChangeUpdate, Detailed: []engine.PropertyDiff{{Path: "p", Kind: "update"}}},
	}
	got, _ := displayed(t, emit, values)
	if want := "~ p.pw: \"[another secret]\" → \"[secret]\"\n    ~ p.user: \"eve\" → \"bob\""; !strings.HasSuffix(got,
		want) {
		t.Errorf("an update that puts right shows\n%s\nwant\n%s", got, want)
	}

	emit.Step, emit.Diff = engine.StepRefresh, &engine.Diff{Change: engine.ChangeNone}
	emit.Old = &engine.State{Inputs: ours, Outputs: before}
	got, state := displayed(t, emit, values)
	if strings.Contains(got, "token") || len(state.Drift()) > 0 {
		t.Errorf("what a provider calls no change has drifted, %v:\n%s", state.Drift(), got)
	}
}

func TestASecretOutputOfTheStackThatDiffersIsAChange(t *testing.T) {
	values := valuesByDigest{
		"old": testValues(t, `{"tok":"hush1","obj":{"a":"hush1y","b":1},"same":"hush9"}`),
		"now": testValues(t, `{"tok":"hush2","obj":{"a":"hush2y","b":1},"same":"hush9"}`),
	}
	old := &engine.State{Outputs: engine.Bag{Digest: "old"}}
	emit := engine.Emit{
		Step: engine.StepSame, URN: "urn:pulumi:dev::p::pulumi:pulumi:Stack::p-dev", Type: "pulumi:pulumi:Stack",
		Old: old, New: &engine.State{Outputs: engine.Bag{Digest: "now"}},
	}
	got, state := displayed(t, emit, values)
	want := "Outputs:\n  ~ obj.a: \"[secret]\" → \"[another secret]\"\n  ~ tok:  \"[secret]\" → \"[another secret]\""
	if got != want || !state.Changed() {
		t.Errorf("changed is %v, got\n%s\nwant\n%s", state.Changed(), got, want)
	}
	emit.New = old
	if got, state = displayed(t, emit, values); got != "" || state.Changed() {
		t.Errorf("equal secrets differ:\n%s", got)
	}
}
