package deployments

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestAConditionIsComparedWithEachElementOfALongClaim(t *testing.T) {
	claim := json.RawMessage("[" + strings.Repeat("1,", 8<<10) + `"` + strings.Repeat("a", 16<<10) + `x"]`)
	for pattern, want := range map[string]bool{
		strings.Repeat("*a", MaxClaimLength/2):            false,
		strings.Repeat("*a", MaxClaimLength/2-1) + "*x":   true,
		strings.Repeat("?", MaxClaimLength-2) + "*x":      true,
		"*" + strings.Repeat("a", MaxClaimLength-2) + "y": false,
	} {
		if got := (Condition{"groups", pattern}).holds(claim); got != want {
			t.Errorf("%.20s… holds: %v", pattern, got)
		}
	}
}
