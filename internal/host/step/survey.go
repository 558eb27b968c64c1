package step

import (
	"context"
	"errors"
	"slices"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/host/hosted"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/internal/values/token"
	"github.com/pulumi/pulumi/sdk/v3/go/common/diag"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// A preview that surveys tells what else of the stack exists: what bears its mark, or has a name that was generated for
// one of its resources, and is not in its state. It looks where it reads, or plans, a resource anyway:
//
//	in the list of the resource's type, once for each provider: there may be what nothing declares any more
//	under the names of the resource's other generations: there may be what a replacement has left
//
// Nothing is changed. What is told may still be in the state of another stack, if it was moved there.

// mostListed bounds what is looked through of one type.
const mostListed = 10_000

// surveyed is what a survey knows of the stack; it is read once.
type surveyed struct {
	urns map[urn.URN]bool       // of the resources of plugins
	has  map[[2]string][]stored // by their packages and ids
	next map[string]int         // the generations of the next creates, by engine.Label
}

// stored is a resource of the state.
type stored struct {
	urn      urn.URN
	provider string // the reference of its provider
}

// stateOfSurvey returns what a survey compares with.
func (s *Steps) stateOfSurvey(ctx context.Context) (*surveyed, error) {
	s.surveying.Lock()
	defer s.surveying.Unlock()
	if s.surveyed != nil {
		return s.surveyed, nil
	}
	base, err := s.store.Checkpoint(ctx, s.update.StackName, s.base, s.request.Secrets)
	if err != nil {
		return nil, failure.Internal(err)
	}
	known := &surveyed{urns: map[urn.URN]bool{}, has: map[[2]string][]stored{}}
	for _, state := range base.States() {
		if state.Custom && !token.IsProvider(state.Type) {
			known.urns[state.URN] = true
			key := [2]string{string(token.Package(state.Type)), state.ID}
			known.has[key] = append(known.has[key], stored{state.URN, state.Provider})
		}
	}
	if known.next, err = s.store.Identities.Generations(ctx, s.update.StackName); err != nil {
		return nil, failure.Internal(err)
	}
	s.surveyed = known
	return known, nil
}

// with returns the resources of a type's package with an id: others call the type otherwise.
func (k *surveyed) with(t tokens.Type, id string) []stored {
	return k.has[[2]string{string(token.Package(t)), id}]
}

// generations returns the generations of a resource that may exist, the newest first.
func (k *surveyed) generations(u urn.URN) (all []int) {
	last := k.next[engine.Label(u)]
	if k.urns[u] {
		last = max(last, 1)
	}
	for g := last; g >= 0 && len(all) < engine.LookedAt; g-- {
		all = append(all, g)
	}
	return all
}

// survey looks for what the attempt's stack has left, near a resource with these inputs, as its provider has checked
// them.
func (at *attempt) survey(ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap) error {
	known, err := at.session.stateOfSurvey(ctx)
	if err != nil {
		return err
	}
	lists, why, err := at.lists(ctx, p, known, inputs)
	if err != nil {
		return err
	}
	for _, f := range lists {
		asked := [3]string{at.step.Provider.Ref, string(at.step.Type), f.Digest()}
		kept, _ := at.session.known.LoadOrStore(asked, newKnownValue())
		if _, err := kept.(*knownValue).get(ctx, func() (string, error) {
			switch {
			case why != "":
				at.notListed(ctx, why)
				return "", nil
			case f.From == "":
				return "", at.surveyList(ctx, p, known, f)
			}
			return "", at.surveyMarks(ctx, p, known, f)
		}); err != nil {
			return err
		}
	}
	if !known.urns[at.step.URN] { // looking before the create has done it
		return nil
	}
	return at.surveyNames(ctx, p, known, inputs)
}

// lists returns how the resource's type is listed: by its provider, which knows what is the stack's (without a "from"),
// or by a rule that says where marks are. A rule that finds one mark at a time is asked for that of each create of the
// resource. If the type is not listed, why says the reason.
func (at *attempt) lists(
	ctx context.Context, p *pluginhost.Provider, known *surveyed, inputs resource.PropertyMap,
) (lists []*lookup.Finder, why string, err error) {
	lists = []*lookup.Finder{{Rule: &settlerule.Rule{List: &settlerule.List{}, Items: mostListed}}}
	if at.session.rules.Declared(ctx, p, at.step.Type) != "" {
		return lists, "", nil
	}
	account, err := at.session.providers.Account(ctx, at.step.Provider)
	if err != nil {
		return nil, "", err
	}
	why = "no settle rule lists what bears marks"
	for _, set := range at.session.rules.Known(ctx, p, at.step.Type, account.CheckedVersion()) {
		for i := range set.Rules {
			rule := set.Rules[i]
			if rule.Mark.IsZero() || !rule.AppliesTo(set.Version) || rule.List == nil && rule.Invoke == nil {
				continue
			}
			found, err := at.listed(rule.WithoutMatch(), set.From, at.scope(ctx, p, account, inputs, set.Values), known)
			var missing *settlerule.MissingError
			if err == nil || !errors.As(err, &missing) {
				return found, "", err
			}
			why = missing.Error()
		}
	}
	return lists, why, nil
}

// listed returns the finders that list by a rule.
func (at *attempt) listed(
	rule *settlerule.Rule, from string, scope settlerule.Scope, known *surveyed,
) (lists []*lookup.Finder, err error) {
	marks := []string{""}
	if rule.NeedsMark() {
		marks = nil
		for _, g := range known.generations(at.step.URN) {
			marks = append(marks, at.session.rules.Mark(engine.SeedOf(at.session.identity.Seeds, at.step.URN, g)))
		}
	}
	for _, scope.Mark = range marks {
		f, err := lookup.NewFinder(rule, from, scope)
		if err != nil {
			return nil, err
		}
		lists = append(lists, f)
	}
	return lists, nil
}

// hides returns what hides the secrets of the step.
func (at *attempt) hides(ctx context.Context) failure.Redactor {
	return at.session.redactor(ctx, failure.BagsOf(at.step.Provider, at.step.New, at.step.Old)...)
}

// orphan tells of what exists, unless the state has it.
func (at *attempt) orphan(known *surveyed, id, why string, hide failure.Redactor) {
	if len(known.with(at.step.Type, id)) > 0 {
		return
	}
	at.session.tell(diag.Info, at.step.URN, deployments.Finding{Kind: deployments.FoundOrphan,
		Type: string(at.step.Type), ID: hide(id), Why: why}.String())
}

// surveyList tells what of the resource's type the provider lists as the stack's.
func (at *attempt) surveyList(ctx context.Context, p *pluginhost.Provider, known *surveyed, f *lookup.Finder) error {
	ids, err := pluginhost.Await(ctx, func() ([]string, error) { return at.pages(ctx, p, f) })
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	hide := at.hides(ctx)
	for _, id := range ids[:min(len(ids), mostListed)] {
		at.orphan(known, id, "it bears the stack's mark", hide)
	}
	switch {
	case failure.IsApplication(err):
		return err
	case err != nil:
		result, err := at.providerUnavailable(err)
		if err != nil {
			return err
		}
		at.notListed(ctx, result.Error)
	case len(ids) > mostListed:
		at.notListed(ctx, "there are too many")
	}
	return nil
}

// notListed tells that a type was not looked through, or not wholly.
func (at *attempt) notListed(ctx context.Context, why string) {
	at.session.tell(diag.Info, at.step.URN, deployments.Finding{Kind: deployments.NotListed,
		Type: string(at.step.Type), Why: at.hides(ctx)(why)}.String())
}

// surveyMarks looks among what a settle rule lists for marks of creates of the resources that the state has.
func (at *attempt) surveyMarks(ctx context.Context, p *pluginhost.Provider, known *surveyed, f *lookup.Finder) error {
	ids, err := at.candidates(ctx, p, f)
	if refused := (*refusedError)(nil); errors.As(err, &refused) {
		at.notListed(ctx, refused.text)
		return nil
	}
	if err != nil {
		return err
	}
	marks := at.session.marksOf(known)
	for _, id := range ids {
		found, _, ended, err := at.ask(ctx, p, id, nil, nil)
		if err != nil {
			return err
		}
		if ended != nil {
			at.notListed(ctx, id+": "+ended.Error)
			continue
		}
		if u := marks[f.Rule.Mark.Get(found.Outputs)]; u != "" {
			at.orphan(known, id, "it bears the mark of a create of "+snapshot.NameOf(u), at.hides(ctx))
		}
	}
	return nil
}

// marksOf returns the marks of creates that the stack has, or may have, made, with their resources.
func (s *Steps) marksOf(known *surveyed) map[string]urn.URN {
	marks := map[string]urn.URN{}
	for u := range known.urns {
		for _, g := range known.generations(u) {
			marks[s.rules.Mark(engine.SeedOf(s.identity.Seeds, u, g))] = u
		}
	}
	return marks
}

// surveyNames tells what exists under the names that other creates of the resource have generated.
func (at *attempt) surveyNames(
	ctx context.Context, p *pluginhost.Provider, known *surveyed, inputs resource.PropertyMap,
) error {
	generations := known.generations(at.step.URN)
	without, own, err := at.generatedIn(ctx, p, inputs, generations)
	if err != nil || own < 0 {
		return err
	}
	bag, err := at.session.values.Encode(ctx, without)
	if err != nil {
		return failure.Internal(err)
	}
	for _, g := range generations {
		if g == own {
			continue
		}
		found, err := at.otherCreate(ctx, p, known, bag, g)
		if err != nil {
			return err
		}
		if found != nil && !found.Foreign {
			at.orphan(known, found.ID, "an earlier or lost create of "+snapshot.NameOf(at.step.URN)+" has made it",
				at.hides(ctx))
		}
	}
	return nil
}

// otherCreate looks for what the create of a generation has made, with these declared inputs, and the state has not.
func (at *attempt) otherCreate(
	ctx context.Context, p *pluginhost.Provider, known *surveyed, declared engine.Bag, generation int,
) (*engine.Found, error) {
	tried := at.under(engine.SeedOf(at.session.identity.Seeds, at.step.URN, generation))
	defer func() {
		if tried.views != nil {
			tried.views.Close()
		}
	}()
	tried.step.Kind, tried.step.Look = engine.StepCreate, &engine.Look{TakeOver: true}
	tried.step.New = &engine.State{URN: at.step.URN, Type: at.step.Type, Inputs: declared}
	inputs, _, ended, err := tried.inputs(ctx, p)
	if err != nil || ended != nil || inputs.ContainsUnknowns() {
		return nil, err
	}
	found, err := tried.exists(ctx, p, inputs)
	if unseen := (*lookError)(nil); errors.As(err, &unseen) {
		at.notListed(ctx, unseen.text)
		return nil, nil
	}
	if err != nil || len(known.with(at.step.Type, tried.realID)) > 0 {
		return nil, err
	}
	return found, nil
}

// generatedIn returns inputs without those texts that were generated for a create of the resource, and the generation
// of that create; -1 if nothing was generated.
func (at *attempt) generatedIn(
	ctx context.Context, p *pluginhost.Provider, inputs resource.PropertyMap, generations []int,
) (without resource.PropertyMap, own int, err error) {
	without, own = inputs.Copy(), -1
	delete(without, defaultsKey)
	for _, key := range inputs.StableKeys() {
		value := inputs[key]
		if !value.IsString() || value.StringValue() == "" || key == defaultsKey {
			continue
		}
		declared := without.Copy()
		delete(declared, key)
		i := slices.IndexFunc(generations, func(g int) bool {
			resp, checkErr := at.checkWith(ctx, p, declared, engine.SeedOf(at.session.identity.Seeds, at.step.URN, g))
			if checkErr != nil && hosted.IsTransient(checkErr) {
				err = checkErr
			}
			got := resp.Properties[key]
			return err == nil && checkErr == nil && len(resp.Failures) == 0 && got.IsString() &&
				got.StringValue() == value.StringValue()
		})
		if err != nil {
			_, err = at.providerUnavailable(err)
			return nil, -1, err
		}
		if i >= 0 && !at.isDefault(ctx, p, declared, key, value) {
			without, own = declared, generations[i]
		}
	}
	return without, own, nil
}

// isDefault reports whether an input comes out the same whatever the seed is.
func (at *attempt) isDefault(
	ctx context.Context, p *pluginhost.Provider, declared resource.PropertyMap, key resource.PropertyKey,
	value resource.PropertyValue,
) bool {
	resp, err := at.checkWith(ctx, p, declared, []byte("another seed, of no create"))
	return err != nil || resp.Properties[key].DeepEquals(value)
}
