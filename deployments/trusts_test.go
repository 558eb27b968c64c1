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
		m := NewMatching(nil, map[string]json.RawMessage{"groups": claim})
		if got, err := m.holds(Condition{"groups", pattern}); got != want || err != nil {
			t.Errorf("%.20s… holds: %v, %v", pattern, got, err)
		}
	}
}

// hostileTrust is a trust whose conditions are compared with a claim as long as possible, and do not all hold.
func hostileTrust() Trust {
	t := Trust{Organization: "evil", Audiences: []string{"a"}}
	for range MaxConditions - 1 {
		t.Conditions = append(t.Conditions, Condition{"groups", "*" + strings.Repeat("a", MaxClaimLength-2) + "c"})
	}
	t.Conditions = append(t.Conditions, Condition{"groups", "*" + strings.Repeat("a", MaxClaimLength-2) + "b"})
	return t
}

func TestAnIdentityIsComparedWithTrustsForSoLongAndNoLonger(t *testing.T) {
	usual := Trust{Organization: "acme", Audiences: []string{"a"}, Conditions: []Condition{
		{"sub", "repo:acme/" + strings.Repeat("x", 50) + ":*"}, {"ref", "refs/heads/main"}}}
	claims := map[string]json.RawMessage{"sub": json.RawMessage(`"repo:acme/shop:ref:refs/heads/main"`),
		"ref": json.RawMessage(`"refs/heads/main"`), "groups": json.RawMessage(`"` + strings.Repeat("a", 12<<10) + `c"`)}
	m := NewMatching([]string{"a"}, claims)
	for range 1000 {
		if matches, err := m.Matches(usual); matches || err != nil {
			t.Fatalf("a thousand usual trusts: %v, %v", matches, err)
		}
	}
	m = NewMatching([]string{"a"}, claims)
	compared := 0
	var err error
	for err == nil && compared < 1000 {
		_, err = m.Matches(hostileTrust())
		compared++
	}
	if CodeOf(err) != CodeInvalid || compared > 10 {
		t.Errorf("after %d hostile trusts: %v", compared, err)
	}
}
