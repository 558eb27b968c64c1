package statestore_test

import (
	"log/slog"
	"slices"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

func TestADayThatIsNotKeptIsRemovedFromTheAuditLogAndAStacksRemovalLeavesIt(t *testing.T) {
	s := opened(t, &bucket.Memory{}, statestore.Options{})
	noon := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	must(t, s.CreateStack(t.Context(), dev, nil))
	log := s.Access.OpenAudit(slog.New(slog.DiscardHandler))
	for _, at := range []time.Time{noon, noon.Add(24 * time.Hour), noon.Add(48 * time.Hour)} {
		e := deployments.AuditEntry{Time: at, Organization: dev.Organization, Stack: dev.Project + "/" + dev.Stack,
			Token: at.Format(time.DateOnly), Method: "m"}
		must(t, log.Record(t.Context(), e, true))
	}
	must(t, s.RemoveStack(t.Context(), dev, true))
	must(t, s.Access.CollectAudit(t.Context(), noon.Add(24*time.Hour)))
	var got []string
	must(t, s.Access.Audit(t.Context(), deployments.AuditQuery{Organization: dev.Organization},
		func(e deployments.AuditEntry) error {
			got = append(got, e.Token)
			return nil
		}))
	if want := []string{"2026-01-03", "2026-01-04"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
