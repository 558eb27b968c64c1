package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestInMaintenanceWhatRunsEndsWhatWaitsWaitsAndWhatIsNewIsToldUntilWhen(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	h := running(t)
	s := newStage(t, h)
	gate := s.gate(t, "named-2", fakecloud.Before)
	runs := s.start(t, "up", "--yes", "--skip-preview")
	must(t, gate.Wait(waiting(t)))
	waits := s.start(t, "up", "--yes", "--skip-preview")
	ongoing := func() []deployments.UpdateInfo { return told[[]deployments.UpdateInfo](t, s.project, "ps") }
	eventually(t, "an update waits for another", func() bool { return len(ongoing()) == 2 })

	s.must(t, "maintenance", "on", "--reason", "Temporal is upgraded", "--for", "2h")
	const why = "the service is in maintenance until "
	refused := []string{why, "(Temporal is upgraded)", "try again later"}
	for _, command := range []string{"up", "refresh", "destroy"} {
		s.fails(t, 5, refused, command, "--yes", "--skip-preview")
	}
	s.fails(t, 5, refused, "preview")
	for _, command := range []string{"ps", "status"} {
		if r := s.run(t, command); !strings.Contains(r.stderr.String(), "in maintenance until ") {
			t.Errorf("%s does not say that there is maintenance:\n%s", command, r.said())
		}
	}
	must(t, gate.Open(t.Context()))
	runs.mustEnd(t, 0)
	eventually(t, "the update that has waited says for what", func() bool {
		return slices.ContainsFunc(ongoing(), func(u deployments.UpdateInfo) bool { return strings.Contains(u.Error, why) })
	})
	s.must(t, "stack", "tag", "set", "owner", "ann") // what begins nothing is done

	s.must(t, "maintenance", "on", "--read-only", "--reason", "the bucket moves", "--for", "2h")
	s.fails(t, 5, []string{"the service is read-only until ", "nothing is changed"}, "stack", "tag", "set", "owner", "bob")
	if tags := s.must(t, "stack", "tag", "ls"); !strings.Contains(tags, "ann") {
		t.Errorf("the tags are\n%s", tags)
	}
	s.must(t, "maintenance", "off")
	waits.mustEnd(t, 0)
	s.asIfNothingHappened(t)
}
