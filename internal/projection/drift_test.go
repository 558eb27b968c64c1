package projection

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestALongTableOfDriftSaysHowMuchMoreThereIs(t *testing.T) {
	var drifted []deployments.DriftedResource
	for i := range markdownRows + 7 {
		u := "urn:pulumi:dev::shop::deployctl:s3:Object::" + fmt.Sprint(i)
		drifted = append(drifted, deployments.DriftedResource{URN: u, Gone: true})
	}
	if table := DriftMarkdown(drifted); !strings.Contains(table, "and 7 more") ||
		strings.Count(table, "it is gone") != markdownRows {
		t.Error(table)
	}
}
