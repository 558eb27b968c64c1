package provider

import (
	"context"
	"fmt"
	"reflect"
	"time"
)

// Aspect is a part of a resource that is read and set by calls of its own: its tags, its policy, its limits. A
// Reconcile that has made sure that the resource exists calls Sync for each of them.
type Aspect[T any] struct {
	// Name is for errors, in the plural, as in "tags of buckets".
	Name string
	// Want is what is declared.
	Want T
	// Observe reads what is there.
	Observe func(context.Context) (T, error)
	// Set turns what was observed into what is wanted.
	Set func(ctx context.Context, observed T) error
	// Same compares what was observed with Want; nil: they are deeply equal, and a map or a slice without elements is the
	// same as none.
	Same func(observed, want T) bool
}

// NotKept says that the other side accepts a change and does not make it: it does not know that part of a resource, or
// somebody else sets it at the same time.
type NotKept struct{ Name string }

func (e *NotKept) Error() string { return "the server accepts " + e.Name + " and does not keep them" }

// Sync observes the part, sets it if it differs from what is declared, and makes sure that it is kept.
func (a Aspect[T]) Sync(ctx context.Context) error {
	observed, err := a.Observe(ctx)
	if err != nil {
		return err
	}
	return a.SyncFrom(ctx, observed)
}

// SyncFrom is Sync of a part that was observed already.
func (a Aspect[T]) SyncFrom(ctx context.Context, observed T) error {
	if a.same(observed) {
		return nil
	}
	if err := a.Set(ctx, observed); err != nil {
		return err
	}
	return a.Kept(ctx)
}

// Kept observes the part until it is as declared, for 6 seconds, because what is read may be older for a moment;
// *NotKept if it is not by then.
func (a Aspect[T]) Kept(ctx context.Context) error {
	const first, last = 100 * time.Millisecond, 3200 * time.Millisecond
	for pause := first; ; pause *= 2 {
		if now, err := a.Observe(ctx); err != nil || a.same(now) {
			return err
		}
		if pause > last {
			return &NotKept{a.Name}
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("look whether the %s are kept: %w", a.Name, context.Cause(ctx))
		case <-time.After(pause):
		}
	}
}

func (a Aspect[T]) same(observed T) bool {
	if a.Same != nil {
		return a.Same(observed, a.Want)
	}
	return reflect.DeepEqual(observed, a.Want) || empty(observed) && empty(a.Want)
}

// empty reports whether a value is a map or a slice without elements.
func empty(v any) bool {
	r := reflect.ValueOf(v)
	return (r.Kind() == reflect.Map || r.Kind() == reflect.Slice) && r.Len() == 0
}
