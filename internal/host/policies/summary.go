package policies

import (
	"maps"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
)

// Summarize returns the policies of a kind that passed and those that failed, by name, given the names of those that
// found something and of those that did not apply. A policy of an unknown kind, as older packs have, counts as of any.
func Summarize(
	info plugin.AnalyzerInfo, kind plugin.AnalyzerPolicyType, found []string, notApplicable []plugin.PolicyNotApplicable,
) (passed, failed []string) {
	failing, skipped := map[string]bool{}, map[string]bool{}
	for _, name := range found {
		failing[name] = true
	}
	for _, p := range notApplicable {
		skipped[p.PolicyName] = true
	}
	passed = []string{}
	for _, p := range info.Policies {
		of := p.Type == kind || p.Type == plugin.AnalyzerPolicyTypeUnknown
		if of && p.EnforcementLevel != apitype.Disabled && !failing[p.Name] && !skipped[p.Name] {
			passed = append(passed, p.Name)
		}
	}
	slices.Sort(passed)
	failed = slices.Sorted(maps.Keys(failing))
	if failed == nil {
		failed = []string{}
	}
	return passed, failed
}
