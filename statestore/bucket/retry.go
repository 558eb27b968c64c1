package bucket

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// Patience is for how long what is unreachable is tried again by default: by Retry, and when a process connects.
const Patience = 30 * time.Second

// Retry is an Objects that retries calls that failed with ErrTransient, for as long as its patience lasts. Then the
// call fails with CodeUnavailable and a message that says what to check. A bucket that was in use and now rejects the
// credentials or is gone is treated the same way: usually an operator is about to fix that, and the caller has done
// nothing wrong. Before the first successful call, both fail at once, with their own codes.
//
// When the condition of a conditional Put does not hold, it reads the object back: if the object has exactly the bytes
// of this Put, an attempt whose reply was lost has written them, and the Put has succeeded. So the bytes of every
// conditional Put must be unique to the writer and to the call (sealed values are; plaintext needs a nonce).
//
// A Put of a version that another writer has replaced fails after a short pause: its caller reads and writes again, and
// writers that all did so at once would be too late again.
type Retry struct {
	objects  Objects
	patience time.Duration
	accepted atomic.Bool // some call succeeded
}

// NewRetry decorates objects. A patience of zero means Patience.
func NewRetry(objects Objects, patience time.Duration) *Retry {
	if patience == 0 {
		patience = Patience
	}
	return &Retry{objects: objects, patience: patience}
}

// Get implements Objects.
func (r *Retry) Get(ctx context.Context, key string) (o Object, err error) {
	err = r.persist(ctx, 0, func(ctx context.Context) error { o, err = r.objects.Get(ctx, key); return err })
	return o, err
}

// Tag implements Objects.
func (r *Retry) Tag(ctx context.Context, key string) (tag string, err error) {
	err = r.persist(ctx, 0, func(ctx context.Context) error { tag, err = r.objects.Tag(ctx, key); return err })
	return tag, err
}

// Put implements Objects.
func (r *Retry) Put(ctx context.Context, key string, data []byte, c Condition) (tag string, err error) {
	err = r.persist(ctx, len(data), func(ctx context.Context) error {
		tag, err = r.objects.Put(ctx, key, data, c)
		return err
	})
	if !errors.Is(err, ErrChanged) {
		return tag, err
	}
	there, getErr := r.Get(ctx, key)
	switch {
	case errors.Is(getErr, ErrAbsent):
		return "", err
	case getErr != nil:
		return "", getErr
	case bytes.Equal(there.Data, data):
		return there.Tag, nil
	}
	if c.Tag != "" {
		sleep(ctx, firstPause)
	}
	return "", err
}

// Delete implements Objects. A rejected Delete loses nothing, and some buckets reject every one.
func (r *Retry) Delete(ctx context.Context, key string) error {
	var forbidden error
	err := r.persist(ctx, 0, func(ctx context.Context) error {
		err := r.objects.Delete(ctx, key)
		if forbidden = nil; credentialsRefused(err) {
			forbidden, err = err, nil
		}
		return err
	})
	if forbidden != nil {
		return forbidden
	}
	return err
}

// List implements Objects.
func (r *Retry) List(ctx context.Context, q Query) (l Listing, err error) {
	err = r.persist(ctx, 0, func(ctx context.Context) error { l, err = r.objects.List(ctx, q); return err })
	return l, err
}

const (
	// attemptTimeout limits one attempt, so that a lost connection is noticed; a large Put gets more time.
	attemptTimeout = 60 * time.Second
	slowestPut     = 128 << 10 // bytes per second
	firstPause     = 20 * time.Millisecond
	longestPause   = 2 * time.Second
)

// persist calls f until its result is not transient.
func (r *Retry) persist(ctx context.Context, size int, f func(context.Context) error) error {
	timeout := attemptTimeout + time.Duration(size/slowestPut)*time.Second
	giveUp := time.Now().Add(r.patience)
	pause := firstPause
	for {
		attempt, end := context.WithTimeout(ctx, timeout)
		err := f(attempt)
		end()
		if err == nil {
			r.accepted.Store(true)
		}
		if err == nil || !r.isTransient(err) {
			return err
		}
		late := time.Now().Add(pause).After(giveUp)
		if ctx.Err() == nil && !late {
			sleep(ctx, pause)
		}
		switch {
		case misconfigured(err) && (late || ctx.Err() != nil): // else its code would be about the caller's own token
			return deployments.Errorf(deployments.CodeUnavailable, "%w", err)
		case ctx.Err() != nil:
			return err
		case late:
			return unavailable(r.objects, r.patience, err)
		}
		pause = min(2*pause, longestPause)
	}
}

// sleep pauses for half to three halves of a duration, or until ctx ends.
func sleep(ctx context.Context, pause time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(pause/2 + rand.N(pause)):
	}
}

// isTransient reports whether the same call may succeed soon.
func (r *Retry) isTransient(err error) bool {
	return errors.Is(err, ErrTransient) || errors.Is(err, context.DeadlineExceeded) || misconfigured(err) &&
		r.accepted.Load()
}

// misconfigured reports whether the server rejects the credentials or has no such bucket, which only an operator can
// fix.
func misconfigured(err error) bool {
	return credentialsRefused(err) || err != nil && deployments.CodeOf(err) == deployments.CodeInvalid
}

func unavailable(objects Objects, waited time.Duration, err error) error {
	what := "the object store"
	if s, ok := objects.(fmt.Stringer); ok {
		what = "the " + s.String()
	}
	return deployments.Errorf(deployments.CodeUnavailable,
		"%s cannot be reached: %w (tried for %s): check that the server runs, the address, and the network in "+
			"between; then try again",
		what, err, waited.Round(time.Second))
}
