package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/plugin"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// finder is how a create with certain inputs is found: a rule whose variables are all known.
type finder struct {
	*settlerule.Rule
	from    string               // who says it
	id      string               // to read
	query   resource.PropertyMap // of a list, or the arguments of a function
	matches []string             // the texts of Rule.Matches
	place   settlerule.Mark      // where resources of the type bear their marks
}

// String says for people how the resource is looked for.
func (f *finder) String() string {
	switch {
	case f.List != nil:
		return "in the list of its type (" + f.from + ")"
	case f.Invoke != nil:
		return "by " + f.Invoke.Function + " (" + f.from + ")"
	}
	return fmt.Sprintf("as %s (%s)", f.id, f.from)
}

// known are rules of a type, and who says them.
type known struct {
	settlerule.Set
	version string // of the plugin
	shipped bool   // in the catalogue
}

// knownRules returns the rules of a type: the stack's own, and then those of the catalogue.
func (s *session) knownRules(ctx context.Context, p *pluginhost.Provider, t tokens.Type, version string) []known {
	key := string(t) + "@" + version
	if cached, ok := s.found.Load(key); ok {
		return cached.([]known)
	}
	var all []known
	own := s.own.Rules.For(string(t))
	if len(own.Rules) > 0 {
		all = append(all, known{Set: own})
	}
	if s.catalogue != nil {
		shipped, ok, err := s.catalogue(ctx, string(t), version, func(ctx context.Context, key string) ([]byte, error) {
			resp, err := p.GetMapping(ctx, plugin.GetMappingRequest{Key: key})
			return resp.Data, err
		})
		if err != nil {
			return all
		}
		if ok {
			values := maps.Clone(shipped.Values)
			if values == nil {
				values = map[string]settlerule.Sources{}
			}
			maps.Copy(values, own.Values) // what the stack says about values holds for these rules, too
			shipped.Values = values
			all = append(all, known{Set: shipped, version: version, shipped: true})
		}
	}
	s.found.Store(key, all)
	return all
}

