package pulumiapi

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAnEventHasTheStatesThatTheStockCLIReliesOn(t *testing.T) {
	state := &apitype.StepEventStateMetadata{URN: "u"}
	for name, m := range map[string]apitype.StepEventMetadata{
		"only the old state": {Op: apitype.OpSame, Old: state}, "only the new state": {Op: apitype.OpSame, New: state},
		"no state": {Op: apitype.OpSame, URN: "u", Type: "t"},
	} {
		e := apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: m}}
		whole(&e)
		if got := e.ResOutputsEvent.Metadata; got.Old == nil || got.New == nil || got.New.URN != "u" {
			t.Errorf("%s: %+v", name, got)
		}
	}
	e := apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: apitype.StepEventMetadata{
		Op: apitype.OpCreate, New: state}}}
	if whole(&e); e.ResourcePreEvent.Metadata.Old != nil {
		t.Error("a resource that is created gets an old state")
	}
}

func TestTheEndOfAnUpdateThatNeverBeganHasAResult(t *testing.T) {
	for status, want := range map[string]apitype.OperationResult{
		deployments.StatusFailed: apitype.OperationResultFailed, deployments.StatusDamaged: apitype.OperationResultFailed,
		deployments.StatusCancelled: apitype.OperationResultCanceled,
		deployments.StatusSucceeded: apitype.OperationResultSucceeded,
	} {
		events := endOf(deployments.UpdateInfo{Status: status, Error: "why"})
		if len(events) != 2 || events[0].DiagnosticEvent.Message != "why\n" || events[1].SummaryEvent.Result != want {
			t.Errorf("%s: %+v", status, events)
		}
	}
}
