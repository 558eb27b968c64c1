package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// resourceOf is a resource of a view.
func resourceOf(typ string, fields map[string]any) map[string]any {
	all := map[string]any{"urn": "urn:pulumi:s::p::" + typ + "::r", "type": typ}
	for name, v := range fields {
		all[name] = v
	}
	return all
}

func secretOf(text string) map[string]any {
	return map[string]any{"4dabf18193072939515e22adb298388d": "1b47061264138c4ac30d75fd1eb44270", "plaintext": text}
}

// Each rule makes equal what it is about, and only in its situation; any other difference stays one.
func TestARuleLevelsWhatItIsAboutAndNothingElse(t *testing.T) {
	t.Parallel()
	const stack = "pulumi:pulumi:Stack"
	type fields = map[string]any
	cases := map[string]struct {
		situation   situation
		typ         string
		ours, stock fields
	}{
		"outputs after an error": {situation{failed: true}, stack,
			fields{"outputs": fields{"a": "old"}}, fields{"outputs": fields{"a": "new"}}},
		"empty lists of dependencies after a refresh": {situation{refreshed: true}, autoType,
			fields{"propertyDependencies": fields{"size": []any{}, "links": []any{"x"}}},
			fields{"propertyDependencies": fields{"links": []any{"x"}}}},
		"secrets after a refresh": {situation{refreshed: true}, autoType,
			fields{"inputs": fields{"secretText": secretOf(`"hush"`)}}, fields{"inputs": fields{"secretText": "hush"}}},
		"what an update that leaves resources out does not know": {situation{partial: true}, autoType,
			fields{"outputs": fields{"arn": "last", "size": 1}}, fields{"outputs": fields{"arn": "UNKNOWN", "size": 1}}},
		"a look at what is left out": {situation{partial: true, looks: true}, stack, nil,
			fields{"outputs": fields{"found": []any{"provider", "", nil}}}},
		"the trigger of an import": {situation{imported: true}, autoType,
			fields{"importID": "r", "replacementTrigger": "one"}, fields{"importID": "r"}},
		"a provider that an import makes": {situation{imports: true}, "pulumi:providers:fake",
			fields{"inputs": fields{"version": "0.1.0", "__pulumi-go-provider-version": "v1.5.0"}},
			fields{"inputs": fields{"version": "0.1.0"}}},
		"a secret trigger": {situation{triggers: true}, autoType,
			fields{"replacementTrigger": secretOf(`"one"`)}, fields{"replacementTrigger": secretOf("null")}},
		"a copy of a former type": {situation{aliases: true}, autoType, fields{"delete": true},
			fields{"delete": true, "urn": "urn:pulumi:s::p::" + renamedType + "::r"}},
		"outputs that become secret": {situation{secretOutputs: true}, autoType,
			fields{"outputs": fields{"arn": secretOf(`"x"`)}}, fields{"outputs": fields{"arn": "x"}}},
	}
	for _, r := range intended {
		c, ok := cases[r.name]
		if !ok {
			t.Errorf("the rule %q has no test", r.name)
			continue
		}
		if r.applies(situation{}) || !r.applies(c.situation) {
			t.Errorf("%s: the rule does not apply in its situation alone", r.name)
		}
		views := func(change func(ours fields)) (ours, stock view) {
			ours.resources = []map[string]any{resourceOf(c.typ, deepCopy(t, c.ours))}
			stock.resources = []map[string]any{resourceOf(c.typ, deepCopy(t, c.stock))}
			change(ours.resources[0])
			return ours, stock
		}
		ours, stock := views(func(fields) {})
		if len(differences(ours, stock, true)) == 0 {
			t.Errorf("%s: the views do not differ", r.name)
		}
		if !r.level(&ours, &stock) || len(differences(ours, stock, true)) > 0 {
			t.Errorf("%s: the views still differ: %v", r.name, differences(ours, stock, true))
		}
		ours, stock = views(func(ours fields) { ours["protect"] = true })
		if r.level(&ours, &stock); len(differences(ours, stock, true)) != 1 {
			t.Errorf("%s: another difference is lost", r.name)
		}
		ours, stock = views(func(fields) {})
		stock.resources[0] = resourceOf(c.typ, deepCopy(t, c.ours))
		if r.level(&ours, &stock) {
			t.Errorf("%s: the rule counts views that do not differ", r.name)
		}
	}
}

