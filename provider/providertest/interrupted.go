package providertest

import (
	"fmt"

	"github.com/deployctl/deployctl/provider"
)

// most is how many calls one operation may make before the test gives up.
const most = 1000

func interruptedCreate(l *life) error {
	return l.interrupted("create", func(w *world) (existing, error) { return existing{}, nil },
		func(w *world, st existing) (existing, error) { return w.bring(st, l.Inputs) })
}

func interruptedUpdate(l *life) error {
	if len(l.Change) == 0 {
		return nil
	}
	return l.interrupted("update", func(w *world) (existing, error) { return w.bring(existing{}, l.Inputs) },
		func(w *world, st existing) (existing, error) { return w.bring(st, l.Inputs.over(l.Change)) })
}

func interruptedReplacement(l *life) error {
	if len(l.Replace) == 0 {
		return nil
	}
	return l.interrupted("replacement", func(w *world) (existing, error) { return w.bring(existing{}, l.Inputs) },
		func(w *world, st existing) (existing, error) { return w.bring(st, l.Inputs.over(l.Replace)) })
}

func interruptedDelete(l *life) error {
	return l.interrupted("delete", func(w *world) (existing, error) { return w.bring(existing{}, l.Inputs) },
		func(w *world, st existing) (existing, error) { return existing{}, w.remove(st) })
}

// interrupted plays an operation once undisturbed, and once for each of its calls and each way to disturb it.
func (l *life) interrupted(
	op string, prepare func(*world) (existing, error), act func(*world, existing) (existing, error),
) error {
	w, err := l.world()
	if err != nil {
		return err
	}
	st, err := prepare(w)
	if err == nil {
		_, err = act(w, st)
	}
	if err != nil {
		return err
	}
	want := w.Things()
	for _, kind := range l.kinds {
		for at := 1; ; at++ {
			met, err := l.once(kind, at, want, prepare, act)
			if err != nil {
				return fmt.Errorf("the %s was interrupted: %w", op, err)
			}
			if !met && at == 1 {
				return fmt.Errorf("a %s makes no call that passes through Calls: use Serve, Transport or Do", op)
			}
			if !met {
				break
			}
			if at == most {
				return fmt.Errorf("a %s makes more than %d calls", op, most)
			}
		}
	}
	return nil
}

// once plays an operation with one of its calls disturbed. It reports whether the operation has such a call.
func (l *life) once(
	kind interruption, at int, want map[string]any, prepare func(*world) (existing, error),
	act func(*world, existing) (existing, error),
) (met bool, err error) {
	w, err := l.world()
	if err != nil {
		return false, err
	}
	st, err := prepare(w)
	if err != nil {
		return false, err
	}
	w.calls.arm(kind, at)
	end, err := act(w, st)
	met, _ = w.calls.interrupted()
	what := w.calls.disturbed()
	w.calls.disarm()
	defer func() { w.stop() }()
	switch {
	case !met:
		return false, err
	case err != nil:
		return true, fmt.Errorf("%s: %w", what, err)
	}
	if wrong := same(w.Things(), want); wrong != nil {
		return true, faultf("reconcile", "%s, and then the service does not have what it has undisturbed: %w", what, wrong)
	}
	if end.id == "" {
		return true, nil
	}
	ownership, _, err := w.look(end)
	if err == nil && ownership != provider.Owned && ownership != provider.Undecidable {
		err = faultf("reconcile", "%s, and then the id %q leads to what Read calls %q", what, end.id, ownership)
	}
	return true, err
}
