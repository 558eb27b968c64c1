package mempool

import (
	"context"
	"time"
)

type key struct{}

// claimed is a claim of a call, and how long it waits.
type claimed struct {
	claim    *Claim
	patience time.Duration
}

// With returns a context whose calls take memory from a claim, and wait for it up to patience.
func With(ctx context.Context, c *Claim, patience time.Duration) context.Context {
	return context.WithValue(ctx, key{}, claimed{c, patience})
}

// small is what is not worth counting.
const small = 16 << 10

// Take takes n more bytes from the claim of a context, as Claim.TakeRoom does. Without one, memory is not shared, and
// it takes nothing.
func Take(ctx context.Context, n int64) error {
	if of, ok := ctx.Value(key{}).(claimed); ok && of.claim != nil && n > small {
		return of.claim.TakeRoom(ctx, n, of.patience)
	}
	return nil
}

// Claimed reports whether the calls of a context take memory from a claim.
func Claimed(ctx context.Context) bool {
	of, ok := ctx.Value(key{}).(claimed)
	return ok && of.claim != nil
}

// Part returns a context whose calls take memory from a claim of its own, of the same party, until it is released: for
// what has its answer in parts.
func Part(ctx context.Context) (part context.Context, release func()) {
	of, ok := ctx.Value(key{}).(claimed)
	if !ok || of.claim == nil {
		return ctx, func() {}
	}
	own := of.claim.pool.Claim(of.claim.party, nil)
	return With(ctx, own, of.patience), own.Release
}

// Drop gives back what the claim of a context has, when what it was taken for is done.
func Drop(ctx context.Context) {
	if of, ok := ctx.Value(key{}).(claimed); ok && of.claim != nil {
		of.claim.Drop()
	}
}

// Without returns a context whose calls take no memory, because it was taken before.
func Without(ctx context.Context) context.Context { return With(ctx, nil, 0) }
