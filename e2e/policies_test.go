package e2e

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// rules is a policy pack for the Named of a program: zone c instead of the default, no bad names, no odd ones, and few
// of them.
const rules = `
name: rules
version: 1.2.0
dies: a
dieonce: "DIE"
policies:
  - {name: zoned, type: "fake:index:Named", property: zone, value: a, set: c, level: remediate}
  - {name: named, type: "fake:index:Named", property: name, value: bad, level: mandatory, severity: high,
     message: a bad name is not allowed}
  - {name: advised, type: "fake:index:Named", property: name, value: odd, message: an odd name is odd}
  - {name: few, stack: true, type: "fake:index:Named", most: 2, level: mandatory}
`

// withRules makes a stack whose program has run without a policy pack, and a pack that ends its process once.
func withRules(t *testing.T) (s *scene, died string) {
	t.Helper()
	s = newScene(t, "steps: []\n")
	died = s.path("died")
	s.write(t, "rules/PulumiPolicy.yaml", "runtime: scenario\n")
	s.write(t, "rules/rules.yaml", strings.Replace(rules, "DIE", died, 1))
	return s, died
}

// policyEvents are the events about policies, as "KIND POLICY NAME", in their order.
func (r report) policyEvents() (events []string) {
	name := func(urn string) string { return urn[strings.LastIndex(urn, "::")+2:] }
	for _, e := range r.events {
		switch {
		case e.PolicyEvent != nil:
			v := e.PolicyEvent
			events = append(events, v.EnforcementLevel+" "+v.PolicyName+" "+name(v.ResourceURN))
		case e.PolicyRemediationEvent != nil:
			v := e.PolicyRemediationEvent
			events = append(events, "remediated "+v.PolicyName+" "+name(v.ResourceURN))
		}
	}
	return events
}

func TestAPolicyPackRemediatesAndSurvivesTheLossOfItsProcessAndOfTheProgram(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s, died := withRules(t)
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}",
		"{register: b, type: fake:index:Named, properties: {name: odd, links: ['${a.arn}']}}",
		"{await: []}", "{kill: true, once: '"+s.path("killed")+"'}"))
	got := s.update(t, "up", "--policy-pack", "rules")
	got.expect(t, map[string]int{"create": 2, "same": 1})
	want := []string{"remediated zoned a", "remediated zoned b", "advisory advised b"}
	if events := got.policyEvents(); !slices.Equal(events, want) {
		t.Errorf("the policy events are %q, not %q", events, want)
	}
	if got.Policies["advisory"] != 1 || got.Policies["mandatory"] != 0 || got.Policies["remediated"] != 2 {
		t.Errorf("the summary counts %v", got.Policies)
	}
	if _, err := os.Stat(died); err != nil {
		t.Error("the policy pack did not end its process")
	}
	s.does(t, "create a", "create b")
	for _, r := range s.exported(t).Resources[2:] {
		if r.Inputs["zone"] != "c" {
			t.Errorf("%s has the inputs %v", r.URN, r.Inputs)
		}
	}
	loaded, ran := 0, false
	passed := map[string][]string{}
	for _, e := range got.events {
		switch {
		case e.PolicyLoadEvent != nil:
			loaded++
		case e.PolicyAnalyzeStackSummaryEvent != nil:
			passed["the stack"] = e.PolicyAnalyzeStackSummaryEvent.Passed
		case e.PolicyAnalyzeSummaryEvent != nil:
			summary := e.PolicyAnalyzeSummaryEvent
			passed[summary.ResourceURN[strings.LastIndex(summary.ResourceURN, "::")+2:]] = summary.Passed
		case e.SummaryEvent != nil:
			ran = e.SummaryEvent.PolicyPacks["rules"] == "1.2.0"
		}
	}
	if loaded == 0 || !ran || !slices.Equal(passed["the stack"], []string{"few"}) ||
		!slices.Equal(passed["b"], []string{"named", "zoned"}) {
		t.Errorf("loaded %d times, a part of the summary: %v; passed: %v", loaded, ran, passed)
	}
	s.update(t, "up", "--policy-pack", "rules").expect(t, map[string]int{"same": 3})
}

// TestTheServiceIsKilledWhileAPolicyPackAnalyses kills the service, with the worker and the pack, while a resource is
// analysed, and while the stack is.
func TestTheServiceIsKilledWhileAPolicyPackAnalyses(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newStage(t, newHome(t))
	s.write(t, "rules/PulumiPolicy.yaml", "runtime: scenario\n")
	s.write(t, "rules/rules.yaml", rules+"gates: "+s.dir+"\nholds: [b, stack]\n")
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}",
		"{register: b, type: fake:index:Named, properties: {name: odd, links: ['${a.arn}']}}"))
	s.start(t, "up", "--yes", "--skip-preview", "--policy-pack", "rules")
	for _, held := range []string{"b", "stack"} {
		eventually(t, "the policy pack analyses "+held, func() bool {
			_, err := os.Stat(s.path(held + ".reached"))
			return err == nil
		})
		s.killService(t)
		s.write(t, held+".open", "")
	}
	s.attached(t).mustEnd(t, 0)
	s.noDuplicates(t)
	for _, r := range s.exported(t).Resources[2:] {
		if r.Inputs["zone"] != "c" {
			t.Errorf("%s has the inputs %v", r.URN, r.Inputs)
		}
	}
}

