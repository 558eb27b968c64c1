package providertest

import (
	"errors"
	"fmt"
	"time"

	"github.com/deployctl/deployctl/provider"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/structpb"
)

// attempts is how often a call is made before it counts as one that comes to no end. One of them is disturbed.
const attempts = 5

// errNoEnd is that a call was not done in all attempts.
var errNoEnd = errors.New("comes to no end")

// outcome is what an error of a call says about it.
type outcome int

const (
	done    outcome = iota
	partly          // it exists and is not as declared
	lost            // nobody knows
	notDone         // nothing happened; later it may
	refused         // nothing happened
)

// unfinished is what exists and is not as declared or, with a pause, not ready.
type unfinished struct {
	*pulumirpc.ErrorResourceInitFailed
	pause time.Duration
}

func outcomeOf(err error) (outcome, *unfinished) {
	if err == nil {
		return done, nil
	}
	s := status.Convert(err)
	var exists unfinished
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *pulumirpc.ErrorResourceInitFailed:
			exists.ErrorResourceInitFailed = d
		case *errdetails.RetryInfo:
			exists.pause = d.GetRetryDelay().AsDuration()
		}
	}
	if exists.ErrorResourceInitFailed != nil {
		return partly, &exists
	}
	switch s.Code() {
	case codes.Unavailable, codes.Canceled, codes.DeadlineExceeded:
		return lost, nil
	case codes.ResourceExhausted:
		return notDone, nil
	default:
		return refused, nil
	}
}

