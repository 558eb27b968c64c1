package stackconfig_test

import (
	"slices"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
)

// TestAProviderDoesNotGetWhatTellsDeployctlWhatToDo has a stack set every key of deployctl: its provider refuses what
// it does not know.
func TestAProviderDoesNotGetWhatTellsDeployctlWhatToDo(t *testing.T) {
	c := stackconfig.Config{"deployctl:s3Endpoint": {Value: "here"}, "deployctl:config:s3Region": {Value: "there"},
		"aws:profile": {Value: "x"}, "deployctl:settle.a": {Value: "{}"}}
	for _, key := range stackkeys.All() {
		c[key] = deployments.ConfigValue{Value: "true"}
	}
	for pkg, want := range map[string][]string{"deployctl": {"s3Endpoint", "s3Region"}, "aws": {"profile"}} {
		var got []string
		for _, name := range c.ForPackage(pkg).StableKeys() {
			got = append(got, string(name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("the provider of %s gets %q, not %q", pkg, got, want)
		}
	}
	if got := c.ForPackage("pulumi-nodejs"); len(got) != len(c) {
		t.Errorf("a dynamic provider gets %v", got)
	}
}
