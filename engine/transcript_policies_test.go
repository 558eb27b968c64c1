package engine_test

import (
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/engine"
)

// pack is the policy pack of every transcript.
var pack = engine.PolicyPack{Name: "rules", Version: "1.0.0"}

// analyzed adds what a policy has found to a plan: "LEVEL POLICY" or "POLICY prop=value…".
func analyzed(ev *engine.Planned, word, found string) error {
	if ev.Analysis == nil {
		return errors.New("nobody asks the policies")
	}
	if word == "violates" {
		v, err := violation(found)
		ev.Analysis.Violations = append(ev.Analysis.Violations, v)
		return err
	}
	policy, props, _ := strings.Cut(found, " ")
	after := bag(strings.Fields(props))
	ev.Analysis.Remediations = append(ev.Analysis.Remediations, engine.Remediation{
		Pack: pack, Policy: policy, Before: ev.Inputs, After: after,
	})
	ev.Inputs = after
	return nil
}

// violation reads "LEVEL POLICY".
func violation(s string) (engine.Violation, error) {
	level, policy, ok := strings.Cut(s, " ")
	if !ok {
		return engine.Violation{}, fmt.Errorf("a violation has a level and a policy, not %q", s)
	}
	return engine.Violation{Pack: pack, Policy: policy, Level: engine.PolicyLevel(level), Message: policy + "!"}, nil
}

// stackAnalyzed reads "LEVEL POLICY [of NAME]", "error why", or nothing.
func (w *stage) stackAnalyzed(rest string) (engine.Event, error) {
	c, err := take[engine.AnalyzeStack](w, "")
	if err != nil {
		return nil, err
	}
	ev := engine.StackAnalyzed{Op: c.Op, Analysis: &engine.Analysis{Packs: []engine.PolicyPack{pack}}}
	why, failed := strings.CutPrefix(rest, "error ")
	switch {
	case failed:
		ev.Error, ev.Analysis = why, nil
	case rest != "":
		found, of, named := strings.Cut(rest, " of ")
		v, err := violation(found)
		if err != nil {
			return nil, err
		}
		if named {
			v.URN = w.urnOf(of)
		}
		ev.Analysis.Violations = append(ev.Analysis.Violations, v)
	}
	return ev, nil
}
