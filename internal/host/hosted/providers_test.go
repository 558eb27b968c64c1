package hosted

import (
	"testing"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
)

func TestThePluginsVersionIsNotThatOfAPackageMadeAtRunTime(t *testing.T) {
	rule := settlerule.Rule{}
	if err := rule.UnmarshalJSON([]byte(`{"read": "${name}", "versions": ">=3.0.0 <4.0.0"}`)); err != nil {
		t.Fatal(err)
	}
	bridge := &Account{pkg: pluginhost.Package{Name: "terraform-provider", Version: "1.0.0",
		Parameter: &pluginhost.Parameter{Name: "postgresql"}}}
	own := &Account{pkg: pluginhost.Package{Name: "postgresql", Version: "1.0.0"}}
	if !rule.AppliesTo(bridge.CheckedVersion()) || rule.AppliesTo(own.CheckedVersion()) {
		t.Error("the version of the bridge decides whether a rule applies, or that of the package does not")
	}
}
