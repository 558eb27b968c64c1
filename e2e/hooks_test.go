package e2e

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestAHookThatRanIsShown has hooks around the steps of a resource, of which only one runs in a preview.
func TestAHookThatRanIsShown(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	s := &scene{stage: newStage(t, sharedHome(t))}
	s.write(t, "scenario.yaml", steps("{hook: early, onDryRun: true}", "{hook: late}",
		"{register: a, type: fake:index:Named, properties: {name: a}, options: "+
			"{hooks: {beforeCreate: [early], afterCreate: [late]}}}"))
	early, late := `BeforeCreate hook "early" ran (`, `AfterCreate hook "late" ran (`
	if said := s.run(t, "preview").said(); !strings.Contains(said, early) || strings.Contains(said, late) {
		t.Errorf("the preview says\n%s", said)
	}
	said := s.run(t, "up", "--yes", "--skip-preview").said()
	if before, _, ran := strings.Cut(said, late); !ran || !strings.Contains(before, early) {
		t.Errorf("the update says\n%s", said)
	}
	if quiet := s.run(t, "up", "--yes", "--quiet").said(); strings.Contains(quiet, "hook") {
		t.Errorf("a quiet update says\n%s", quiet)
	}
}
