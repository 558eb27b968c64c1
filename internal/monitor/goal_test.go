package monitor

import (
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"

	"github.com/deployctl/deployctl/internal/pluginhost"
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
