package panics

import (
	"context"

	"golang.org/x/sync/errgroup"
)

// Group is an errgroup.Group whose functions may panic: that is the error of their call, not the end of the process.
type Group struct {
	group *errgroup.Group
	doing string
}

// NewGroup returns a group of functions of what is being done, and the context that ends with the first error.
func NewGroup(ctx context.Context, doing string) (*Group, context.Context) {
	group, ctx := errgroup.WithContext(ctx)
	return &Group{group, doing}, ctx
}

// Go calls a function beside others.
func (g *Group) Go(call func() error) { g.group.Go(func() error { return Do(g.doing, call) }) }

// SetLimit bounds how many functions run at a time.
func (g *Group) SetLimit(n int) { g.group.SetLimit(n) }

// Wait returns the first error when all have ended.
func (g *Group) Wait() error { return g.group.Wait() }
