package grpcapi

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

const (
	// lookAfter is how long a call goes on before it is looked whether a part of the service does not answer, and
	// lookEvery how often then.
	lookAfter, lookEvery = time.Second, 500 * time.Millisecond
	// tellAfter is how long a call goes on before its client is told.
	tellAfter = 3 * time.Second
)

// tellWaiting tells the client, while its call goes on, which part of the service does not answer: the call's header is
// sent before its answer, with the sentence in it. A call that has sent something tells no more.
func (c *call) tellWaiting() (stop func()) {
	if c.edge.away == nil {
		return func() {}
	}
	ended := make(chan struct{})
	timer := time.AfterFunc(lookAfter, func() {
		_ = panics.Do("looking for what a call waits for", func() error { // which is a help only
			c.tellWhen(ended)
			return nil
		})
	})
	return func() { timer.Stop(); close(ended) }
}

// tellWhen looks until there is something to tell, or the call has ended.
func (c *call) tellWhen(ended <-chan struct{}) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		why := c.edge.away()
		if why != nil && time.Since(c.entry.Time) >= tellAfter || c.hasSent() {
			c.sendWaiting(why)
			return
		}
		select {
		case <-ended:
			return
		case <-c.ctx.Done(): // also when the call has panicked
			return
		case <-tick.C:
		}
	}
}

func (c *call) hasSent() bool {
	c.sending.Lock()
	defer c.sending.Unlock()
	return c.sent
}

func (c *call) sendWaiting(why error) {
	c.sending.Lock()
	defer c.sending.Unlock()
	if c.sent || why == nil {
		return
	}
	c.sent = true
	_ = c.SendHeader(metadata.Pairs(wire.WaitingHeader, why.Error())) // it is a help only
}

// unanswered returns the error of a call. If the call failed because Temporal or the bucket does not answer, the error
// names which.
func (e *edge) unanswered(ctx context.Context, err error) error {
	late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err == nil || ctx.Err() != nil || !late && deployments.CodeOf(
		wire.ToError(wire.FromError(err))) != deployments.CodeUnavailable {
		return err
	}
	if e.away != nil {
		if why := e.away(); why != nil {
			return why
		}
	}
	if late {
		return deployments.Errorf(deployments.CodeUnavailable, "the service did not get an answer in time: %w; try "+
			"again", errors.New(err.Error()))
	}
	return err
}
