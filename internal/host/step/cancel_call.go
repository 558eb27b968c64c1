package step

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/internal/plugin/pluginhost"
)

// wait waits for a call, and passes a cancel on to its provider. It returns false if the call was not answered by the
// step's deadline.
func (at *attempt) wait(ctx context.Context, p *pluginhost.Provider, done <-chan struct{}) (answered bool) {
	select {
	case <-done:
		return true
	case <-at.heartbeat.Cancelled():
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return false
		}
		if !at.heartbeat.CancelRequested(ctx) { // Temporal is unreachable, or the worker stops: the call continues
			select {
			case <-done:
				return true
			case <-at.heartbeat.Cancelled():
			}
		}
	}
	cancelCall(ctx, p, done)
	return true
}

// cancelGrace is how long a call may take to end after its provider was asked to cancel it. tidying is how long the
// answer to that request is awaited once the call has ended, because the caller may then end the provider.
const cancelGrace, tidying = 10 * time.Second, time.Second

// cancelCall asks a provider to cancel its calls. If the call does not end within cancelGrace, the provider's process
// is killed, and its calls fail without an answer.
func cancelCall(ctx context.Context, p *pluginhost.Provider, done <-chan struct{}) {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		asking, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
		defer stop()
		_ = p.SignalCancellation(asking) // only the end of the call matters
	}()
	awaitCancelled(done, asked, func() { _ = p.Close() })
}

// awaitCancelled waits for the end of a call, and for the answer to the request to cancel it.
func awaitCancelled(done, asked <-chan struct{}, kill func()) {
	select {
	case <-done:
	case <-time.After(cancelGrace):
		kill()
		<-done
	}
	select {
	case <-asked:
	case <-time.After(tidying):
	}
}
