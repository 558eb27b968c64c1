package step

import (
	"cmp"
	"context"

	"github.com/deployctl/deployctl/internal/host/compare"
	"github.com/deployctl/deployctl/internal/host/lookup"
	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
	"github.com/deployctl/deployctl/internal/settle/settlerule"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// markIn returns the mark of this create, if its inputs have it; "" if not.
func (at *attempt) markIn(place settlerule.Mark, inputs resource.PropertyMap) string {
	mark := at.mark()
	if place.IsZero() || mark == "" || place.Get(inputs) != mark {
		return ""
	}
	return mark
}

// mark returns the mark of this create: that which an attempt has noted, or else its own.
func (at *attempt) mark() string { return cmp.Or(at.noted.Text, at.session.rules.Mark(at.step.Seed)) }

// readMark reads which mark an attempt of this create has noted, also one of an earlier update.
func (at *attempt) readMark(ctx context.Context) (err error) {
	if len(at.step.Seed) > 0 {
		at.noted, err = at.session.store.Creates.NotedMark(ctx, at.session.update.StackName, at.step.Seed)
	}
	return err
}

// beginMark returns the inputs to create with: with the mark that an earlier attempt has noted, or with a new one if
// the stack asks for marks.
func (at *attempt) beginMark(
	ctx context.Context, p compare.Provider, declared resource.PropertyMap,
) (resource.PropertyMap, error) {
	all := at.session.rules.OfMarks(ctx, p, at.step.Provider, at.step.Type)
	if !lookup.NamesPlace(all) {
		return declared, nil
	}
	if !at.step.Preview {
		if err := at.readMark(ctx); err != nil {
			return nil, err
		}
	}
	at.place = lookup.MarkPlace(all)
	switch {
	case !at.step.Check, at.place.IsZero(): // its plan has put the mark, or none can be put
	case at.noted.Text != "" || at.step.Adopt:
		return at.notedMark(declared), nil
	case at.session.own.Marks:
		return lookup.PutMark(at.place, declared, at.mark()), nil
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
	return lookup.PutMark(place, declared, at.noted.Text)
}

// unsent reports whether the lost attempts of a create have certainly not called its provider: this update has begun
// the create and asks for marks, one can be put into these declared inputs, and none was noted, which comes before a
// call.
func (at *attempt) unsent(ctx context.Context, p *pluginhost.Provider, declared resource.PropertyMap) (bool, error) {
	s := at.session
	if !s.own.Marks || at.step.Adopt || at.noted.Text != "" || at.step.Since == 0 || at.step.Since != s.update.Number() {
		return false, nil
	}
	place := lookup.MarkPlace(s.rules.OfMarks(ctx, p, at.step.Provider, at.step.Type))
	if place.IsZero() {
		return false, nil
	}
	if !at.step.Check { // its plan has put the mark
		return at.markIn(place, declared) != "", nil
	}
	resp, err := at.checkWith(ctx, p, lookup.PutMark(place, declared, at.mark()), at.step.Seed)
	return err == nil && at.markIn(place, resp.Properties) != "", err
}

// noteMark records which mark a create has, before the call: a lost create is sought by a mark only if it had one.
func (at *attempt) noteMark(ctx context.Context, inputs resource.PropertyMap) error {
	if at.step.Preview || len(at.step.Seed) == 0 {
		return nil
	}
	has := creates.Mark{}
	for _, place := range []string{at.noted.Place, at.place.String()} {
		if m, err := settlerule.ParseMark(place); err == nil && has.Text == "" && at.markIn(m, inputs) != "" {
			has = creates.Mark{Place: place, Text: at.mark()}
		}
	}
	if has == at.noted {
		return nil
	}
	return at.session.store.Creates.NoteMark(ctx, at.session.update.StackName, at.step.Seed, has)
}
