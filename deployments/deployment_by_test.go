package deployments

import (
	"strings"
	"testing"
)

func TestADeploymentSaysWhetherAPushHasStartedIt(t *testing.T) {
	for want, d := range map[string]Deployment{
		"ann":                  {RequestedBy: "ann", Initiator: InitiatorCLI},
		"push to main for ann": {RequestedBy: "ann", Initiator: "push to main"},
		"push to " + strings.Repeat("b", MaxInitiatorLength-8): {Initiator: "push to " + strings.Repeat("b", 300)},
	} {
		if got := d.By(); got != want {
			t.Errorf("it is by %q, not %q", got, want)
		}
	}
}
