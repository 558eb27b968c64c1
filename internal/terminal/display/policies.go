package display

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
)

// PolicyCounts sums up what policy packs have found.
type PolicyCounts struct {
	Mandatory  int `json:"mandatory"` // violations
	Advisory   int `json:"advisory"`  // violations
	Remediated int `json:"remediated"`
}

// policyCounts returns nil if no policy pack took part.
func policyCounts(s *projection.State) *PolicyCounts {
	packs := s.PolicyPacks()
	if len(packs) == 0 {
		return nil
	}
	c := &PolicyCounts{}
	for _, p := range packs {
		for _, v := range p.Violations {
			if v.Mandatory() {
				c.Mandatory++
			} else {
				c.Advisory++
			}
		}
		for _, n := range p.Remediated {
			c.Remediated += n
		}
	}
	return c
}

// policyLines returns the section about policy packs; none if no pack took part.
func policyLines(s *projection.State, paint painter) []string {
	packs := s.PolicyPacks()
	if len(packs) == 0 {
		return nil
	}
	out := []string{paint.paint(bold, "Policies:")}
	for _, p := range packs {
		out = append(out, "  "+paint.paint(packStatus(p), packSign(p))+" "+safetext.Visible(packName(p)))
		for _, policy := range slices.Sorted(maps.Keys(p.Remediated)) {
			out = append(out, fmt.Sprintf("    %s %s: %d", paint.paint(cyan, "remediated"), safetext.Visible(policy),
				p.Remediated[policy]))
		}
		for _, v := range p.Violations {
			out = append(out, violationLines(v, paint)...)
		}
	}
	return out
}

func packName(p *projection.PolicyPack) string {
	if p.Version == "" {
		return p.Name
	}
	return p.Name + " " + p.Version
}

func packSign(p *projection.PolicyPack) string {
	if slices.ContainsFunc(p.Violations, projection.Violation.Mandatory) {
		return "✗"
	}
	if len(p.Violations) > 0 {
		return "!"
	}
	return "✓"
}

func packStatus(p *projection.PolicyPack) color {
	return map[string]color{"✗": red, "!": yellow, "✓": green}[packSign(p)]
}

// violationLines returns a line with the level, the policy and the resource, and the policy's message below it.
func violationLines(v projection.Violation, paint painter) []string {
	level, tint := v.Level, yellow
	if v.Mandatory() {
		tint = red
	}
	if v.Severity != "" {
		level += " (" + v.Severity + ")"
	}
	line := "    " + paint.paint(tint, safetext.Visible(level)) + " " + safetext.Visible(v.Policy)
	if of := v.Of(); of.Type != projection.StackType {
		line += paint.paint(dim, " ("+label(of)+")")
	}
	out := []string{line}
	for _, text := range strings.Split(v.Message, "\n") {
		if text != "" {
			out = append(out, "        "+text)
		}
	}
	return out
}