// repeat makes a call as an engine does: again after a lost answer, with a new process after one that was killed. It
// returns what exists if that is not as declared.
func (w *world) repeat(op string, once func() error) (*unfinished, error) {
	var last error
	for range attempts {
		before, _ := w.calls.interrupted()
		last = once()
		var fault *faultError
		if errors.As(last, &fault) {
			return nil, last
		}
		if w.calls.killed() {
			if err := w.restart(); err != nil {
				return nil, err
			}
			continue
		}
		what, failed := outcomeOf(last)
		if what == done || what == partly {
			return failed, nil
		}
		met, effect := w.calls.interrupted()
		if err := w.truthful(op, what, last, met && !before, effect); err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("the %s %w: the last of %d attempts failed with: %w", op, errNoEnd, attempts, last)
}

// truthful checks what an error claims. Now says that the call was disturbed in this attempt, and effect that something
// has changed by then.
func (w *world) truthful(op string, what outcome, err error, now, effect bool) error {
	met, _ := w.calls.interrupted()
	cut := now && w.calls.state().kind != hold
	switch {
	case what == refused && cut:
		return faultf("errors", "the %s ended with an error that says that nothing was done and nothing helps, although the "+
			"connection was lost: wrap it in provider.Unknown. The error: %w", op, err)
	case what == notDone && cut && effect && op == "create":
		return faultf("errors", "the create ended with provider.NotDone, although something has been made: return "+
			"provider.Unknown, or the id together with the error. The error: %w", err)
	case what == refused && w.calls.state().kind == hold:
		return faultf("reconcile", "the %s met what another process has made meanwhile, and fails: look once more, or "+
			"return provider.NotDone. The error: %w", op, err)
	case what == refused && met:
		return faultf("reconcile", "the %s was made again, and fails: look at what exists first, and go on from there. "+
			"The error: %w", op, err)
	case what == refused:
		return fmt.Errorf("the %s fails: %w", op, err)
	}
	return nil
}

// faultError is what a provider does wrong.
type faultError struct{ err error }

func (e *faultError) Error() string { return e.err.Error() }
func (e *faultError) Unwrap() error { return e.err }

// faultf makes a fault, with the section of the guide that says what to do.
func faultf(section, format string, args ...any) error {
	return &faultError{fmt.Errorf(format+" (docs/providers.md#"+section+")", args...)}
}

// create makes a resource.
func (w *world) create(inputs *structpb.Struct, generation int) (existing, error) {
	rule, err := w.settling()
	if err != nil {
		return existing{}, err
	}
	made, again := existing{inputs: inputs, generation: generation}, false
	failed, err := w.repeat("create", func() error {
		if again && rule == provider.SettleByRead {
			found, err := w.settle(made)
			if err != nil || found.id != "" {
				made = found
				return err
			}
		}
		again = true
		resp, err := call(w, w.process, w.Create, &pulumirpc.CreateRequest{Urn: w.urn(), Properties: inputs})
		made.id, made.outputs = resp.GetId(), resp.GetProperties()
		return err
	})
	if failed != nil {
		made.id, made.outputs, made.unfinished, made.pause = failed.GetId(), failed.GetProperties(), true, failed.pause
	}
	w.leak.bag("the outputs of a create", made.outputs)
	return made, err
}

// settle looks for what a lost create has made.
func (w *world) settle(lost existing) (existing, error) {
	ownership, found, err := w.look(existing{inputs: lost.inputs, generation: lost.generation})
	switch {
	case err != nil:
		return existing{}, err
	case ownership == provider.Absent:
		return lost, nil
	case ownership != provider.Owned:
		return existing{}, faultf("reconcile", "the answer to a create was lost, and Read, which is to settle it, says %q "+
			"of what the create would make: it must say Owned or Absent", ownership)
	}
	found.inputs = lost.inputs
	return found, nil
}

// update updates a resource to checked inputs.
func (w *world) update(old existing, news *structpb.Struct) (existing, error) {
	next := existing{id: old.id, inputs: news, generation: old.generation}
	failed, err := w.repeat("update", func() error {
		resp, err := call(w, w.process, w.Update, &pulumirpc.UpdateRequest{Urn: w.urn(), Id: old.id, OldInputs: old.inputs,
			Olds: old.outputs, News: news})
		next.outputs = resp.GetProperties()
		return err
	})
	if failed != nil {
		next.outputs, next.unfinished, next.pause = failed.GetProperties(), true, failed.pause
	}
	w.leak.bag("the outputs of an update", next.outputs)
	return next, err
}

// remove deletes a resource.
func (w *world) remove(old existing) error {
	_, err := w.repeat("delete", func() error {
		_, err := call(w, w.process, w.Delete, &pulumirpc.DeleteRequest{Urn: w.urn(), Id: old.id, OldInputs: old.inputs,
			Properties: old.outputs})
		return err
	})
	return err
}

// bring brings a resource to a program's inputs, as the updates of a stack do; one with no id is created. What is not
// ready is looked at until it is, after the pauses that the provider asks for.
func (w *world) bring(st existing, in Inputs) (existing, error) {
	var err error
	for n := 0; n < attempts; {
		if st, err = w.once(st, in); err != nil || !st.unfinished {
			return st, err
		}
		if st.pause == 0 {
			n++
			continue
		}
		select {
		case <-time.After(st.pause):
		case <-w.t.Context().Done():
			return st, fmt.Errorf("it is still not ready: %w", w.t.Context().Err())
		}
	}
	return st, fmt.Errorf("after %d updates Reconcile still returns an id together with an error", attempts)
}

// once is one update of a stack.
func (w *world) once(st existing, in Inputs) (existing, error) {
	if st.id == "" {
		checked, err := w.check(in, nil, st.generation)
		if err != nil {
			return st, err
		}
		return w.create(checked, st.generation)
	}
	checked, err := w.check(in, st.inputs, st.generation)
	if err != nil {
		return st, err
	}
	d, err := w.diff(st, checked)
	switch {
	case err != nil:
		return st, err
	case len(d.GetReplaces()) > 0:
		return w.replace(st, in, d.GetDeleteBeforeReplace())
	case d.GetChanges() == pulumirpc.DiffResponse_DIFF_SOME || st.unfinished:
		return w.update(st, checked)
	}
	return st, nil
}

// replace makes another resource in the place of one.
func (w *world) replace(old existing, in Inputs, deleteFirst bool) (existing, error) {
	checked, err := w.check(in, nil, old.generation+1)
	if err != nil {
		return old, err
	}
	if deleteFirst {
		if err := w.remove(old); err != nil {
			return old, err
		}
		w.calls.deleted()
	}
	made, err := w.create(checked, old.generation+1)
	if err != nil || deleteFirst {
		return made, err
	}
	return made, w.remove(old)
}

// given returns completed inputs as a program would give them, with others in their place.
func given(checked *structpb.Struct, others Inputs) (Inputs, error) {
	bag, err := unwire(checked)
	in := Inputs{}
	for name, v := range bag {
		in[string(name)] = v
	}
	return in.over(others), err
}

// secretless returns a value without the marks of secrets.
func secretless(v resource.PropertyValue) resource.PropertyValue {
	if v.IsSecret() {
		return secretless(v.SecretValue().Element)
	}
	return v
}
