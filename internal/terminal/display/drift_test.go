package display

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestDriftIsWhatARefreshFindsOtherThanTheStateSays(t *testing.T) {
	state := projection.NewState()
	for _, s := range []step{
		{op: apitype.OpRefresh, typ: bucket, name: "site", old: map[string]any{"acl": "private",
			"tags": map[string]any{"a": 1}},
			new: map[string]any{"acl": "public", "tags": map[string]any{"a": 1, "b|c": 2}},
			detailed: map[string]apitype.PropertyDiff{"acl": {Kind: apitype.DiffUpdate},
				`tags["b|c"]`: {Kind: apitype.DiffAdd}}},
		{op: apitype.OpRefresh, typ: object, name: "same", old: map[string]any{"key": "k"},
			new: map[string]any{"key": "k"}},
		{op: apitype.OpRefresh, typ: object, name: "gone", old: map[string]any{"key": "k"}},
	} {
		state.Apply(s.ends())
	}
	state.Apply(step{op: apitype.OpRefresh, typ: object, name: "unreadable", old: map[string]any{"key": "k"}}.fails())
	drifted := state.Drift()
	want := []deployments.DriftedResource{
		{URN: id(bucket, "site"), Properties: []deployments.DriftedProperty{
			{Path: "acl", Expected: `"private"`, Actual: `"public"`}, {Path: `tags["b|c"]`, Actual: "2"},
		}},
		{URN: id(object, "gone"), Gone: true},
	}
	if got, want := fmt.Sprintf("%+v", drifted), fmt.Sprintf("%+v", want); got != want {
		t.Errorf("found\n%s\nwant\n%s", got, want)
	}
	table := projection.DriftMarkdown(drifted)
	for _, row := range []string{
		"**Drifted resources: 2**", `| deployctl:s3:Bucket site | acl | "private" | "public" |`,
		`| deployctl:s3:Bucket site | tags["b\|c"] | (nothing) | 2 |`,
		"| deployctl:s3:Object gone |  | it exists | it is gone |",
	} {
		if !strings.Contains(table, row) {
			t.Errorf("there is no %q in\n%s", row, table)
		}
	}
}