// finder returns how a create with these inputs is found: by the first rule that can be used. Its other results are
// those of finders.
func (at *attempt) finder(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap, may func(*settlerule.Rule) bool,
) (f *finder, why string, err error) {
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
) (usable []*finder, why string, err error) {
	account, err := at.session.providers.accountOf(ctx, at.step.Provider)
	if err != nil {
		return nil, "", err
	}
	var reasons []string
	all := at.session.knownRules(ctx, p, at.step.Type, account.checkedVersion())
	place := markPlace(all)
	for _, set := range all {
		scope := at.scope(ctx, p, account, inputs, set.Values)
		for i := range set.Rules {
			rule := &set.Rules[i]
			if !rule.AppliesTo(set.version) || !may(rule) {
				continue
			}
			scope.Mark = at.markIn(rule.Mark, inputs)
			f, err := newFinder(rule, set.From, scope)
			var missing *settlerule.MissingError
			switch {
			case err == nil:
				f.place = place
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

func newFinder(rule *settlerule.Rule, from string, scope settlerule.Scope) (f *finder, err error) {
	f = &finder{Rule: rule, from: from}
	switch {
	case !rule.Read.IsZero():
		if f.id, err = rule.Read.Render(scope); err == nil && !settlerule.Usable(f.id) {
			err = &settlerule.MissingError{Reason: "the id that it makes is no text of 1 to 2048 printable bytes"}
		}
	case rule.List != nil:
		f.query, err = settlerule.RenderObject(rule.List.Query, scope)
	case rule.Invoke != nil:
		f.query, err = settlerule.RenderObject(rule.Invoke.Args, scope)
	}
	for _, m := range rule.Matches() {
		if err != nil {
			break
		}
		var text string
		text, err = m.Template.Render(scope)
		f.matches = append(f.matches, text)
	}
	return f, err
}

// digest tells what is looked for from what another rule looks for.
func (f *finder) digest() string {
	function, paths := "", []string{}
	if f.Invoke != nil {
		function = f.Invoke.Function
	}
	for _, m := range f.Matches() {
		paths = append(paths, m.Path.String())
	}
	text, _ := json.Marshal([]any{f.Kind(), f.id, function, f.query.Mappable(), paths, f.matches}) // texts are always JSON
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// anyRule allows all rules.
func anyRule(*settlerule.Rule) bool { return true }

// declarations are how a provider says that creates of its types are settled.
type declarations struct {
	pkg string
	by  map[string]provider.Settle // nil: it knows nothing of that
}

// mostDeclared bounds what a provider declares, and mostTold what all providers of an update do, in bytes. Decoded it
// takes about ten times that.
const mostDeclared, mostTold = 1 << 20, 8 << 20

// declaredRule returns how a provider says that creates of a type are settled; false if it knows nothing of rules. It
// is asked once, unless it fails.
func (s *session) declaredRule(ctx context.Context, p *pluginhost.Provider, t tokens.Type) (provider.Settle, bool) {
	told, ok := s.told.Load(p)
	if !ok {
		resp, err := p.GetMapping(ctx, plugin.GetMappingRequest{Key: provider.SettleMapping})
		if err != nil {
			return "", false
		}
		d := declarations{pkg: resp.Provider}
		if len(resp.Data) > mostDeclared || s.toldBytes.Add(int64(len(resp.Data))) > mostTold ||
			json.Unmarshal(resp.Data, &d.by) != nil {
			d.by = nil
		}
		told = d
		s.told.Store(p, d)
	}
	d := told.(declarations)
	if d.by == nil || d.pkg != string(token.Package(t)) {
		return "", false
	}
	return d.by[string(t)], true
}

// reconciled reports whether the provider of a type is convergent, so that a repeated create finds its resource. A rule
// of the stack goes before what the provider says.
func (s *session) reconciled(ctx context.Context, p *pluginhost.Provider, t tokens.Type) bool {
	return s.declared(ctx, p, t) == provider.SettleByReconcile
}

// declared returns what a provider says of a type, unless the stack has rules for it.
func (s *session) declared(ctx context.Context, p *pluginhost.Provider, t tokens.Type) provider.Settle {
	if len(s.own.Rules.For(string(t)).Rules) > 0 {
		return ""
	}
	by, _ := s.declaredRule(ctx, p, t)
	return by
}

// hint says which rule would help to find a resource of a type.
func hint(t tokens.Type, inputs resource.PropertyMap) string {
	for _, name := range []resource.PropertyKey{"name", "bucket", "identifier", "id"} {
		if v, ok := inputs[name]; ok && v.IsString() {
			return fmt.Sprintf(`deployctl:settle {"%s": {"read": "${%s}"}} if that input is its id`, t, name)
		}
	}
	return fmt.Sprintf("a rule for %s in deployctl:settle: read if its id follows from its inputs, list or invoke if the "+
		"server makes it", t)
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

// count counts what settling a create came to.
func (s *session) count(t tokens.Type, f *finder, result string) {
	if s.settled == nil {
		return
	}
	kind := "none"
	if f != nil {
		kind = f.Kind()
	}
	s.settled(string(token.Package(t)), kind, result)
}

// noRule is the outcome of a create of which no rule says how to find it.
func noRule(t tokens.Type, inputs resource.PropertyMap, why string) engine.StepFinished {
	return engine.StepFinished{Outcome: engine.OutcomeUndecidable,
		Error: "its answer was lost, and it could not be looked for: " + notRuled(t, inputs, why)}
}

// notRuled says why no rule could be used.
func notRuled(t tokens.Type, inputs resource.PropertyMap, why string) string {
	if why != "" {
		return "no settle rule can be used: " + why
	}
	return fmt.Sprintf("no settle rule says how to find a %s; it would be found by %s", t, hint(t, inputs))
}

// notThere is the outcome of a create whose resource a rule has not found.
func notThere(after *engine.Evidence, f *finder) engine.StepFinished {
	result := absent
	if after != nil {
		result.Error = "it was looked for " + f.String() + ", and is not there"
	}
	return result
}
