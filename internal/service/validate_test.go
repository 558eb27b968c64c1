package service

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
)

// The service under test has no Temporal: what is refused does not get there.
func TestTheServiceRejectsImpossibleRequests(t *testing.T) {
	s := New(nil, &statestore.Store{}, Readers{})
	for name, r := range map[string]deployments.UpdateRequest{
		"a forgotten kind":         {Stack: dev, RequestID: "r"},
		"a kind that is not known": {Stack: dev, RequestID: "r", Kind: "restore"},
		"a climbing request id":    {Stack: dev, RequestID: "../x", Kind: engine.KindUp, DryRun: true},
		"no stack":                 {RequestID: "r", Kind: engine.KindUp},
	} {
		if _, err := s.Submit(t.Context(), r); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	climbing := deployments.UpdateName{StackName: dev, Version: "../1"}
	for name, err := range map[string]error{
		"cancel":  s.Cancel(t.Context(), climbing, true),
		"watch":   s.Watch(t.Context(), climbing, nil),
		"resolve": s.Resolve(t.Context(), climbing, "urn:pulumi:dev::web::a:b:C::d", "x"),
	} {
		if deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}
