// Package waittest waits in tests, so that no test has a deadline of its own that a busy machine can break. What
// belongs here ends a test that hangs: it says what the test waited for, and what all goroutines did meanwhile. How
// long something takes is measured with an injected clock or in a bubble of testing/synctest, where these functions
// wait in its time.
package waittest

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"strings"
	"testing"
	"time"
)

// Patience ends a test that hangs. Nothing is expected to take nearly as long.
const Patience = 10 * time.Minute

// errHangs is the cause of the end of a context of Context.
var errHangs = errors.New("the test hangs")

// Until looks again and again whether it is done, for what no event announces. It fails the test if that is never so;
// what says what is waited for, as a clause: "the service has ended".
func Until(t testing.TB, what string, done func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), Patience) // also in clean-ups, when t.Context has ended
	defer cancel()
	if err := Poll(ctx, what, done); err != nil {
		t.Fatalf("%v; all goroutines:\n%s", err, Stacks())
	}
}

// Poll is Until with a context of the caller's, whose end is an error that says what never was. The pauses grow, also
// with what a look takes: it may run a command, and what is waited for needs the processor, too.
func Poll(ctx context.Context, what string, done func() bool) error {
	for pause := time.Millisecond; ; pause = min(pause*5/4, 100*time.Millisecond) {
		began := time.Now()
		if done() {
			return nil
		}
		next := time.NewTimer(max(pause, min(4*time.Since(began), time.Second)))
		select {
		case <-next.C:
		case <-ctx.Done():
			next.Stop()
			return fmt.Errorf("never: %s: %w", what, context.Cause(ctx))
		}
	}
}

// For receives a value, or the zero value of a channel that is closed. It fails the test if neither comes; what says
// what is waited for, as a clause.
func For[T any](t testing.TB, what string, from <-chan T) (value T) {
	t.Helper()
	expired := time.NewTimer(Patience)
	defer expired.Stop()
	select {
	case value = <-from:
	case <-expired.C:
		t.Fatalf("never: %s; all goroutines:\n%s", what, Stacks())
	}
	return value
}

// Context is for calls that might hang. It ends with the test, and after Patience, when the log tells what all
// goroutines did.
func Context(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeoutCause(t.Context(), Patience, errHangs)
	told := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(told)
		if errors.Is(context.Cause(ctx), errHangs) {
			t.Logf("%v; all goroutines:\n%s", errHangs, Stacks())
		}
	})
	t.Cleanup(func() {
		cancel()
		if !stop() {
			<-told // a test that is over must not log
		}
	})
	return ctx
}

// Stacks is what all goroutines do.
func Stacks() string {
	var text strings.Builder
	_ = pprof.Lookup("goroutine").WriteTo(&text, 2) // a strings.Builder fails at nothing
	return text.String()
}
