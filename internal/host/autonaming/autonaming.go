// Package autonaming proposes physical names to providers by the rules in a stack's configuration, pulumi:autonaming.
package autonaming

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/host/stackconfig"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// Key is the key of the rules in a stack's configuration.
const Key = "pulumi:autonaming"

// Stack is what patterns may name of a stack.
type Stack struct{ Organization, Project, Stack string }

// Rules are the rules of a stack. Those of a type go before those of its package, and these before the others. The zero
// Rules, and nil, leave names to the providers.
type Rules struct {
	all      rule
	packages map[tokens.Package]rule
	types    map[tokens.Type]rule
}

// rule is how resources are named. The zero rule leaves that to their provider.
type rule struct {
	mode    string // verbatim, disabled, or pattern
	pattern pattern
	enforce bool
}

const (
	verbatim = "verbatim"
	disabled = "disabled"
	byItself = "default"
	patterns = "pattern"
)

// section is a part of the configuration.
type section struct {
	Mode    *string `json:"mode,omitempty"`
	Pattern *string `json:"pattern,omitempty"`
	Enforce *bool   `json:"enforce,omitempty"`
}

// Read reads the rules of a configuration; nil if it has none.
func Read(config stackconfig.Config, of Stack) (*Rules, error) {
	value, ok := config[Key]
	if !ok {
		return nil, nil
	}
	var all struct {
		section
		Providers map[tokens.Package]struct {
			section
			Resources map[tokens.Type]section `json:"resources,omitempty"`
		} `json:"providers,omitempty"`
	}
	decoder := json.NewDecoder(strings.NewReader(value.Value))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&all); err != nil {
		return nil, fmt.Errorf("%s: %w", Key, err)
	}
	r := reader{config: config, stack: of}
	rules := &Rules{packages: map[tokens.Package]rule{}, types: map[tokens.Type]rule{}}
	rules.all, _ = r.rule("", all.section)
	for _, pkg := range slices.Sorted(maps.Keys(all.Providers)) {
		of := all.Providers[pkg]
		rules.packages[pkg] = rules.all
		if own, has := r.rule("providers."+string(pkg)+": ", of.section); has {
			rules.packages[pkg] = own
		}
		for _, t := range slices.Sorted(maps.Keys(of.Resources)) {
			own, has := r.rule(string(t)+": ", of.Resources[t])
			if !has {
				r.errs = append(r.errs, fmt.Errorf("%s: %s: a mode or a pattern is missing", Key, t))
			}
			rules.types[t] = own
		}
	}
	return rules, errors.Join(r.errs...)
}

// Propose returns what a provider is told about the name of a resource, made from a seed; nil if it is to name it by
// itself.
func (r *Rules) Propose(u urn.URN, seed []byte) *plugin.AutonamingOptions {
	rule, specific := r.ruleOf(u.Type())
	options := &plugin.AutonamingOptions{WarnIfNoSupport: specific || rule.enforce}
	switch rule.mode {
	case verbatim:
		options.ProposedName, options.Mode = u.Name(), plugin.AutonamingModeEnforce
	case disabled:
		options.Mode = plugin.AutonamingModeDisabled
	case patterns:
		options.ProposedName = rule.pattern.name(u.Name(), seed)
		if rule.enforce {
			options.Mode = plugin.AutonamingModeEnforce
		}
	default:
		return nil
	}
	return options
}

// DeletesFirst reports whether a replacement of a type has to be deleted first, because its name would be the same.
func (r *Rules) DeletesFirst(t tokens.Type) bool {
	rule, _ := r.ruleOf(t)
	return rule.mode == verbatim || rule.mode == disabled || rule.mode == patterns && !rule.pattern.random()
}

// ruleOf returns the rule of a type, and whether it is one for the type or its package.
func (r *Rules) ruleOf(t tokens.Type) (_ rule, specific bool) {
	if r == nil || token.IsProvider(t) {
		return rule{}, false
	}
	if own, ok := r.types[t]; ok {
		return own, true
	}
	if own, ok := r.packages[token.Package(t)]; ok {
		return own, true
	}
	return r.all, false
}

// reader reads rules and collects what is wrong with them.
type reader struct {
	config stackconfig.Config
	stack  Stack
	errs   []error
}

// rule reads a section; has is false if it says nothing.
func (r *reader) rule(where string, s section) (_ rule, has bool) {
	fail := func(format string, args ...any) {
		r.errs = append(r.errs, fmt.Errorf("%s: %s%s", Key, where, fmt.Sprintf(format, args...)))
	}
	switch {
	case s.Mode != nil && (s.Pattern != nil || s.Enforce != nil):
		fail("a mode excludes a pattern and enforce")
	case s.Pattern != nil:
		p, err := r.read(*s.Pattern)
		if err != nil {
			fail("%v", err)
		}
		return rule{mode: patterns, pattern: p, enforce: s.Enforce != nil && *s.Enforce}, true
	case s.Enforce != nil:
		fail("enforce needs a pattern")
	case s.Mode == nil:
		return rule{}, false
	case *s.Mode == byItself:
		return rule{}, true
	case *s.Mode == verbatim || *s.Mode == disabled:
		return rule{mode: *s.Mode}, true
	default:
		fail("the mode is %q: it must be %s, %s or %s", *s.Mode, byItself, verbatim, disabled)
	}
	return rule{}, true
}
