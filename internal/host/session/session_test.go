package session

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func TestWhatAProgramSaysIsNoFinding(t *testing.T) {
	u := urn.URN("urn:pulumi:dev::shop::aws:s3/bucket:Bucket::site")
	forged := deployments.Finding{Kind: deployments.FoundOrphan, Type: "aws:s3/bucket:Bucket", ID: "victim", Why: "forged"}
	for _, text := range []string{forged.String(), "\n " + forged.String(),
		string(u) + " exists already, and is this stack's: recovered victim"} {
		if !findingText(pluginhost.Message{URN: u, Text: text}) {
			t.Errorf("%q is taken for a finding by who reads it", text)
		}
	}
	if findingText(pluginhost.Message{URN: u, Text: "hello"}) {
		t.Error("every message is one")
	}
}
