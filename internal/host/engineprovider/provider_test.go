package engineprovider

import (
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
