package engineprovider

import (
	"maps"
	"strings"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
)

func TestAStackReferenceThatIsReadHasNoOtherPropertyThanItsName(t *testing.T) {
	inputs, err := structpb.NewStruct(map[string]any{"name": "other", "foo": "bar"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&engineProvider{}).Read(t.Context(), &pulumirpc.ReadRequest{
		Urn: "urn:pulumi:dev::proj::pulumi:pulumi:StackReference::other", Id: "other", Inputs: inputs,
	})
	if err == nil || !strings.Contains(err.Error(), `has no property "foo"`) {
		t.Errorf("it ends with %v", err)
	}
}

func TestAStashThatIsImportedKeepsNothing(t *testing.T) {
	read, err := (&engineProvider{}).Read(t.Context(), &pulumirpc.ReadRequest{
		Urn: "urn:pulumi:dev::proj::pulumi:index:Stash::kept", Id: "any",
	})
	if err != nil {
		t.Fatal(err)
	}
	nothing := map[string]any{"input": nil, "output": nil}
	if got := read.GetProperties().AsMap(); read.GetId() != "any" || !maps.Equal(got, nothing) {
		t.Errorf("%s is read with %v", read.GetId(), got)
	}
	if got := read.GetInputs().AsMap(); !maps.Equal(got, map[string]any{"input": nil}) {
		t.Errorf("its inputs are %v", got)
	}
	if _, err := (&engineProvider{}).Read(t.Context(), &pulumirpc.ReadRequest{
		Urn: "urn:pulumi:dev::proj::pulumi:pulumi:StackReference::other", Id: "other",
	}); err == nil || !strings.Contains(err.Error(), "cannot be imported") {
		t.Errorf("a reference is imported: %v", err)
	}
}