// deepCopy returns fields that may be changed.
func deepCopy(t *testing.T, v map[string]any) (copied map[string]any) {
	t.Helper()
	if err := json.Unmarshal([]byte(jsonText(v)), &copied); err != nil {
		t.Fatal(err)
	}
	return copied
}

func TestAnEndingIsFoundWhereItHappened(t *testing.T) {
	t.Parallel()
	const stack = "s"
	register := func(name string, properties, options values) step {
		return step{Verb: "register", Name: name, Fields: values{"type": autoType}, Properties: properties,
			Options: options}
	}
	with := func(steps ...step) update { return update{Kind: "up", Steps: steps} }
	urnOf := func(name string) string { return with(register(name, nil, nil)).urn(stack, name) }
	played := func(r result) *side { return &side{stage: stage{stack: stack}, result: r} }
	excluding := with(register("r1", nil, nil))
	excluding.Excludes = []string{"r1"}
	withDependents := excluding
	withDependents.ExcludeDependents = true
	goingOn := with(register("r1", nil, nil))
	goingOn.ContinueOnError = true
	renaming := with(register("r1", nil, values{"aliases": "[{name: r0}]"}), register("r2", nil, nil))
	renaming.Excludes, renaming.ExcludeDependents = []string{"r1"}, true
	renamed := step{Verb: "register", Name: "r1", Fields: values{"type": providerType, "name": "r9"}}
	now := with(renamed).urn(stack, "r1")
	before := strings.Replace(now, "r9", "r1", 1)
	replaced := func(id resource.ID) *side {
		made := func(id resource.ID) apitype.DeploymentV3 {
			return apitype.DeploymentV3{Resources: []apitype.ResourceV3{{URN: resource.URN(urnOf("r1")), ID: id}}}
		}
		return &side{base: made("a"), result: result{state: made(id),
			steps: []string{"create-replacement " + urnOf("r1"), "replace " + urnOf("r1"),
				"delete-replaced " + urnOf("r1")}}}
	}
	triggered := func(stored string) *side {
		return &side{base: apitype.DeploymentV3{Resources: []apitype.ResourceV3{{URN: resource.URN(urnOf("r1")),
			ReplacementTrigger: secretOf(stored)}}}}
	}
	// viewOf has a resource and a view of one.
	viewOf := func(owner string) *side {
		return &side{result: result{state: apitype.DeploymentV3{Resources: []apitype.ResourceV3{
			{URN: resource.URN(urnOf("r1"))}, {URN: "view", ViewOf: resource.URN(urnOf(owner))}}}}}
	}
	// replacedViewOf has a copy with a view, which may be one of the copy.
	replacedViewOf := func(copied bool) *side {
		return &side{result: result{state: apitype.DeploymentV3{Resources: []apitype.ResourceV3{
			{URN: resource.URN(urnOf("r1")), Delete: true},
			{URN: "view", ViewOf: resource.URN(urnOf("r1")), Delete: copied}}}}}
	}
	type situation struct {
		u           update
		ours, stock *side
	}
	cases := map[string]struct{ happened, not situation }{
		"a stored provider that the stock engine does not find, or finds twice": {
			situation{excluding, played(result{}),
				played(result{failed: true, errors: []string{"unknown provider 'p' for resource r"}})},
			situation{excluding, played(result{failed: true}),
				played(result{failed: true, errors: []string{"unknown provider 'p' for resource r"}})},
		},
		"a resource that is renamed by the update which names it": {
			situation{renaming, played(result{}), played(result{steps: []string{"update " + urnOf("r2")}})},
			situation{renaming, played(result{}), played(result{steps: []string{"same " + urnOf("r2")}})},
		},
		"an import of what is left out": {
			situation{excluding, played(result{}), played(result{steps: []string{"import " + urnOf("r1")}})},
			situation{with(register("r1", nil, nil)), played(result{}),
				played(result{steps: []string{"import " + urnOf("r1")}})},
		},
		"what a provider does not find": {
			situation{with(), played(result{failed: true, errors: []string{"resource 'x' does not exist"}}), played(result{})},
			situation{with(), played(result{failed: true, errors: []string{"resource 'x' does not exist"}}),
				played(result{failed: true, errors: []string{"resource 'x' does not exist"}})},
		},
		"a refusal in an update that goes on after errors": {
			situation{goingOn, played(result{failed: true, steps: []string{"create " + urnOf("r1")}}),
				played(result{failed: true, errors: []string{"it is protected"}})},
			situation{goingOn, played(result{failed: true, steps: []string{"create " + urnOf("r1")}}),
				played(result{failed: true, errors: []string{"no"}, steps: []string{"failed create " + urnOf("r2")}})},
		},
		"a read that fails in an update that goes on after errors": {
			situation{goingOn, played(result{failed: true, steps: []string{"failed read r"}}),
				played(result{failed: true, steps: []string{"failed read r", "delete " + urnOf("r1")}})},
			situation{goingOn, played(result{failed: true, steps: []string{"failed read r"}}),
				played(result{failed: true, steps: []string{"failed read r"}})},
		},
		"views of a copy": {
			situation{with(), replacedViewOf(true), replacedViewOf(false)},
			situation{with(), replacedViewOf(true), replacedViewOf(true)},
		},
		"a copy that is still used": {
			situation{goingOn, played(result{failed: true}),
				played(result{failed: true, steps: []string{"delete-replaced " + urnOf("r1")}})},
			situation{with(register("r1", nil, nil)), played(result{failed: true}),
				played(result{failed: true, steps: []string{"delete-replaced " + urnOf("r1")}})},
		},
		"what a replaced provider manages": {
			situation{with(renamed),
				played(result{steps: []string{"replace " + now, "failed create-replacement " + urnOf("r2")}}),
				played(result{steps: []string{"replace " + now, "delete-replaced " + before}})},
			situation{with(renamed),
				played(result{steps: []string{"replace " + now, "create-replacement " + urnOf("r2")}}),
				played(result{steps: []string{"replace " + now, "delete-replaced " + now}})},
		},
		"a view of what is renamed": {
			situation{with(), viewOf("r1"), viewOf("r0")}, situation{with(), viewOf("r1"), viewOf("r1")},
		},
		"the stock engine breaks its state": {
			situation{excluding, played(result{}),
				played(result{failed: true, errors: []string{"failed to verify snapshot: duplicate resource r1"}})},
			situation{excluding, played(result{}), played(result{failed: true, errors: []string{"another"}})},
		},
		"another provider of what a restricted update leaves alone": {
			situation{excluding, played(result{}),
				played(result{errors: []string{"this is due to a change of providers mixed with --target."}})},
			situation{excluding, played(result{}), played(result{errors: []string{"another"}})},
		},
		"what is left out is needed": {
			situation{excluding, played(result{failed: true, errors: []string{"r2 depends on r1, which --exclude leaves out"}}),
				played(result{})},
			situation{excluding, played(result{failed: true, errors: []string{"r2 could not be created"}}),
				played(result{})},
		},
		"a deletion beside excluded resources and their dependents": {
			situation{withDependents, played(result{steps: []string{"delete " + urnOf("r2")}}), played(result{})},
			situation{withDependents, played(result{steps: []string{"update " + urnOf("r2")}}), played(result{})},
		},
		"a replacement that has the id of what it replaces": {
			situation{with(), replaced("a"), replaced("a")},
			situation{with(), &side{base: replaced("a").base, result: result{state: replaced("a").state}}, replaced("a")},
		},
		"a secret trigger that changes": {
			situation{with(), replaced("a"), triggered("null")}, situation{with(), replaced("a"), triggered(`"one"`)},
		},
		"an error hook repeats a create that did not initialise": {
			situation{with(register("r1", values{"failInit": "true"}, values{"hooks": "{onError: [hook1]}"})),
				played(result{}), played(result{steps: []string{"failed create " + urnOf("r1")}})},
			situation{with(register("r1", nil, values{"hooks": "{onError: [hook1]}"})),
				played(result{}), played(result{steps: []string{"failed create " + urnOf("r1")}})},
		},
	}
	if replacesWithSameID(replaced("b"), replaced("b")) {
		t.Error("a replacement with another id counts as one with the same")
	}
	for _, e := range endings {
		c, ok := cases[e.name]
		if !ok {
			t.Errorf("the ending %q has no test", e.name)
			continue
		}
		if got := ends(c.happened.u, []*side{c.happened.ours, c.happened.stock}); got != e.name {
			t.Errorf("%s: found %q", e.name, got)
		}
		if got := ends(c.not.u, []*side{c.not.ours, c.not.stock}); got != "" {
			t.Errorf("%s: found %q where it did not happen", e.name, got)
		}
	}
}

