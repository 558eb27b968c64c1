package providertest

import (
	"errors"
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/provider"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/structpb"
)

// created starts a service with a resource of the case's inputs, with others in their place.
func (l *life) created(others Inputs) (*world, existing, error) {
	w, err := l.world()
	if err != nil {
		return nil, existing{}, err
	}
	st, err := w.bring(existing{}, l.Inputs.over(others))
	return w, st, err
}

// end returns what a service has in which nothing but a create of such inputs has happened.
func (l *life) end(in Inputs, generation int) (map[string]any, error) {
	w, err := l.world()
	if err != nil {
		return nil, err
	}
	_, err = w.bring(existing{generation: generation}, in)
	return w.Things(), err
}

// undisturbedLife creates, updates, replaces and deletes a resource, as the other checks do with disturbances.
func undisturbedLife(l *life) error {
	w, err := l.world()
	if err != nil {
		return err
	}
	empty := w.Things()
	st, err := w.bring(existing{}, l.Inputs)
	if err != nil {
		return err
	}
	if same(w.Things(), empty) == nil {
		return errors.New("a create changes nothing that Things of the Setup shows: Things must tell all that the service " +
			"has")
	}
	if len(l.Change) > 0 {
		if st, err = w.updated(st); err != nil {
			return err
		}
	}
	if len(l.Replace) > 0 {
		if st, err = w.replaced(st); err != nil {
			return err
		}
	}
	if err := w.remove(st); err != nil {
		return err
	}
	if left := same(w.Things(), empty); left != nil {
		return faultf("delete", "after the delete the service does not have what it had before the create: %w", left)
	}
	if err := w.remove(st); err != nil {
		return faultf("delete", "a delete of what is gone already fails: it must succeed. %w", err)
	}
	return nil
}

// updated updates all properties of Change.
func (w *world) updated(st existing) (existing, error) {
	in := w.Inputs.over(w.Change)
	checked, err := w.check(in, st.inputs, st.generation)
	if err != nil {
		return st, err
	}
	d, err := w.diff(st, checked)
	switch {
	case err != nil:
		return st, err
	case len(d.GetReplaces()) > 0:
		return st, fmt.Errorf("of the properties of Change, %v replace the resource: name them in Replace", d.GetReplaces())
	case d.GetChanges() != pulumirpc.DiffResponse_DIFF_SOME:
		return st, errors.New("Change changes nothing, as Diff says: give other values than those of Inputs")
	}
	next, err := w.bring(st, in)
	if err != nil {
		return next, err
	}
	want, err := w.end(in, 0)
	if err != nil {
		return next, err
	}
	if wrong := same(w.Things(), want); wrong != nil {
		return next, faultf("reconcile", "an update does not come to what a create of the same inputs makes: %w", wrong)
	}
	before, after := st.outputs.GetFields(), next.outputs.GetFields()
	for _, name := range d.GetStables() {
		if !proto.Equal(before[name], after[name]) {
			return next, faultf("inputs-and-outputs", "the output %q is declared stable, or repeats an input that replaces, "+
				"and an update changes it", name)
		}
	}
	return next, nil
}

// replaced replaces the resource.
func (w *world) replaced(st existing) (existing, error) {
	in := w.Inputs.over(w.Change).over(w.Replace)
	next, err := w.bring(st, in)
	if err != nil {
		return next, err
	}
	if next.generation == st.generation {
		return next, errors.New("Replace does not replace the resource, as Diff says: name properties with the option " +
			"replace")
	}
	want, err := w.end(in, next.generation)
	if err != nil {
		return next, err
	}
	if wrong := same(w.Things(), want); wrong != nil {
		return next, faultf("replacements", "a replacement does not come to what a create of the same inputs makes: "+
			"%w. If old and new have one name, or are known by one mark, Diff must ask for DeleteFirst", wrong)
	}
	return next, nil
}

// unchanged compares a resource with what the same program declares again, and with what is read.
func unchanged(l *life) error {
	w, st, err := l.created(nil)
	if err != nil {
		return err
	}
	again, err := w.check(l.Inputs, st.inputs, 0)
	if err != nil {
		return err
	}
	d, err := w.diff(st, again)
	if err != nil {
		return err
	}
	if d.GetChanges() != pulumirpc.DiffResponse_DIFF_NONE {
		return faultf("optional-methods", "a program that has not changed would change %v with each update", d.GetDiffs())
	}
	found, err := w.owned(st)
	if err != nil {
		return err
	}
	if changed, err := w.differs(found, again); err != nil || len(changed) > 0 {
		return errors.Join(err, l.readFault("inputs", changed))
	}
	var changed []string
	for name, v := range st.outputs.GetFields() {
		if !proto.Equal(v, found.outputs.GetFields()[name]) && !slices.Contains(l.Unseen, name) {
			changed = append(changed, name)
		}
	}
	return l.readFault("outputs", changed)
}

