package activities

import (
	"context"
	"errors"
	"time"

	"github.com/deployctl/deployctl/internal/pluginhost"
)

// wait waits for a call, and passes a cancel on to its provider. It tells whether the call was answered before the
// step's time was over.
func (at *attempt) wait(ctx context.Context, p *pluginhost.Provider, done <-chan struct{}) (answered bool) {
	select {
	case <-done:
		return true
	case <-at.heartbeat.cancelled:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return false
		}
		if !at.heartbeat.cancelRequested(ctx) { // Temporal is out of reach, or the worker stops: the call goes on
			select {
			case <-done:
				return true
			case <-at.heartbeat.cancelled:
			}
		}
	}
	cancelCall(ctx, p, done)
	return true
}

// cancelGrace is how long a provider that was asked to give up may take to answer, and tidying how long its answer to
// that is waited for once its call has ended: what comes next may end the provider.
const cancelGrace, tidying = 10 * time.Second, time.Second

// cancelCall asks a provider to cancel its calls. If it does not, its process is ended, and the calls have no answer.
func cancelCall(ctx context.Context, p *pluginhost.Provider, done <-chan struct{}) {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		asking, stop := context.WithTimeout(context.WithoutCancel(ctx), cancelGrace)
		defer stop()
		_ = p.SignalCancellation(asking) // what counts is whether the call ends
	}()
	select {
	case <-done:
	case <-time.After(cancelGrace):
		_ = p.Close()
		<-done
	}
	select {
	case <-asked:
	case <-time.After(tidying):
	}
}
