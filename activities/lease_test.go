package activities

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestALeaseWhoseClientWroteNoStateEndsAsFailedAndFreesItsStack(t *testing.T) {
	for name, journal := range map[string]string{
		"a resource that is null": `[{"sequenceID":1,"kind":5,"newSnapshot":{"resources":[null]}},` +
			`{"sequenceID":2,"kind":1,"operationID":1,"deleteOld":0}]`,
		"names that are no URNs": `[{"sequenceID":1,"kind":1,"operationID":1,"state":{"urn":"u","type":"t","aliases":["v"]}},` +
			`{"sequenceID":2,"kind":1,"operationID":2,"state":{"urn":"w","type":"t","parent":"v"}}]`,
	} {
		t.Run(name, func(t *testing.T) {
			h := newHouse(t)
			u := deployments.UpdateName{StackName: testStack, Version: "1"}
			request := deployments.UpdateRequest{Stack: testStack, RequestID: "r", Kind: engine.KindUp,
				Lease: &deployments.Lease{}, Submitted: h.submitted(testStack),
				Authority: &deployments.Authority{Grants: [][]deployments.Grant{{{
					Role: deployments.RoleDeployer, Organization: testStack.Organization}}}}}
			if _, err := call[struct{}](h, h.acts.BeginLease, deployments.UpdateInput{Update: u,
				Request: request}); err != nil {
				t.Fatal(err)
			}
			head, err := h.store.Head(t.Context(), testStack)
			if err != nil {
				t.Fatal(err)
			}
			if err := h.store.WriteJournal(t.Context(), deployments.Leased{Update: u, Fence: head.Fence},
				[]byte(journal)); err != nil {
				t.Fatal(err)
			}
			end, err := call[deployments.LeaseEnded](h, h.acts.EndLease, deployments.LeaseEnd{Update: u,
				Status: engine.StatusSucceeded})
			if err != nil || end.Status != string(engine.StatusFailed) || !strings.Contains(end.Error, "cannot be a state") {
				t.Errorf("it ends as %+v, %v", end, err)
			}
			if head, err = h.store.Head(t.Context(), testStack); err != nil || head.Active != nil || head.Version != 0 {
				t.Errorf("the head is %+v, %v", head, err)
			}
		})
	}
}
