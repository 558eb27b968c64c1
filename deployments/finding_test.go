package deployments_test

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAFindingIsReadAsItWasWritten(t *testing.T) {
	for _, f := range []deployments.Finding{
		{Kind: deployments.FoundOrphan, Type: "aws:s3/bucket:Bucket", ID: `a "b": c` + "\n", Why: "it bears: a mark"},
		{Kind: deployments.NotListed, Type: "a:b:C", Why: "forbidden: no"},
		{Kind: deployments.NotFound, Type: "a:b:C", Why: "no rule"},
	} {
		if got, ok := deployments.ParseFinding(f.String()); !ok || got != f {
			t.Errorf("%q is read as %+v, %v", f, got, ok)
		}
	}
	for _, text := range []string{"", "orphan", "orphan a:b:C", "orphan a:b:C x: y", "not found", "an orphan a \"b\": c"} {
		if f, ok := deployments.ParseFinding(text); ok {
			t.Errorf("%q is read as %+v", text, f)
		}
	}
}