func TestACancelByForceEndsAnUpdateWhosePolicyPackHangs(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	for _, held := range []string{"a", "stack"} {
		t.Run(held, func(t *testing.T) {
			t.Parallel()
			s, died := withRules(t)
			s.write(t, "died", "")
			s.write(t, "rules/rules.yaml", strings.Replace(rules, "DIE", died, 1)+"gates: "+s.dir+"\nholds: ["+held+"]\n")
			s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
			up := s.start(t, "up", "--yes", "--skip-preview", "--policy-pack", "rules")
			eventually(t, "the policy pack analyses "+held, func() bool {
				_, err := os.Stat(s.path(held + ".reached"))
				return err == nil
			})
			s.must(t, "cancel", "--force", "--yes")
			up.mustEnd(t, 3)
		})
	}
}

func TestAMandatoryPolicyKeepsAResourceFromBeingCreated(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s, _ := withRules(t)
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: odd, zone: b}}",
		"{register: b, type: fake:index:Named, properties: {name: bad, zone: b}}",
		"{register: c, type: fake:index:Named, properties: {name: c, zone: b}}"))
	all := []string{"rules 1.2.0", "advisory advised (fake:index:Named a)", "an odd name is odd",
		"mandatory (high) named (fake:index:Named b)", "a bad name is not allowed"}
	s.fails(t, 1, append(all, "mandatory few", "dev has 3, and at most 2 are allowed", "3 to create"), "preview",
		"--policy-pack", "rules")
	s.fails(t, 1, all[3:], "up", "--yes", "--skip-preview", "--parallel", "1", "--policy-pack", "rules")
	if done := s.done(t); slices.Contains(done, "create b") {
		t.Errorf("the cloud's effects are %q", done)
	}
	s.write(t, "lenient.json", `{"all": "advisory", "few": {"enforcementLevel": "disabled"}, "named": {"value": "worse"}}`)
	got := s.update(t, "up", "--policy-pack", "rules", "--policy-pack-config", "lenient.json")
	if events := got.policyEvents(); !slices.Contains(events, "advisory advised a") ||
		slices.ContainsFunc(events, func(e string) bool { return strings.HasPrefix(e, string(apitype.Mandatory)) }) {
		t.Errorf("with another configuration the policy events are %q", events)
	}
	// A violation of the stack is found when everything is done.
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: odd, zone: b, size: 2}}",
		"{register: d, type: fake:index:Named, properties: {name: d, zone: b}}",
		"{register: c, type: fake:index:Named, properties: {name: c, zone: b}}"))
	s.seen = s.effects(t)
	s.fails(t, 1, []string{"mandatory few"}, "up", "--yes", "--skip-preview", "--policy-pack", "rules")
	if done := s.done(t); !slices.Contains(done, "delete b") || !slices.Contains(done, "create d") {
		t.Errorf("the cloud's effects are %q", done)
	}
}

func TestAPolicyPackThatCannotBeUsedEndsTheUpdateBeforeItBegins(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s, _ := withRules(t)
	s.write(t, "scenario.yaml", steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	s.write(t, "wrong.json", `{"named": {"value": 1}}`)
	s.write(t, "unknown.json", `{"namd": {"value": "a"}}`)
	s.write(t, "broken/PulumiPolicy.yaml", "runtime: scenario\n")
	for _, c := range []struct {
		code int
		text string
		args []string
	}{
		{2, "no PulumiPolicy.yaml", []string{"--policy-pack", "."}},
		{2, "--policy-pack-config 1 times", []string{"--policy-pack-config", "wrong.json"}},
		{1, "policy pack rules: the configuration of named: value: expected string, but got number",
			[]string{"--policy-pack", "rules", "--policy-pack-config", "wrong.json"}},
		{1, `the pack has no policy "namd"`,
			[]string{"--policy-pack", "rules", "--policy-pack-config", "unknown.json"}},
		{1, "rules.yaml: no such file", []string{"--policy-pack", "broken"}},
	} {
		s.fails(t, c.code, []string{c.text}, append([]string{"up", "--yes", "--skip-preview"}, c.args...)...)
	}
	s.fails(t, 2, []string{"deployctl destroy has no flag --policy-pack"}, "destroy", "--policy-pack", "rules")
	s.does(t)
}
