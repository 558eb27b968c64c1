package projection

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/rapidtest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"pgregory.net/rapid"
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

// Many providers read no inputs: of those, only the outputs tell that somebody has changed what an input says.
func TestAnOutputThatAProviderNamesDrifts(t *testing.T) {
	secret := map[string]any{sig.Key: sig.Secret, "ciphertext": "AAA="}
	inputs := map[string]any{"text": "card", "nested": map[string]any{"in": 1.0}, "data": secret}
	outputs := func(text string, in, seen float64) map[string]any {
		return map[string]any{"text": text, "nested": map[string]any{"in": in}, "seen": seen, "data": secret}
	}
	for name, c := range map[string]struct {
		now         map[string]any
		named, want string
	}{
		"an input":                         {outputs("hacked", 1, 2), "text", `text "card" "hacked"`},
		"a part of an input":               {outputs("card", 2, 2), "nested.in", `nested.in 1 2`},
		"a part of a secret":               {outputs("card", 1, 2), "data.password", `data.password "[secret]" "[secret]"`},
		"what no update would change back": {outputs("hacked", 1, 2), "", ""},
	} {
		m := apitype.StepEventMetadata{Op: apitype.OpRefresh, URN: "urn:pulumi:dev::shop::a:b:C::c", Type: "a:b:C",
			Old: &apitype.StepEventStateMetadata{Inputs: inputs, Outputs: outputs("card", 1, 1)},
			New: &apitype.StepEventStateMetadata{Inputs: inputs, Outputs: c.now}}
		if c.named != "" {
			m.DetailedDiff = map[string]apitype.PropertyDiff{c.named: {Kind: apitype.DiffUpdate}}
		}
		row := &Row{URN: m.URN, Op: m.Op, Phase: PhaseDone, Changes: changesOf(m)}
		row.found(m)
		var got []string
		for _, d := range (&State{Rows: []*Row{row}}).Drift() {
			for _, p := range d.Properties {
				got = append(got, p.Path, p.Expected, p.Actual)
			}
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %q has drifted, and not %q", name, got, c.want)
		}
	}
}

// What an update would change back is drift, and nothing else is, whatever has become of a resource and however its
// provider names that.
func TestADriftCheckReportsWhatARefreshFindsThatAnUpdateWouldChange(t *testing.T) {
	rapidtest.Check(t, func(t *rapid.T) {
		value := rapid.OneOf(rapid.Just[any](nil), rapid.Just[any]("text"), rapid.Just[any]("[secret]"), rapid.Just[any](2.0),
			rapid.Just[any]([]any{"one", "two"}), rapid.Just[any]([]any{"one"}), rapid.Just[any](map[string]any{"in": 1.0}))
		values := rapid.MapOf(rapid.SampledFrom([]string{"a", "b", "c", "d"}), value)
		kinds := []apitype.DiffKind{apitype.DiffAdd, apitype.DiffUpdate, apitype.DiffDelete, apitype.DiffUpdateReplace}
		m := apitype.StepEventMetadata{Op: apitype.OpRefresh, URN: "urn:pulumi:dev::shop::a:b:C::c", Type: "a:b:C",
			Old: &apitype.StepEventStateMetadata{Inputs: values.Draw(t, "declared"), Outputs: values.Draw(t, "recorded")},
			New: &apitype.StepEventStateMetadata{Inputs: values.Draw(t, "found inputs"), Outputs: values.Draw(t, "found")}}
		named := rapid.SliceOfDistinct(rapid.SampledFrom([]string{"a", "b", "c.in", "d[0]"}), rapid.ID).Draw(t, "named")
		if rapid.Bool().Draw(t, "in detail") {
			m.DetailedDiff = map[string]apitype.PropertyDiff{}
			for _, path := range named {
				m.DetailedDiff[path] = apitype.PropertyDiff{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"),
					InputDiff: rapid.Bool().Draw(t, "of inputs")}
			}
		} else {
			for i, path := range named {
				named[i] = path[:1]
			}
			m.Diffs = named
		}
		row := &Row{URN: m.URN, Op: m.Op, Phase: PhaseDone, Changes: changesOf(m)}
		row.found(m)
		drifted := (&State{Rows: []*Row{row}}).Drift()
		if len(drifted) > 0 != (len(named) > 0) {
			t.Fatalf("an update would change %v, and %+v has drifted", named, drifted)
		}
		for _, path := range named {
			if row.Op != OpDrifted || !slices.ContainsFunc(drifted[0].Properties, func(p deployments.DriftedProperty) bool {
				return below(path, p.Path) || below(p.Path, path)
			}) {
				t.Fatalf("the row is %s, and of %s nothing is reported: %+v", row.Op, path, drifted[0])
			}
		}
	})
}
