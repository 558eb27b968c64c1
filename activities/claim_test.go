package activities

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

func TestAnUpdateWhoseCallerMayNotDeployAnyMoreDoesNotBegin(t *testing.T) {
	h := newHouse(t)
	token := deployments.Token{Name: "ci", Grant: &deployments.Grant{Role: deployments.RoleDeployer,
		Organization: testStack.Organization}}
	text, err := h.store.CreateToken(t.Context(), token)
	if err != nil {
		t.Fatal(err)
	}
	caller, err := h.store.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	h.claim(deployments.UpdateRequest{Kind: engine.KindDestroy, Authority: caller.Delegated()})
	if err := h.store.RemoveToken(t.Context(), "ci"); err != nil {
		t.Fatal(err)
	}
	if again := h.reclaim(deployments.UpdateRequest{Authority: caller.Delegated()}); again.Worker == "" {
		t.Error("one that has begun does not go on")
	}
	waiting := deployments.ClaimInput{
		Update: deployments.UpdateName{StackName: testStack, Version: "2"}, Number: 1,
		Request: deployments.UpdateRequest{Stack: testStack, Kind: engine.KindDestroy, Authority: caller.Delegated()},
	}
	_, err = call[deployments.Claimed](h, h.acts.Claim, waiting)
	if err == nil || !strings.Contains(err.Error(), "the update does not begin: the token ci may not do this any "+
		"more: the token was removed") {
		t.Errorf("one that waited: %v", err)
	}
}
