package projection

import (
	"cmp"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// PolicyPack is what a policy pack has found in an update.
type PolicyPack struct {
	Name, Version string
	Violations    []Violation
	Remediated    map[string]int // resources, by policy
}

// Violation is a violation of a policy.
type Violation struct {
	Policy, Level, Severity, Message string
	URN                              string // of the resource, or of the stack
}

// Of returns a row that names the resource of the violation.
func (v Violation) Of() *Row { return newRow(v.URN) }

// Mandatory reports that the violation makes the update fail.
func (v Violation) Mandatory() bool { return v.Level == string(apitype.Mandatory) }

// policyPack finds or makes a policy pack.
func (s *State) policyPack(name, version string) *PolicyPack {
	for _, p := range s.policyPacks {
		if p.Name == name && p.Version == version {
			return p
		}
	}
	p := &PolicyPack{Name: name, Version: version, Remediated: map[string]int{}}
	s.policyPacks = append(s.policyPacks, p)
	return p
}

// violation keeps a violation. A program that was started again repeats what its resources violate.
func (s *State) violation(e apitype.PolicyEvent) {
	p := s.policyPack(e.PolicyPackName, e.PolicyPackVersion)
	v := Violation{Policy: e.PolicyName, Level: e.EnforcementLevel, Severity: e.Severity,
		Message: safetext.Message(e.Message), URN: e.ResourceURN}
	if !slices.Contains(p.Violations, v) {
		p.Violations = append(p.Violations, v)
	}
}

func (s *State) remediation(e apitype.PolicyRemediationEvent) {
	if s.remediated == nil {
		s.remediated = map[[4]string]bool{}
	}
	id := [4]string{e.PolicyPackName, e.PolicyPackVersion, e.PolicyName, e.ResourceURN}
	if p := s.policyPack(e.PolicyPackName, e.PolicyPackVersion); !s.remediated[id] {
		p.Remediated[e.PolicyName]++
		s.remediated[id] = true
	}
}

// PolicyPacks returns the policy packs that took part, by name. Violations are sorted: mandatory ones first, then by
// severity and policy.
func (s *State) PolicyPacks() []*PolicyPack {
	packs := slices.Clone(s.policyPacks)
	slices.SortFunc(packs, func(a, b *PolicyPack) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	for _, p := range packs {
		slices.SortStableFunc(p.Violations, func(a, b Violation) int {
			return cmp.Or(cmp.Compare(b.Level, a.Level), cmp.Compare(rankOfSeverity(b.Severity), rankOfSeverity(a.Severity)),
				cmp.Compare(a.Policy, b.Policy), cmp.Compare(a.URN, b.URN))
		})
	}
	return packs
}

func rankOfSeverity(severity string) int {
	return slices.Index([]string{"low", "medium", "high", "critical"}, severity)
}

// finished adds the policy packs that found nothing.
func (s *State) finished(e apitype.SummaryEvent) {
	for _, name := range slices.Sorted(maps.Keys(e.PolicyPacks)) {
		s.policyPack(name, e.PolicyPacks[name])
	}
}
