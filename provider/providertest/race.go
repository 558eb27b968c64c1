package providertest

import (
	"errors"
	"fmt"

	"github.com/deployctl/deployctl/provider"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// isForeign says whether an error is provider.Foreign.
func isForeign(err error) bool { return status.Code(err) == codes.AlreadyExists }

// race is two creates, of which the first is held before one of its calls until the second is done.
type race struct {
	first, second       existing
	firstErr, secondErr error
	call                string         // the one that was held
	between             map[string]any // what the service had when the second was done
	after               map[string]any
}

// createdAtOnce holds a create before each of its calls, until another create of the same resource is done, by another
// process of the same stack.
func createdAtOnce(l *life) error {
	want, err := l.end(l.Inputs, 0)
	if err != nil {
		return err
	}
	return l.races(own, func(r race) error {
		switch {
		case r.firstErr != nil || r.secondErr != nil:
			return fmt.Errorf("one fails: %w", errors.Join(r.firstErr, r.secondErr))
		case r.first.id != r.second.id:
			return faultf("reconcile", "they made two things, %q and %q. Use a conditional write, or a name that only one "+
				"can have",
				r.first.id, r.second.id)
		}
		if wrong := same(r.after, want); wrong != nil {
			return faultf("reconcile", "they leave something else than one. Use a conditional write: %w", wrong)
		}
		return nil
	})
}

// createdByTwoStacks is createdAtOnce with two stacks that want the same thing: one gets it.
func createdByTwoStacks(l *life) error {
	ours, err := l.end(l.Inputs, 0)
	if err != nil || l.Shared {
		return err
	}
	return l.races(other, func(r race) error {
		if l.Unnamed {
			return r.apart(ours)
		}
		want, loser := ours, r.secondErr
		if r.secondErr == nil {
			want, loser = r.between, r.firstErr
		}
		switch {
		case r.firstErr == nil && r.secondErr == nil:
			return faultf("reconcile", "both have made it. Use a conditional write, so that one wins. If the service gives "+
				"the ids, and nothing in it is unique, set Unnamed in the Case")
		case r.firstErr != nil && r.secondErr != nil:
			return fmt.Errorf("both fail: %w", errors.Join(r.firstErr, r.secondErr))
		case !isForeign(loser):
			return faultf("errors", "the one that is too late must fail with provider.Foreign: it ends with the error: %w",
				loser)
		}
		if wrong := same(r.after, want); wrong != nil {
			return faultf("reconcile", "the one that is too late has changed what the other has made: %w", wrong)
		}
		return nil
	})
}

// apart checks that both have made something of their own.
func (r race) apart(ours map[string]any) error {
	if r.firstErr != nil || r.secondErr != nil {
		return fmt.Errorf("one fails: %w", errors.Join(r.firstErr, r.secondErr))
	}
	wrong := spared(r.after, ours)
	if r.first.id == r.second.id {
		wrong = fmt.Errorf("both have %q", r.first.id)
	}
	if wrong != nil {
		return faultf("reconcile", "of a type that is Unnamed, each must make its own: %w", wrong)
	}
	return nil
}

// races plays a race for each call of the first create, and has it judged.
func (l *life) races(stack string, judge func(race) error) error {
	for at := 1; at <= most; at++ {
		r, met, err := l.race(stack, at)
		if err != nil || !met {
			return err
		}
		if err := judge(r); err != nil {
			return fmt.Errorf("of two creates at once, %s until the other was done: %w", r.call, err)
		}
	}
	return fmt.Errorf("a create makes more than %d calls", most)
}

// race plays one race. Met says whether the create has such a call.
func (l *life) race(stack string, at int) (r race, met bool, err error) {
	w, err := l.world()
	if err != nil {
		return r, false, err
	}
	rule, err := w.settling()
	if err != nil || rule == provider.SettleByRead { // it is not sent twice
		return r, false, err
	}
	rival, err := w.beside(stack)
	if err != nil {
		return r, false, err
	}
	checked, err := w.check(l.Inputs, nil, 0)
	if err != nil {
		return r, false, err
	}
	theirs := checked
	if stack != own { // so that it shows what is whose
		in, err := given(checked, l.Change)
		if err != nil {
			return r, false, err
		}
		if theirs, err = rival.check(in, nil, 0); err != nil {
			return r, false, err
		}
	}
	armed, first := w.calls.arm(hold, at), make(chan struct{})
	go func() {
		defer close(first)
		r.first, r.firstErr = w.create(checked, 0)
	}()
	select {
	case <-armed.held:
	case <-first:
		return r, false, r.firstErr
	}
	second, secondErr := rival.create(theirs, 0)
	between := w.Things()
	close(armed.resume)
	<-first
	if errors.Is(secondErr, errNoEnd) { // it waited for the first
		second, secondErr = rival.create(theirs, 0)
	}
	r.second, r.secondErr, r.between, r.after, r.call = second, secondErr, between, w.Things(), w.calls.disturbed()
	w.stop()
	rival.stop()
	return r, true, nil
}
