package providertest

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/types/known/structpb"
)

// changedOutside changes each property of Change by another process, and repairs it: after a refresh, and without one.
func changedOutside(l *life) error {
	for _, name := range slices.Sorted(maps.Keys(l.Change)) {
		if slices.Contains(l.Unseen, name) {
			continue
		}
		if err := l.changedOutside(name); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) changedOutside(name string) error {
	w, st, err := l.created(nil)
	if err != nil {
		return err
	}
	before, changes := w.Things(), l.Inputs.over(Inputs{name: l.Change[name]})
	somebody, err := w.beside(own)
	if err != nil {
		return err
	}
	changed, err := somebody.bring(st, changes)
	if err != nil {
		return err
	}
	if same(w.Things(), before) == nil {
		return faultf("reconcile", "an update of the property %q changes nothing that Things shows: Reconcile does not "+
			"write it. If only the state has it, name it in Unseen", name)
	}
	found, err := w.owned(st)
	if err != nil {
		return err
	}
	d, err := w.diff(found, st.inputs)
	if err != nil {
		return err
	}
	if !slices.Contains(d.GetDiffs(), name) {
		return faultf("optional-methods", "the property %q was changed from outside, and Read does not see it: Inputs of "+
			"what it has Found must be what the service has. If the service does not tell, name it in Unseen", name)
	}
	back, err := w.bring(found, l.Inputs)
	if err != nil {
		return err
	}
	if wrong := same(w.Things(), before); wrong != nil {
		return faultf("reconcile", "the property %q was changed from outside, and the update after a refresh does not "+
			"repair it: %w",
			name, wrong)
	}
	changed.outputs = back.outputs
	if _, err := somebody.update(back, changed.inputs); err != nil {
		return err
	}
	if _, err := w.update(back, back.inputs); err != nil {
		return err
	}
	if wrong := same(w.Things(), before); wrong != nil {
		return faultf("reconcile", "the property %q was changed from outside, and `up --force`, an update whose inputs "+
			"have not changed, does not repair it: compare what is declared with what the service has, not with Olds: %w",
			name, wrong)
	}
	return nil
}

// deletedOutside deletes a resource by another process, and makes it again.
func deletedOutside(l *life) error {
	w, st, err := l.created(nil)
	if err != nil {
		return err
	}
	before := w.Things()
	somebody, err := w.beside(own)
	if err != nil {
		return err
	}
	if err := somebody.remove(st); err != nil {
		return err
	}
	ownership, found, err := w.look(st)
	switch {
	case err != nil:
		return fmt.Errorf("of what was deleted from outside: %w", err)
	case ownership != provider.Absent || found.id != "":
		return faultf("optional-methods", "it was deleted from outside, and Read says %q: it must say Absent", ownership)
	}
	if _, err := w.bring(existing{}, l.Inputs); err != nil {
		return fmt.Errorf("after it was deleted from outside: %w", err)
	}
	if wrong := same(w.Things(), before); wrong != nil {
		return faultf("reconcile", "it was deleted from outside, and the next create makes something else: %w", wrong)
	}
	if err := somebody.remove(st); err != nil {
		return err
	}
	if _, err := w.update(st, st.inputs); err == nil {
		if wrong := same(w.Things(), before); wrong != nil {
			return faultf("reconcile", "it was deleted from outside, and an update of it succeeds without making it again: "+
				"%w", wrong)
		}
	}
	if err := somebody.remove(st); err != nil {
		return err
	}
	if err := w.remove(st); err != nil {
		return faultf("delete", "a delete of what was deleted from outside fails: it must succeed. %w", err)
	}
	return nil
}

// foreignThing puts what another stack has made in the way of a create, and what was made by hand.
func foreignThing(l *life) error {
	if err := l.foreignThing("another stack's", func(w *world, checked *structpb.Struct) error {
		theirs, err := w.beside(other)
		if err != nil {
			return err
		}
		in, err := given(checked, l.Change)
		if err != nil {
			return err
		}
		_, err = theirs.bring(existing{}, in)
		return err
	}); err != nil {
		return err
	}
	return l.foreignThing("a hand-made", func(w *world, checked *structpb.Struct) error {
		if w.Unmarked == nil {
			return errNone
		}
		in, err := given(checked, nil)
		bag := resource.PropertyMap{}
		for name, v := range in.bag() {
			bag[name] = secretless(v)
		}
		w.Unmarked(bag)
		return err
	})
}

// errNone is that there is nothing to be in the way.
var errNone = errors.New("none")

func (l *life) foreignThing(whose string, make func(*world, *structpb.Struct) error) error {
	w, err := l.world()
	if err != nil {
		return err
	}
	checked, err := w.check(l.Inputs, nil, 0)
	if err != nil {
		return err
	}
	if err := make(w, checked); errors.Is(err, errNone) {
		return nil
	} else if err != nil {
		return err
	}
	before := w.Things()
	ownership, found, err := w.look(existing{inputs: checked})
	if err != nil {
		return err
	}
	switch {
	case l.Shared:
		return w.share(whose, ownership, checked)
	case l.Unnamed:
		return w.ignore(whose, ownership, checked, before)
	case ownership != provider.Unowned:
		return faultf("optional-methods", "%s thing is in the way of a create, and Read without an id says %q: it must "+
			"find it by the inputs and say Unowned. If the service gives the ids, and nothing in it is unique, set Unnamed "+
			"in the Case", whose, ownership)
	}
	_, err = call(w, w.process, w.Create, &pulumirpc.CreateRequest{Urn: w.urn(), Properties: checked})
	if wrong := same(w.Things(), before); wrong != nil {
		return faultf("reconcile", "%s thing is in the way of a create, and the create changes it: compare its mark with "+
			"Owner, and return provider.Foreign: %w", whose, wrong)
	}
	if !isForeign(err) {
		return faultf("errors", "%s thing is in the way of a create, which must fail with provider.Foreign: it ends with "+
			"the error: %w",
			whose, err)
	}
	return w.adopt(whose, found.id, checked)
}

// ignore makes a thing beside another owner's, of a type that has no names.
func (w *world) ignore(
	whose string, ownership provider.Ownership, checked *structpb.Struct, before map[string]any,
) error {
	if ownership != provider.Absent {
		return faultf("optional-methods", "%s thing exists, of a type that is Unnamed, and Read without an id says %q: it "+
			"must say Absent of what has not its mark", whose, ownership)
	}
	if _, err := w.create(checked, 0); err != nil {
		return faultf("reconcile", "%s thing exists, of a type that is Unnamed, and the create fails: %w", whose, err)
	}
	if wrong := spared(w.Things(), before); wrong != nil {
		return faultf("reconcile", "%s thing exists, and a create changes it: %w", whose, wrong)
	}
	return nil
}

// share makes what is there already, of a type that whoever declares it has.
func (w *world) share(whose string, ownership provider.Ownership, checked *structpb.Struct) error {
	if ownership != provider.Owned {
		return faultf("optional-methods", "%s thing is what a create would make, of a type that is Shared, and Read without "+
			"an id says %q: it must say Owned", whose, ownership)
	}
	if _, err := w.create(checked, 0); err != nil {
		return faultf("reconcile", "%s thing is what a create would make, of a type that is Shared, and the create fails: "+
			"%w", whose, err)
	}
	want, err := w.end(w.Inputs, 0)
	if err != nil {
		return err
	}
	if wrong := same(w.Things(), want); wrong != nil {
		return faultf("reconcile", "%s thing is what a create would make, of a type that is Shared, and the create does not "+
			"come to what is declared: %w", whose, wrong)
	}
	return nil
}

// adopt takes a thing over, as --adopt does: it is imported, and updated.
func (w *world) adopt(whose, id string, checked *structpb.Struct) error {
	_, imported, err := w.look(existing{id: id, inputs: checked})
	if err != nil {
		return err
	}
	if imported.id == "" {
		return faultf("optional-methods", "Read does not find %s thing by the id %q that it has returned", whose, id)
	}
	next, err := w.check(w.Inputs, imported.inputs, 0)
	if err != nil {
		return err
	}
	st, err := w.update(imported, next)
	if err != nil {
		return fmt.Errorf("%s thing is taken over with --adopt, an update with its id: %w", whose, err)
	}
	if _, err := w.owned(st); err != nil {
		return fmt.Errorf("%s thing was taken over with --adopt: Reconcile must mark what has its id: %w", whose, err)
	}
	want, err := w.end(w.Inputs, 0)
	if err != nil {
		return err
	}
	if wrong := same(w.Things(), want); wrong != nil {
		return faultf("reconcile", "%s thing was taken over with --adopt, and is not as declared: %w", whose, wrong)
	}
	return nil
}