func (l *life) readFault(what string, changed []string) error {
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	return faultf("optional-methods", "Read, right after a create, returns other %s: %q. If the service does not tell "+
		"them, Read must return what is remembered; what cannot be compared is named in Unseen", what, changed)
}

// owned reads a resource, which must be there and be ours.
func (w *world) owned(st existing) (existing, error) {
	ownership, found, err := w.look(st)
	switch {
	case err != nil:
		return found, err
	case ownership == provider.Undecidable:
		return found, faultf("optional-methods", "Read does not say whether the resource exists, or the type has no Read: "+
			"refresh and import do not work, and nothing is looked for before it is created")
	case ownership != provider.Owned:
		return found, faultf("optional-methods", "Read says %q of a resource that this stack has made: it must say Owned",
			ownership)
	}
	return found, nil
}

// differs returns the inputs that an update of what was found would change, but for those that Read cannot see.
func (w *world) differs(found existing, news *structpb.Struct) ([]string, error) {
	d, err := w.diff(found, news)
	return slices.DeleteFunc(d.GetDiffs(), func(name string) bool { return slices.Contains(w.Unseen, name) }), err
}

// preview compares what a preview says with what comes of it.
func preview(l *life) error {
	w, err := l.world()
	if err != nil {
		return err
	}
	before := w.Things()
	checked, err := w.check(l.Inputs, nil, 0)
	if err != nil {
		return err
	}
	foreseen, err := call(w, w.process, w.Create, &pulumirpc.CreateRequest{Urn: w.urn(), Properties: checked,
		Preview: true})
	if err != nil {
		return fmt.Errorf("a preview of the create fails: %w", err)
	}
	w.leak.bag("the outputs of a preview", foreseen.GetProperties())
	if wrong := same(w.Things(), before); wrong != nil {
		return faultf("optional-methods", "a preview has made something: %w", wrong)
	}
	st, err := w.create(checked, 0)
	if err != nil {
		return err
	}
	return l.foretold(foreseen.GetProperties(), st.outputs)
}

// foretold compares outputs of a preview with what they have become.
func (l *life) foretold(foreseen, became *structpb.Struct) error {
	outputs, err := unwire(foreseen)
	if err != nil {
		return err
	}
	real, err := unwire(became)
	if err != nil {
		return err
	}
	for _, name := range outputs.StableKeys() {
		v := outputs[name]
		if !v.ContainsUnknowns() && !secretless(v).DeepEquals(secretless(real[name])) {
			return faultf("optional-methods", "a preview says that the output %q will be %v, and it becomes %v: leave in "+
				"Preview zero what is not known", name, v, real[name])
		}
	}
	return nil
}

// lostState forgets the resource, and finds it again.
func lostState(l *life) error {
	w, st, err := l.created(nil)
	if err != nil {
		return err
	}
	before := w.Things()
	ownership, found, err := w.look(existing{inputs: st.inputs})
	switch {
	case err != nil:
		return err
	case ownership != provider.Owned || found.id != st.id:
		return faultf("optional-methods", "the state was lost, and Read without an id says %q with the id %q of what this "+
			"stack has made as %q: it must find it by its inputs and say Owned", ownership, found.id, st.id)
	}
	if found, err = w.owned(existing{id: st.id, inputs: st.inputs}); err != nil {
		return err
	}
	if changed, err := w.differs(found, st.inputs); err != nil || len(changed) > 0 {
		return errors.Join(err, l.readFault("inputs than the program's, when nothing is remembered", changed))
	}
	rule, err := w.settling()
	if err != nil || rule == provider.SettleByRead { // it is not sent twice
		return err
	}
	if _, err := w.create(st.inputs, 0); err != nil {
		return faultf("reconcile", "a create is made again, and fails: look at what exists first, and go on from there. "+
			"%w", err)
	}
	if wrong := same(w.Things(), before); wrong != nil {
		return faultf("reconcile", "a create that is made again leaves something else than the first: %w", wrong)
	}
	return nil
}
