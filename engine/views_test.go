package engine

import (
	"encoding/json"
	"testing"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// TestAStepRefersToTheValuesOfManyViews holds that a command with many views does not carry their values, which the
// base has.
func TestAStepRefersToTheValuesOfManyViews(t *testing.T) {
	owner := urn.URN("urn:pulumi:dev::proj::pulumi:pulumi:Thing::owner")
	base := []State{{URN: owner, Type: "pulumi:pulumi:Thing", Custom: true, ID: "i", Provider: ""}}
	for _, name := range []string{"a", "b"} {
		bag := Bag{Digest: name, Inline: json.RawMessage(`{}`)}
		base = append(base, State{
			URN:  urn.URN("urn:pulumi:dev::proj::pulumi:pulumi:Thing$p:m:Part::" + name),
			Type: "p:m:Part", Parent: owner, ViewOf: owner, Inputs: bag, Outputs: bag,
		})
	}
	r := New(Goal{Kind: KindRefresh, Project: "proj", Stack: "dev"}, base, nil)
	commands := r.Ready().Start
	if len(commands) != 1 {
		t.Fatalf("the commands are %+v", commands)
	}
	step, ok := commands[0].(Step)
	if !ok || step.URN != owner || len(step.Views) != 2 {
		t.Fatalf("the command is %+v", commands[0])
	}
	for i, v := range step.Views {
		stored := snapshot.BaseKey(i + 1).Ref(snapshot.PartInputs)
		if v.Inputs.Inline != nil || v.Inputs.Ref != stored || v.Outputs.Digest == "" {
			t.Errorf("the view is %+v", v)
		}
	}
}
