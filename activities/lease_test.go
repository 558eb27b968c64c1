package activities

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestALeaseWhoseJournalCannotBeReplayedEndsAsFailedWithWhatIsBeforeAndFreesItsStack(t *testing.T) {
	const made = `{"sequenceID":0,"kind":1,"operationID":1,"state":{"urn":"urn:pulumi:dev::test::t:m:T::a","type":"t:m:T"}}`
	rebuilds := ""
	for n := range 20 {
		rebuilds += fmt.Sprintf(`,{"sequenceID":%d,"kind":7}`, 1+n)
	}
	for name, c := range map[string]struct {
		journal string
		version int
	}{
		"a base that is rebuilt without end": {"[" + made + rebuilds + "]", 1},
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
				[]byte(c.journal)); err != nil {
				t.Fatal(err)
			}
			end, err := call[deployments.LeaseEnded](h, h.acts.EndLease, deployments.LeaseEnd{Update: u,
				Status: engine.StatusSucceeded})
			if err != nil || end.Status != string(engine.StatusFailed) ||
				!strings.Contains(end.Error, "is not all in the state") {
				t.Errorf("it ends as %+v, %v", end, err)
			}
			if head, err = h.store.Head(t.Context(), testStack); err != nil || head.Active != nil || head.Version != c.version {
				t.Errorf("the head is %+v, %v", head, err)
			}
		})
	}
}
