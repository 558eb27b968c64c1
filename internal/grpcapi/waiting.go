package grpcapi

import (
	"context"
	"errors"
	"time"

	"google.golang.org/grpc/metadata"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/grpcapi/wire"
)

const (
	// lookAfter is how long a call goes on before it is looked whether a part of the service does not answer, and lookEvery how
	// often then.
	lookAfter, lookEvery = time.Second, 500 * time.Millisecond
	// tellAfter is how long a call goes on before its client is told.
	tellAfter = 3 * time.Second
)

// tellWaiting tells the client, while its call goes on, which part of the service does not answer: the call's header is sent before
// its answer, with the sentence in it. A call that has sent something tells no more.
func (c *call) tellWaiting() (stop func()) {
	if c.edge.away == nil {
		return func() {}
	}
	ended := make(chan struct{})
	timer := time.AfterFunc(lookAfter, func() {
		for tick := time.NewTicker(lookEvery); ; {
			why := c.edge.away()
			if why != nil && time.Since(c.entry.Time) >= tellAfter || c.hasSent() {
				c.sendWaiting(why)
				tick.Stop()
				return
			}
			select {
			case <-ended:
				tick.Stop()
				return
			case <-tick.C:
			}
		}
	})
	return func() { timer.Stop(); close(ended) }
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

// unanswered gives the error of a call that has ended because a part of the service does not answer the sentence that names it.
func (e *edge) unanswered(ctx context.Context, err error) error {
	late := errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil
	if err == nil || ctx.Err() != nil || !late && deployments.CodeOf(wire.ToError(wire.FromError(err))) != deployments.CodeUnavailable {
		return err
	}
	if e.away != nil {
		if why := e.away(); why != nil {
			return why
		}
	}
	if late {
		return deployments.Errorf(deployments.CodeUnavailable, "the service did not get an answer in time: %w; try again", errors.New(err.Error()))
	}
	return err
}
