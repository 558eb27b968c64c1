package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestAnUpFollowsItsPlanOrChangesNothing saves plans, and spoils in turn everything that they are bound to.
func TestAnUpFollowsItsPlanOrChangesNothing(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	const b = "{register: b, type: fake:index:Named, properties: {name: b, size: '${env.B_SIZE}', secretText: !secret " +
		"'${config.password}'}}"
	program := func(size string) string {
		return steps("{register: a, type: fake:index:Named, properties: {name: a, size: "+size+"}}", b)
	}
	s := &scene{stage: newStage(t, sharedHome(t), "B_SIZE=1")}
	s.must(t, "config", "set", "password", "sesame open", "--secret")
	s.write(t, "scenario.yaml", program("1"))
	s.update(t, "up")
	s.seen = s.effects(t)

	s.write(t, "scenario.yaml", program("2"))
	s.update(t, "preview", "--save-plan", "plan.json")
	if plan := s.read(t, "plan.json"); strings.Contains(plan, "sesame") || !strings.Contains(plan, `"update"`) {
		t.Errorf("the plan is\n%s", plan)
	}
	spoilt := func(text string) {
		t.Helper()
		s.fails(t, 4, []string{"nothing was changed", text}, "up", "--plan", "plan.json", "--yes")
	}
	s.write(t, "scenario.yaml", program("3"))
	spoilt("scenario.yaml has changed")
	s.write(t, "scenario.yaml", program("2"))
	s.write(t, "more.txt", "")
	spoilt("a new file, more.txt")
	must(t, os.Remove(s.path("more.txt")))
	s.env = append(s.env, "B_SIZE=7")
	spoilt("would now update urn:pulumi:dev::" + projectName(t) + "::fake:index:Named::b, which the plan leaves as it is")
	s.env = append(s.env, "B_SIZE=1")
	s.fails(t, 4, []string{"made with the options"}, "up", "--plan", "plan.json", "--yes", "--replace", urn(t, "a"))
	s.does(t)

	s.update(t, "up", "--plan", "plan.json").expect(t, map[string]int{"update": 1, "same": 2})
	s.does(t, "update a")
	spoilt("the stack is at version 2, and was at 1")
	s.must(t, "config", "set", "more", "1")
	s.update(t, "preview", "--save-plan", "plan.json")
	s.must(t, "config", "set", "more", "2")
	spoilt("Pulumi.dev.yaml has changed")
}
