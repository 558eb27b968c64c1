package activities

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"regexp"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/tokens"
)

// A mark is a tag, a label or an annotation that a resource gets at its creation, where a settle rule of its type says,
// if the stack asks for it. It is unlike the mark of every other create, so what bears it is what this
// create has made. It is part of the inputs from then on: the inputs of every later update get it from the state, so
// that no comparison finds a difference. What exists without a mark never gets one.

// aMark has the form of marks. Labels of all clouds may have such a value.
var aMark = regexp.MustCompile(`^[0-9a-f]{32}$`)

// mark returns the mark of the create with a seed; "" without one.
// The URN is no part of it: a rename of the stack changes it, and the seed is of one create alone.
func (s *session) mark(seed []byte) string {
	if len(seed) == 0 {
		return ""
	}
	key, stack := s.identity.Marks, "" // which outlive the state
	if s.identity.Text == "" {
		key, stack = s.values.Key, s.stackID
	}
	sum := hmac.New(sha256.New, key)
	for _, part := range []string{"mark", stack, string(seed)} {
		_, _ = sum.Write(append([]byte(part), 0))
	}
	return hex.EncodeToString(sum.Sum(nil)[:16])
}

// markPlace returns where new resources of a type bear their marks, by the first rule that says it.
func markPlace(all []known) settlerule.Mark {
	return firstPlace(all, func(set known, r *settlerule.Rule) bool { return r.AppliesTo(set.version) })
}

// placeIn returns where existing inputs bear their mark. They bear it still if the rule is none for this version of the
// plugin.
func placeIn(all []known, olds resource.PropertyMap) settlerule.Mark {
	return firstPlace(all, func(_ known, r *settlerule.Rule) bool { return aMark.MatchString(r.Mark.Get(olds)) })
}

func firstPlace(all []known, is func(known, *settlerule.Rule) bool) settlerule.Mark {
	for _, set := range all {
		for i := range set.Rules {
			if r := &set.Rules[i]; !r.Mark.IsZero() && is(set, r) {
				return r.Mark
			}
		}
	}
	return settlerule.Mark{}
}

// rulesOfMarks returns the rules of a type; nil for what is no resource of a plugin. If its account is not known, there
// are none: the call that needs the account says so.
func (s *session) rulesOfMarks(
	ctx context.Context, p resourceProvider, provider *engine.Provider, t tokens.Type,
) []known {
	plugin, ok := p.(*pluginhost.Provider)
	if !ok || provider == nil {
		return nil
	}
	account, err := s.providers.accountOf(ctx, provider)
	if err != nil {
		return nil
	}
	return s.knownRules(ctx, plugin, t, account.checkedVersion())
}

// withMark returns the declared inputs of a resource with its mark: that of the inputs which it had before, or, of a
// create, a new one. Inputs that have no place for it stay as they are.
func (s *session) withMark(
	ctx context.Context, p resourceProvider, provider *engine.Provider, t tokens.Type, seed []byte,
	declared, olds resource.PropertyMap,
) resource.PropertyMap {
	if olds == nil && !s.own.Marks || olds != nil && !mayBear(resource.NewProperty(olds), markDepth) {
		return declared
	}
	all := s.rulesOfMarks(ctx, p, provider, t)
	if olds != nil {
		place := placeIn(all, olds)
		return putMark(place, declared, place.Get(olds))
	}
	return putMark(markPlace(all), declared, s.mark(seed))
}

func putMark(place settlerule.Mark, declared resource.PropertyMap, mark string) resource.PropertyMap {
	if place.IsZero() || !aMark.MatchString(mark) {
		return declared
	}
	marked, _ := place.Put(declared, mark)
	return marked
}

// markDepth is how deep below a resource's inputs a mark may be.
const markDepth = 6

// mayBear reports whether something in a value has the form of a mark: only then it is worth to ask which place the
// rules name.
func mayBear(v resource.PropertyValue, depth int) bool {
	switch {
	case v.IsString():
		return len(v.StringValue()) == 32 && aMark.MatchString(v.StringValue())
	case depth == 0:
	case v.IsObject():
		for _, below := range v.ObjectValue() {
			if mayBear(below, depth-1) {
				return true
			}
		}
	case v.IsArray():
		return slices.ContainsFunc(v.ArrayValue(), func(item resource.PropertyValue) bool { return mayBear(item, depth-1) })
	}
	return false
}

