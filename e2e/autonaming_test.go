package e2e

import (
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// nameOf is the name in the cloud of what a resource made.
func (s *scene) nameOf(t *testing.T, resource string) string {
	t.Helper()
	found, err := s.cloud.Objects(t.Context(), "")
	must(t, err)
	for _, o := range found {
		if strings.HasSuffix(o.Owner, "::"+resource) {
			return o.Name
		}
	}
	t.Fatalf("nothing is %s's", resource)
	return ""
}

func TestNamesAreMadeByTheRulesOfTheConfiguration(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	const a, b = "{register: a, type: fake:index:Auto}", "{register: b, type: fake:index:Auto"
	s := newScene(t, steps(a))
	before := s.nameOf(t, "a")
	s.must(t, "config", "set", "--path", "pulumi:autonaming.pattern", "${stack}-${name}-${hex(6)}")
	s.write(t, "scenario.yaml", steps(a, b+"}"))
	s.update(t, "up").expect(t, map[string]int{"create": 1, "same": 2})
	if name := s.nameOf(t, "b"); !regexp.MustCompile(`^dev-b-[0-9a-f]{6}$`).MatchString(name) {
		t.Errorf("it is called %q", name)
	}
	if name := s.nameOf(t, "a"); name != before {
		t.Errorf("what was there is called %q now, and was %q", name, before)
	}
	// A name that is the same for the replacement: the old resource goes first.
	s.must(t, "config", "rm", "pulumi:autonaming")
	s.must(t, "config", "set", "--path", "pulumi:autonaming.providers.fake.mode", "verbatim")
	s.write(t, "scenario.yaml", steps(a, b+", properties: {zone: b}}"))
	s.update(t, "up").expect(t, map[string]int{"replace": 1, "same": 2})
	if name := s.nameOf(t, "b"); name != "b" {
		t.Errorf("it is called %q", name)
	}
	s.does(t, "create b", "delete b", "create b")

	s.must(t, "config", "set", "--path", "pulumi:autonaming.mode", "loud")
	s.fails(t, 1, []string{`pulumi:autonaming: the mode is "loud"`}, "up", "--yes", "--skip-preview")
}
