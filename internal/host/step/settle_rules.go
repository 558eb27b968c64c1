package step

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// finder returns how a create with these inputs is found: by the first rule that can be used. Its other results are
// those of finders.
func (at *attempt) finder(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap, may func(*settlerule.Rule) bool,
) (f *lookup.Finder, why string, err error) {
	all, why, err := at.finders(ctx, p, inputs, 1, may)
	if err != nil || len(all) == 0 {
		return nil, why, err
	}
	return all[0], "", nil
}

// finders returns the first rules that can be used for a create with these inputs, in their order. Without one, why
// says what is missing; it is empty if there are no rules at all. Errors are those of calls that may be repeated.
func (at *attempt) finders(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap, most int,
	may func(*settlerule.Rule) bool,
) (usable []*lookup.Finder, why string, err error) {
	account, err := at.session.providers.Account(ctx, at.step.Provider)
	if err != nil {
		return nil, "", err
	}
	var reasons []string
	all := at.session.rules.Known(ctx, p, at.step.Type, account.CheckedVersion())
	place := lookup.MarkPlace(all)
	for _, set := range all {
		scope := at.scope(ctx, p, account, inputs, set.Values)
		for i := range set.Rules {
			rule := &set.Rules[i]
			if !rule.AppliesTo(set.Version) || !may(rule) {
				continue
			}
			scope.Mark = at.markIn(rule.Mark, inputs)
			f, err := lookup.NewFinder(rule, set.From, scope)
			var missing *settlerule.MissingError
			switch {
			case err == nil:
				f.Place = place
				if usable = append(usable, f); len(usable) == most {
					return usable, "", nil
				}
				continue
			case !errors.As(err, &missing):
				return nil, "", err
			}
			reasons = append(reasons, fmt.Sprintf("%s (%s of %s)", missing, rule.Kind(), set.From))
		}
	}
	return usable, strings.Join(reasons, "; "), nil
}

// The results of settling a create, as they are counted.
const (
	countedFound     = "found"
	countedAbsent    = "absent"
	countedAmbiguous = "ambiguous"
	countedRepeated  = "repeated"
	countedNoRule    = "no rule"
)

// counted says what settling a create by a rule came to.
func counted(result engine.StepFinished) string {
	switch result.Outcome {
	case engine.OutcomeDone, engine.OutcomePartial:
		return countedFound
	case engine.OutcomeAbsent:
		return countedAbsent
	}
	return countedAmbiguous
}

// noRule is the outcome of a create of which no rule says how to find it.
func noRule(t tokens.Type, inputs resource.PropertyMap, why string) engine.StepFinished {
	return engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its answer was lost, and it could not be looked for: " + lookup.NotRuled(t, inputs, why)}
}

// notThere is the outcome of a create whose resource a rule has not found.
func notThere(after *engine.Evidence, f *lookup.Finder) engine.StepFinished {
	result := absent
	if after != nil {
		result.Error = "it was looked for " + f.String() + ", and is not there"
	}
	return result
}

// count counts what settling a create came to.
func (s *Steps) count(t tokens.Type, f *lookup.Finder, result string) {
	if s.settled == nil {
		return
	}
	kind := "none"
	if f != nil {
		kind = f.Kind()
	}
	s.settled(string(token.Package(t)), kind, result)
}
