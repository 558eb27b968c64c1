package e2e

import (
	"testing"

	enums "go.temporal.io/api/enums/v1"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestAnUnchangedChainIsPlannedBesideTheProgram updates and previews a chain of which nothing changes, and then one of
// which the last link changes: the Run asks for no plan of what is unchanged, and records all of it.
func TestAnUnchangedChainIsPlannedBesideTheProgram(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	chain := func(size string) string {
		return steps(
			"{register: a, type: fake:index:Named, properties: {name: a, size: 1}}",
			"repeat: 10\n    from: 1\n    steps: [{register: 'b-{{i}}', type: fake:index:Named, "+
				"properties: {name: 'b-{{i}}', links: ['${a.arn}']}}]",
			// A change ends the planning beside the program, so it comes when that is done.
			"{await: [b-1, b-2, b-3, b-4, b-5, b-6, b-7, b-8, b-9, b-10]}",
			"{register: z, type: fake:index:Named, properties: {name: z, size: "+size+", links: ['${b-10.arn}']}}")
	}
	s := newScene(t, chain("1"))
	s.seen = s.effects(t)

	unchanged := s.update(t, "up")
	unchanged.expect(t, map[string]int{"same": 13})
	s.asksForPlans(t, unchanged.Update, 0)
	s.does(t)
	s.stateAgrees(t)

	s.write(t, "scenario.yaml", chain("2"))
	preview := s.update(t, "preview")
	preview.expect(t, map[string]int{"same": 12, "update": 1})
	s.asksForPlans(t, preview.Update, 0)
	changed := s.update(t, "up")
	changed.expect(t, map[string]int{"same": 12, "update": 1})
	s.asksForPlans(t, changed.Update, 1) // for z
	s.does(t, "update z")
	s.stateAgrees(t)
}

// asksForPlans expects that the Run of an update has asked for no more plans than that. A program that was lost and
// started again, as on a machine that is too busy to start it in time, is not answered ahead: then nothing is expected.
func (s *scene) asksForPlans(t *testing.T, update string, limit int) {
	t.Helper()
	if epochs := s.activities(t, "update/"+update)["RunProgram"]; epochs > 1 {
		t.Logf("the program of %s was started %d times", update, epochs)
		return
	}
	if n := s.activities(t, "run/"+update)["PlanResources"]; n > limit {
		t.Errorf("the run of %s has asked for %d plans, expected at most %d", update, n, limit)
	}
}

// activities counts the activities in the history of a workflow, by type.
func (s *scene) activities(t *testing.T, workflow string) map[string]int {
	t.Helper()
	counts := map[string]int{}
	history := s.dial(t).GetWorkflowHistory(t.Context(), workflow, "", false, enums.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		must(t, err)
		if a := event.GetActivityTaskScheduledEventAttributes(); a != nil {
			counts[a.GetActivityType().GetName()]++
		}
	}
	return counts
}
