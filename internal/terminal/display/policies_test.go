package display

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// violates is the event of a violation.
func violates(level, severity, policy, urn, message string) deployments.WatchEvent {
	return deployments.WatchEvent{Event: &apitype.EngineEvent{PolicyEvent: &apitype.PolicyEvent{
		ResourceURN: urn, Message: message + "\n", PolicyName: policy, PolicyPackName: "rules",
		PolicyPackVersion: "1.0.0", EnforcementLevel: level, Severity: severity,
	}}}
}

func checkedUpdate() []deployments.WatchEvent {
	page := step{op: apitype.OpCreate, typ: object, name: "index.html", new: map[string]any{"a": 1}}
	remediated := deployments.WatchEvent{Event: &apitype.EngineEvent{
		PolicyRemediationEvent: &apitype.PolicyRemediationEvent{
			ResourceURN: id(object, "index.html"), PolicyName: "tags", PolicyPackName: "rules", PolicyPackVersion: "1.0.0",
		},
	}}
	quiet := deployments.WatchEvent{Event: &apitype.EngineEvent{SummaryEvent: &apitype.SummaryEvent{
		PolicyPacks: map[string]string{"rules": "1.0.0", "others": ""},
	}}}
	odd := violates("advisory", "", "odd", id(object, "index.html"), "it is odd\x1b[2J")
	return []deployments.WatchEvent{
		stackStep().begins(), page.begins(), remediated, remediated, odd, odd,
		violates("mandatory", "high", "public", id(object, "index.html"), "it is public"), page.ends(),
		violates("mandatory", "", "few", stackURN, "too many"),
		stackStep().ends(), quiet, ended("failed", "", 2.5, map[string]int{"create": 1}),
	}
}

func TestWhatPolicyPacksFoundIsASectionOfTheSummary(t *testing.T) {
	want := `Policies:
  ✓ others
  ✗ rules 1.0.0
    remediated tags: 1
    mandatory (high) public (deployctl:s3:Object index.html)
        it is public
    mandatory few
        too many
    advisory odd (deployctl:s3:Object index.html)
        it is odd
Resources:
  + 1 created
`
	if got := shown(Options{Quiet: true}, checkedUpdate()...); !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTheSummaryOfJSONCountsWhatPolicyPacksFound(t *testing.T) {
	want := `"policies":{"mandatory":2,"advisory":1,"remediated":1}}`
	if got := strings.TrimSpace(shown(Options{JSON: true}, checkedUpdate()...)); !strings.HasSuffix(got, want) {
		t.Errorf("it ends with %s", got[max(0, len(got)-300):])
	}
}