func TestADependentOfWhatIsRenamedIsLeftAloneByOneEngine(t *testing.T) {
	t.Parallel()
	// has is a side on which a resource that depends on another one had the size 3.
	has := func(size string) *side {
		state := func(size string) apitype.DeploymentV3 {
			return apitype.DeploymentV3{Resources: []apitype.ResourceV3{{URN: "urn:pulumi:s::p::fake:index:Auto::r2",
				ReplaceWith: []resource.URN{"urn:pulumi:s::p::fake:index:Auto::r1"}, Inputs: map[string]any{"size": size}}}}
		}
		return &side{base: state("3"), result: result{state: state(size)}}
	}
	if !storesOneOnly(has("3"), has("4")) || storesOneOnly(has("4"), has("4")) || storesOneOnly(has("3"), has("3")) {
		t.Error("it is not told from one that both update, or leave alone")
	}
}

func TestAReplacementThatAnEarlierUpdateBeganGoesOn(t *testing.T) {
	t.Parallel()
	const provider, managed = "urn:pulumi:s::p::pulumi:providers:fake::r1", "urn:pulumi:s::p::fake:index:Auto::r2"
	base := func(id string) apitype.DeploymentV3 {
		return apitype.DeploymentV3{Resources: []apitype.ResourceV3{
			{URN: provider, Type: providerType, ID: "new"}, {URN: provider, Type: providerType, ID: "old", Delete: true},
			{URN: managed, Type: autoType, ID: "r2", Provider: provider + "::" + resource.ID(id).String()},
		}}
	}
	for _, c := range []struct {
		id          string
		ours, stock result
		want        bool
	}{
		{"old", result{steps: []string{"failed create-replacement " + managed}}, result{}, true},
		{"old", result{errors: []string{managed + " still says that it is imported"}}, result{}, true},
		{"old", result{steps: []string{"update " + managed}}, result{}, false},
		{"new", result{steps: []string{"create-replacement " + managed}}, result{}, false},
		{"old", result{steps: []string{"create-replacement " + managed}},
			result{steps: []string{"create-replacement " + managed}}, false},
	} {
		ours := &side{base: base(c.id), result: c.ours}
		if got := goesOnReplacing(ours, &side{result: c.stock}); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

func TestAnUpdateThatWouldFirstDeleteARenamedTargetIsRefused(t *testing.T) {
	t.Parallel()
	const stack = "s"
	u := update{Kind: "up", Targets: []string{"r1"}, Steps: []step{{Verb: "register", Name: "r1",
		Fields: values{"type": autoType}, Options: values{"aliases": "[{name: r0}]"}}}}
	stock := &side{result: result{steps: []string{"replace " + u.urn(stack, "r1")}}}
	for message, want := range map[string]bool{
		"r2 cannot be replaced: r0 would have to be replaced with it, and is not a target; target it too": true,
		"r0 was reported to the program as needing no change":                                             false,
	} {
		ours := &side{stage: stage{stack: stack}, result: result{failed: true, errors: []string{message}}}
		if got := namesRenamed(u, ours, stock); got != want {
			t.Errorf("%s: %v", message, got)
		}
	}
}

// mostIntended is how many differences there may be by intention.
const mostIntended = 10

func TestFewDifferencesAreIntended(t *testing.T) {
	t.Parallel()
	n := len(intended) + len(endings)
	for _, r := range intended {
		if r.fault {
			n--
		}
	}
	for _, e := range endings {
		if e.fault {
			n--
		}
	}
	if n > mostIntended {
		t.Errorf("%d differences are intended, more than %d", n, mostIntended)
	}
}

func TestWhatIsReadUnderAnUnknownIDAloneIsNotThere(t *testing.T) {
	a, b := map[string]any{"urn": "a", "id": "1"}, map[string]any{"urn": "b", "id": "UNKNOWN"}
	for id, left := range map[string]int{"UNKNOWN": 1, "2": 2} {
		b["id"] = id
		ours, stock := &view{resources: []map[string]any{a}}, &view{resources: []map[string]any{a, b}}
		if differed := levelUnknown(ours, stock); differed != (left == 1) || len(stock.resources) != left {
			t.Errorf("with the id %s, %d resources are left", id, len(stock.resources))
		}
	}
}
