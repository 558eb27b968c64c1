package display

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
)

func TestEveryStepOfWhichTheLogHasTheEndAloneBegins(t *testing.T) {
	var out bytes.Buffer
	j := newJSON(Options{Out: &out, State: projection.NewState()})
	meta := func(op apitype.OpType) apitype.StepEventMetadata {
		return apitype.StepEventMetadata{Op: op, URN: "urn:pulumi:dev::shop::t:i:T::a", Type: "t:i:T"}
	}
	for _, e := range []apitype.EngineEvent{
		{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: meta(apitype.OpRefresh)}},
		{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: meta(apitype.OpRefresh)}}, // a copy with the same URN
		{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: meta(apitype.OpRefresh)}},
		{ResOpFailedEvent: &apitype.ResOpFailedEvent{Metadata: meta(apitype.OpRefresh)}},
		{ResOpFailedEvent: &apitype.ResOpFailedEvent{Metadata: meta(apitype.OpRefresh)}},
		{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: meta(apitype.OpSame)}},
	} {
		j.Item(deployments.WatchEvent{Event: &e})
	}
	var got []string
	for decoder := json.NewDecoder(&out); decoder.More(); {
		var e apitype.EngineEvent
		if err := decoder.Decode(&e); err != nil {
			t.Fatal(err)
		}
		switch {
		case e.ResourcePreEvent != nil:
			got = append(got, "begin")
		case e.ResOutputsEvent != nil:
			got = append(got, "end")
		case e.ResOpFailedEvent != nil:
			got = append(got, "fail")
		}
	}
	want := []string{"begin", "end", "begin", "end", "begin", "fail", "begin", "fail", "begin", "end"}
	if !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
