package statestore_test

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// TestWhatAFormerBuildHasWrittenIsRead opens a bucket as the build had it whose store was one package: no key, seal or
// MAC has changed since.
func TestWhatAFormerBuildHasWrittenIsRead(t *testing.T) {
	text, err := os.ReadFile("testdata/former.json")
	must(t, err)
	var former struct {
		Tokens  map[string]string
		Objects map[string][]byte
	}
	must(t, json.Unmarshal(text, &former))
	objects := &bucket.Memory{}
	for key, data := range former.Objects {
		put(t, objects, key, data)
	}
	then := time.Date(2026, 11, 1, 13, 0, 0, 0, time.UTC)
	s := opened(t, objects, statestore.Options{Now: func() time.Time { return then }})
	web := deployments.StackName{Organization: "acme", Project: "web", Stack: "dev"}
	for name, role := range map[string]deployments.Role{"root": deployments.RoleAdmin, "ann": deployments.RoleDeployer,
		"given": deployments.RoleDeployer} {
		caller, err := s.Access.Authenticate(t.Context(), former.Tokens[name])
		want(t, err, caller.May(role, web), "the token %s may %+v", name, caller.Authority)
	}
	teams, err := s.Access.TeamsOf(t.Context(), "acme")
	want(t, err, len(teams) == 1 && len(teams[0].Members) == 1 && teams[0].Damaged == "", "the teams are %+v", teams)
	trust, err := s.Access.AnyTrust(t.Context(), "acme", "ci")
	want(t, err, trust.Damaged == "" && trust.Issuer == "https://issuer.example", "the trust is %+v", trust)
	_, err = s.Access.GiveToken(t.Context(), trust, deployments.Identity{Issuer: trust.Issuer, ID: "one",
		Expires: then}, time.Hour)
	want(t, nil, deployments.CodeOf(err) == deployments.CodeUnauthorized, "an identity is exchanged again: %v", err)
	var entries []deployments.AuditEntry
	must(t, s.Access.Audit(t.Context(), deployments.AuditQuery{Organization: "acme"},
		func(e deployments.AuditEntry) error {
			entries = append(entries, e)
			return nil
		}))
	want(t, nil, len(entries) == 1 && entries[0].Token == "ann", "the audit log has %+v", entries)

	queue, err := s.Organizations.TaskQueue(t.Context(), "acme")
	want(t, err, queue == s.Organizations.OrganizationTaskQueue("acme"), "its queue is %s", queue)
	was := deployments.StackName{Organization: "organization", Project: "web", Stack: "dev"}
	h, err := s.Head(t.Context(), was)
	want(t, err, h.Tags["a"] == "b", "the head is %+v", h)
	known, err := s.Knows(t.Context(), deployments.StackName{Organization: "organization", Project: "web", Stack: "gone"})
	want(t, err, known, "a removed stack is not known")
	hooks, err := s.Jobs.Webhooks(t.Context(), deployments.ScopeOf(was))
	want(t, err, len(hooks) == 1 && hooks[0].URL == "https://chat.example", "the webhooks are %+v", hooks)
	nightly, err := s.Jobs.Schedule(t.Context(), deployments.ScheduleName{StackName: was, Name: "nightly"})
	want(t, err, nightly.Due.Equal(then.Add(-time.Hour)), "the schedule is %+v", nightly)
	numbers, err := s.Jobs.DeploymentNumbers(t.Context(), was)
	want(t, err, len(numbers) == 1, "the deployments are %v", numbers)
}
