package e2e

import (
	"os"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// strandProvider gives the stored provider an address where nobody is: only what the program computes leads to the
// cloud.
func (s *scene) strandProvider(t *testing.T) {
	t.Helper()
	file := s.path("state.json")
	s.must(t, "stack", "export", "--file", file)
	text, err := os.ReadFile(file)
	must(t, err)
	s.write(t, "state.json", strings.ReplaceAll(string(text), s.cloud.URL(), "http://127.0.0.1:1"))
	s.must(t, "stack", "import", "--file", file)
	must(t, os.Remove(file))
}

func TestARefreshAndADestroyRunTheProgramForTheConfigurationOfProviders(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	provider := "{register: cloud, type: pulumi:providers:fake, properties: {endpoint: '${env.FAKECLOUD_ENDPOINT}'}}"
	s := newScene(t, steps(provider,
		"{register: a, type: fake:index:Named, properties: {name: a}, options: {provider: cloud}}",
		"{register: gone, type: fake:index:Named, properties: {name: b}, options: {provider: cloud}}"))
	s.meddle(t)
	s.seen = s.effects(t)

	s.strandProvider(t)
	// The program declares a new resource, and one of what it declared before; neither refresh nor destroy creates the
	// new one. Its first start in each is killed.
	killed := s.path("killed")
	s.write(t, "scenario.yaml", steps(provider,
		"{register: a, type: fake:index:Named, properties: {name: a, size: 9}, options: {provider: cloud}}",
		"{await: []}", "{kill: true, once: '"+killed+"'}",
		"{register: new, type: fake:index:Named, properties: {name: new, links: ['${a.arn}']}, options: "+
			"{provider: cloud}}"))
	s.update(t, "refresh", "--run-program").expect(t, map[string]int{"update": 2, "delete": 1, "same": 1})
	if size := s.exported(t).Resources[2].Inputs["size"]; size != 5.0 {
		t.Errorf("the size that was read is %v", size)
	}
	must(t, os.Remove(killed))
	s.strandProvider(t)
	s.update(t, "destroy", "--run-program")
	must(t, os.Remove(killed))
	s.does(t, "delete a")
	if left := s.exported(t).Resources; len(left) > 0 {
		t.Errorf("the destroy leaves %+v", left)
	}
}

func TestPreviewOnlyChangesNothingAndRemoveRemovesTheStack(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := newScene(t, steps("{register: a, type: fake:index:Named, properties: {name: a}}"))
	for _, kind := range []string{"refresh", "destroy"} {
		s.must(t, kind, "--preview-only")
		s.fails(t, 2, []string{"--preview-only and --yes exclude each other"}, kind, "--preview-only", "--yes")
	}
	s.does(t)
	s.stateKnows(t)
	for _, r := range s.exported(t).Resources {
		if r.Created == nil && !strings.HasPrefix(string(r.Type), "pulumi:providers:") {
			t.Errorf("%s has no time of its creation", r.URN)
		}
	}
	s.must(t, "destroy", "--remove", "--yes")
	s.does(t, "delete a")
	if said := s.must(t, "stack", "ls"); strings.Contains(said, "dev") {
		t.Errorf("the stack is still there:\n%s", said)
	}
	if _, err := os.Stat(s.path("Pulumi.dev.yaml")); !os.IsNotExist(err) {
		t.Errorf("its configuration file is still there: %v", err)
	}
}
