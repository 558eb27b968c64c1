package monitor

import (
	"fmt"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
)

func TestTheNameOfADefaultProviderNamesItsVersion(t *testing.T) {
	for version, want := range map[string]string{"": "default", "1.2.3": "default_1_2_3",
		"1.0.0-rc.1+b2": "default_1_0_0_rc_1_b2"} {
		if got := (packageRequest{Package: pluginhost.Package{Name: "toy",
			Version: version}}).defaultName(); got != want {
			t.Errorf("%q: %s", version, got)
		}
	}
}

func TestAnAliasOfAnOldNodeSDKIsReadTheRightWayRound(t *testing.T) {
	none := &pulumirpc.Alias{Alias: &pulumirpc.Alias_Spec_{Spec: &pulumirpc.Alias_Spec{Name: "old"}}}
	req := &pulumirpc.RegisterResourceRequest{Name: "r", Aliases: []*pulumirpc.Alias{none}}
	for wrong, noParent := range map[bool]bool{true: true, false: false} {
		aliases, err := readAliases(req, wrong)
		if err != nil || len(aliases) != 1 || aliases[0].NoParent != noParent {
			t.Errorf("%v: %+v %v", wrong, aliases, err)
		}
	}
}

func TestWhatATransformAddsDependsOnNothingByItself(t *testing.T) {
	const on = "urn:pulumi:s::p::a:b:C::on"
	req := &pulumirpc.RegisterResourceRequest{
		Type: "a:b:C", Name: "r", Custom: true, Dependencies: []string{on},
		Object: &structpb.Struct{Fields: map[string]*structpb.Value{"given": structpb.NewStringValue("x")}},
	}
	spreadDependencies(req)
	req.Object.Fields["added"] = structpb.NewStringValue("y")
	g := &registration{}
	if err := (&Monitor{}).readInputs(t.Context(), req, g); err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprint(g.PropertyDependencies), "[{added []} {given ["+on+"]}]"; got != want {
		t.Errorf("%s instead of %s", got, want)
	}
}
