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
	case <-at.pulse.cancelled:
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return false
		}
		if !at.pulse.cancelRequested(ctx) { // Temporal is out of reach, or the worker stops: the call goes on
			select {
			case <-done:
				return true
			case <-at.pulse.cancelled:
			}
		}
	}
	giveUp(ctx, p, done)
	return true
}

// surrender is how long a provider that was asked to give up may take to answer, and tidying how long its answer to
// that is waited for once its call has ended: what comes next may end the provider.
const surrender, tidying = 10 * time.Second, time.Second

// giveUp asks a provider to give up, and ends it if it does not: then its calls end without an answer.
func giveUp(ctx context.Context, p *pluginhost.Provider, done <-chan struct{}) {
	asked := make(chan struct{})
	go func() {
		defer close(asked)
		asking, stop := context.WithTimeout(context.WithoutCancel(ctx), surrender)
		defer stop()
		_ = p.SignalCancellation(asking) // what counts is whether the call ends
	}()
	select {
	case <-done:
	case <-time.After(surrender):
		_ = p.Close()
		<-done
	}
	select {
	case <-asked:
	case <-time.After(tidying):
	}
}
