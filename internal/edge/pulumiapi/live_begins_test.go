package pulumiapi

import (
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestEveryRefreshBegins(t *testing.T) {
	about := func(op apitype.OpType, urn string) apitype.StepEventMetadata {
		return apitype.StepEventMetadata{Op: op, URN: urn}
	}
	outputs := func(op apitype.OpType, urn string) apitype.EngineEvent {
		return apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: about(op, urn)}}
	}
	var got []string
	for _, e := range withBegins([]apitype.EngineEvent{
		{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: about(apitype.OpRefresh, "slow")}},
		outputs(apitype.OpRefresh, "slow"), outputs(apitype.OpRefresh, "quick"), outputs(apitype.OpUpdate, "changed"),
		{ResOpFailedEvent: &apitype.ResOpFailedEvent{Metadata: about(apitype.OpRefresh, "failed")}},
		{DiagnosticEvent: &apitype.DiagnosticEvent{URN: "failed"}},
	}) {
		switch {
		case e.ResourcePreEvent != nil:
			got = append(got, "begin "+e.ResourcePreEvent.Metadata.URN)
		case e.ResOutputsEvent != nil:
			got = append(got, "end "+e.ResOutputsEvent.Metadata.URN)
		case e.ResOpFailedEvent != nil:
			got = append(got, "fail "+e.ResOpFailedEvent.Metadata.URN)
		}
	}
	want := []string{"begin slow", "end slow", "begin quick", "end quick", "end changed", "begin failed", "fail failed"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
