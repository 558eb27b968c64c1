package e2e

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestAProjectWithoutARuntimeImportsAndDestroysAndDeclaresNothing(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}",
		"{register: b, type: fake:index:Named, properties: {name: b}, options: {retainOnDelete: true}}"))
	// What stays in the cloud is imported into a stack whose project has no program.
	s.update(t, "destroy")
	s.seen = s.effects(t)
	s.write(t, "Pulumi.yaml", "name: "+projectName(t)+"\n")
	said := s.must(t, "import", "fake:index:Named", "b", "b", "--yes", "--protect=false")
	if !strings.Contains(said, "This is PCL, because the project has no runtime") {
		t.Errorf("the import says\n%s", said)
	}
	s.update(t, "refresh")
	s.does(t)
	s.update(t, "up").expect(t, map[string]int{"delete": 2}) // with the stack's own resource
	s.does(t, "delete b")
	if left := s.exported(t).Resources; len(left) > 0 {
		t.Errorf("there are %+v", left)
	}
}
