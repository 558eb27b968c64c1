package modeltest

import (
	"fmt"
	"slices"

	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// check compares the end of an update with the model and the cloud.
func (d *driver) check(states []engine.State, pending []engine.PendingOperation) error {
	if err := d.cloud.leaks(states, pending); err != nil {
		return err
	}
	again, _ := d.replayed.States()
	if fmt.Sprint(headers(again)) != fmt.Sprint(headers(states)) {
		return fmt.Errorf("the deltas lead to\n%v\nnot to\n%v", headers(again), headers(states))
	}
	res, _ := d.run.Result()
	if d.failed {
		if res.Status == engine.StatusSucceeded {
			return fmt.Errorf("it succeeded in spite of a failure")
		}
		return nil
	}
	if res.Status != engine.StatusSucceeded || res.Pending != 0 {
		return fmt.Errorf("it ended %+v", res)
	}
	if d.goal.Kind != engine.KindUp {
		return d.checkKind(states)
	}
	now := map[int]engine.State{}
	for _, s := range states {
		if !s.Delete {
			now[numberOf(s.URN)] = s
		}
	}
	if d.restricted() {
		return d.checkRestricted(now)
	}
	if len(states) != len(d.registered) {
		return fmt.Errorf("%d resources are there, %d were declared", len(states), len(d.registered))
	}
	want := expected(d.world, d.registered)
	for _, r := range d.registered {
		s, ok := now[r.number]
		if !ok {
			return fmt.Errorf("%s is missing", r.urn())
		}
		if err := d.declared(s, r); err != nil {
			return fmt.Errorf("%s: %w", s.URN, err)
		}
		if err := d.identity(s, want[s.URN], now); err != nil {
			return fmt.Errorf("%s: %w", s.URN, err)
		}
	}
	return nil
}

// checkKind compares the end of an update without a program: a destroy leaves nothing, a refresh what the world holds.
func (d *driver) checkKind(states []engine.State) error {
	want := d.world
	if d.goal.Kind == engine.KindDestroy {
		want = nil
	}
	if d.goal.Kind == engine.KindRefresh && len(d.pending) > 0 {
		return nil // it may have taken over what an earlier update had created; the cloud has been compared
	}
	if got := headers(states); fmt.Sprint(plain(got)) != fmt.Sprint(plain(headers(want))) {
		return fmt.Errorf("it should leave\n%v\nnot\n%v", headers(want), got)
	}
	return nil
}

// restricted reports that the update leaves resources alone.
func (d *driver) restricted() bool { return len(d.goal.Targets)+len(d.goal.Excludes) > 0 }

// selected reports that a resource takes part in a restricted update.
func (d *driver) selected(u urn.URN) bool {
	if len(d.goal.Excludes) > 0 {
		return !slices.Contains(d.goal.Excludes, string(u))
	}
	return slices.Contains(d.goal.Targets, string(u))
}

// checkRestricted compares the end of a restricted update: what takes part is what the program declares, everything
// else is what it was, but for what was deleted before a target was replaced.
func (d *driver) checkRestricted(now map[int]engine.State) error {
	for _, r := range d.registered {
		if !d.selected(r.urn()) {
			continue
		}
		if err := d.declared(now[r.number], r); err != nil {
			return fmt.Errorf("%s: %w", r.urn(), err)
		}
		if err := d.identity(now[r.number], "", now); err != nil {
			return fmt.Errorf("%s: %w", r.urn(), err)
		}
	}
	swept := d.swept(now)
	for _, old := range d.world {
		if d.switched || d.undecided(numberOf(old.URN)) { // it was a target by another name, or has been taken over
			continue
		}
		s := now[numberOf(old.URN)]
		if !d.selected(old.URN) && !d.selected(s.URN) && !old.Delete && !swept[numberOf(old.URN)] &&
			(s.URN != old.URN || s.ID != old.ID || s.Inputs.Digest != old.Inputs.Digest) {
			return fmt.Errorf("%s is left alone, but has become %s, %s with %q", old.URN, s.URN, s.ID, s.Inputs.Digest)
		}
	}
	return nil
}

// declared compares what is stored with what the program's last start declared, was told, and finds in the cloud.
func (d *driver) declared(s engine.State, r declared) error {
	g := d.registration(r)
	inTheCloud := d.cloud.objects[s.ID].inputs
	switch {
	case s.URN != r.urn() || s.Delete || s.PendingReplacement || len(s.InitErrors) > 0:
		return fmt.Errorf("it is stored as %s, delete=%v pending=%v %v", s.URN, s.Delete, s.PendingReplacement,
			s.InitErrors)
	case s.ID != d.ids[r.number]:
		return fmt.Errorf("it has the id %s, the program was told %s", s.ID, d.ids[r.number])
	case s.Inputs.Digest != g.Inputs.Digest || s.Outputs.Digest != g.Inputs.Digest || inTheCloud != g.Inputs.Digest:
		return fmt.Errorf("its inputs are %q and its outputs %q, in the cloud it has %q; the program declared %q",
			s.Inputs.Digest, s.Outputs.Digest, inTheCloud, g.Inputs.Digest)
	case fmt.Sprint(s.Dependencies) != fmt.Sprint(g.Dependencies):
		return fmt.Errorf("it depends on %v, not on %v", s.Dependencies, g.Dependencies)
	case s.Protect != r.protect || s.RetainOnDelete != r.retain:
		return fmt.Errorf("it is stored with protect=%v, retain=%v", s.Protect, s.RetainOnDelete)
	case fmt.Sprint(s.PropertyDependencies) != fmt.Sprint(g.PropertyDependencies):
		return fmt.Errorf("its properties come from %v, not from %v", s.PropertyDependencies, g.PropertyDependencies)
	}
	return nil
}

// identity compares the id of a resource with the one before: want is the model's ("" for a new one). A program that
// was started again may have registered in another order, and cascades go by the order: then only what holds in every
// order is compared.
func (d *driver) identity(s engine.State, want string, now map[int]engine.State) error {
	n := numberOf(s.URN)
	old, stored := stands(d.world, n)
	kept := slices.ContainsFunc(d.world, func(o engine.State) bool { return o.ID == s.ID && !o.PendingReplacement })
	surelyNew := !stored || change(n, old.Inputs.Digest, s.Inputs.Digest) == engine.ChangeReplace
	if d.epochs == 1 && len(d.pending) == 0 && !d.restricted() {
		if want != "" && s.ID != want || want == "" && kept {
			return fmt.Errorf("it has the id %s, not %q", s.ID, want)
		}
		return nil
	}
	switch {
	case surelyNew && kept:
		return fmt.Errorf("it kept the id %s, but should be new", s.ID)
	case !surelyNew && s.ID != old.ID && !d.switched && !d.undecided(n) && !d.swept(now)[n]:
		return fmt.Errorf("it has the id %s instead of %s, and nothing replaces it", s.ID, old.ID)
	}
	return nil
}

// stands gives the stored state of a resource that is really there.
func stands(base []engine.State, n int) (engine.State, bool) {
	i := slices.IndexFunc(base, func(s engine.State) bool {
		return numberOf(s.URN) == n && !s.Delete && !s.PendingReplacement
	})
	if i < 0 {
		return engine.State{}, false
	}
	return base[i], true
}

// undecided reports that an earlier update left open whether it had created the resource.
func (d *driver) undecided(n int) bool {
	return slices.ContainsFunc(d.pending, func(p engine.PendingOperation) bool { return numberOf(p.State.URN) == n })
}

// swept gives what may have gone in a cascade, whatever the order: what depends on one that was deleted first.
func (d *driver) swept(now map[int]engine.State) map[int]bool {
	gone, out := map[int]bool{}, map[int]bool{}
	for _, s := range d.world { // what it depends on stands before it
		n := numberOf(s.URN)
		if out[n] = out[n] || n%2 == 1 && dependsOn(s, gone); out[n] || deletesFirst(n) && now[n].ID != s.ID {
			gone[n] = true
		}
	}
	return out
}
