// Package flight has all who ask for the same thing at once wait for one call.
package flight

import (
	"context"

	"golang.org/x/sync/singleflight"

	"github.com/deployctl/deployctl/internal/sys/panics"
)

// Group is a kind of things that are asked for by keys. The zero value is ready, and it may be used concurrently.
type Group[T any] struct{ calls singleflight.Group }

// Do returns what a call returns. While it runs, others who ask by the same key wait for it instead, each until its own
// context ends: Do then returns the context's cause, and the call goes on for the others, with the values of the
// context of the first one. A panic is its error, as of package panics, to which doing belongs.
func (g *Group[T]) Do(ctx context.Context, key, doing string, call func(context.Context) (T, error)) (T, error) {
	running := g.calls.DoChan(key, func() (any, error) {
		var value T
		err := panics.Do(doing, func() (err error) {
			value, err = call(context.WithoutCancel(ctx))
			return err
		})
		return value, err
	})
	select {
	case <-ctx.Done():
		var none T
		return none, context.Cause(ctx)
	case ended := <-running:
		value, _ := ended.Val.(T) // none of a T that is an interface is no T
		return value, ended.Err
	}
}

// Forget has those who ask by a key from now on not wait for a call that runs.
func (g *Group[T]) Forget(key string) { g.calls.Forget(key) }