// markIn returns the mark of this create, if its inputs have it; "" if not.
func (at *attempt) markIn(place settlerule.Mark, inputs resource.PropertyMap) string {
	mark := at.mark()
	if place.IsZero() || mark == "" || place.Get(inputs) != mark {
		return ""
	}
	return mark
}

// mark returns the mark of this create: that which an attempt has noted, or else its own.
func (at *attempt) mark() string { return cmp.Or(at.noted.Text, at.session.mark(at.step.Seed)) }

// readMark reads which mark an attempt of this create has noted, also one of an earlier update.
func (at *attempt) readMark(ctx context.Context) (err error) {
	if len(at.step.Seed) > 0 {
		at.noted, err = at.session.store.NotedMark(ctx, at.session.update.StackName, at.step.Seed)
	}
	return err
}

// beginMark returns the inputs to create with: with the mark that an earlier attempt has noted, or with a new one if
// the stack asks for marks.
func (at *attempt) beginMark(
	ctx context.Context, p resourceProvider, declared resource.PropertyMap,
) (resource.PropertyMap, error) {
	all := at.session.rulesOfMarks(ctx, p, at.step.Provider, at.step.Type)
	if firstPlace(all, func(known, *settlerule.Rule) bool { return true }).IsZero() {
		return declared, nil
	}
	if !at.step.Preview {
		if err := at.readMark(ctx); err != nil {
			return nil, err
		}
	}
	at.place = markPlace(all)
	switch {
	case !at.step.Check, at.place.IsZero(): // its plan has put the mark, or none can be put
	case at.noted.Text != "" || at.step.Adopt:
		return at.notedMark(declared), nil
	case at.session.own.Marks:
		return putMark(at.place, declared, at.mark()), nil
	}
	return declared, nil
}

// notedMark returns the inputs of a create as its last attempt has sent them: with the mark that it has noted. Without
// a note it had none, or an earlier version of the service sent it, and what it made cannot be found by a mark.
func (at *attempt) notedMark(declared resource.PropertyMap) resource.PropertyMap {
	place, err := settlerule.ParseMark(at.noted.Place)
	if err != nil {
		return declared
	}
	return putMark(place, declared, at.noted.Text)
}

// unsent reports whether the lost attempts of a create have certainly not called its provider: this update has begun
// the create and asks for marks, one can be put into these declared inputs, and none was noted, which comes before a
// call.
func (at *attempt) unsent(ctx context.Context, p *pluginhost.Provider, declared resource.PropertyMap) (bool, error) {
	s := at.session
	if !s.own.Marks || at.step.Adopt || at.noted.Text != "" || at.step.Since == 0 || at.step.Since != s.update.Number() {
		return false, nil
	}
	place := markPlace(s.rulesOfMarks(ctx, p, at.step.Provider, at.step.Type))
	if place.IsZero() {
		return false, nil
	}
	if !at.step.Check { // its plan has put the mark
		return at.markIn(place, declared) != "", nil
	}
	resp, err := at.checkWith(ctx, p, putMark(place, declared, at.mark()), at.step.Seed)
	return err == nil && at.markIn(place, resp.Properties) != "", err
}

// noteMark records which mark a create has, before the call: a lost create is sought by a mark only if it had one.
func (at *attempt) noteMark(ctx context.Context, inputs resource.PropertyMap) error {
	if at.step.Preview || len(at.step.Seed) == 0 {
		return nil
	}
	has := statestore.CreateMark{}
	for _, place := range []string{at.noted.Place, at.place.String()} {
		if m, err := settlerule.ParseMark(place); err == nil && has.Text == "" && at.markIn(m, inputs) != "" {
			has = statestore.CreateMark{Place: place, Text: at.mark()}
		}
	}
	if has == at.noted {
		return nil
	}
	return at.session.store.NoteMark(ctx, at.session.update.StackName, at.step.Seed, has)
}
