package grpcapi

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/panics"
	"google.golang.org/protobuf/proto"
)

const (
	// recheckEvery is how often the caller of an open stream is checked again. Each check may read the token and its
	// member.
	recheckEvery = 10 * time.Second
	// uncheckedFor is how long a stream stays open whose caller cannot be checked, because the bucket does not answer.
	uncheckedFor = time.Minute
)

// endedStream is the cause of the end of a stream whose caller may not have it any more, or cannot be checked.
type endedStream struct{ error }

// recheck checks the caller of an open stream again and again, and ends the stream when the caller would be refused
// now. First is the message that was admitted.
func (c *call) recheck(first proto.Message) {
	tick := time.NewTicker(c.edge.recheckEvery)
	defer tick.Stop()
	for checked := time.Now(); ; {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		err := panics.Do("checking the caller of an open stream", func() error { return c.allowedStill(first) })
		switch {
		case err == nil:
			checked = time.Now()
		case isRefusal(err) || time.Since(checked) >= uncheckedFor:
			c.cancel(endedStream{err})
			return
		}
	}
}

// allowedStill makes the checks with which the call began.
func (c *call) allowedStill(first proto.Message) error {
	ctx, cancel := context.WithTimeout(c.ctx, lookupPatience)
	defer cancel()
	done, err := c.edge.bounds.relook(ctx, c.caller.Token)
	if err != nil {
		return err
	}
	defer done()
	caller, err := c.edge.identify(ctx, c.method)
	if err != nil {
		return err
	}
	if c.rule.scope == onAny && !reflect.DeepEqual(caller.Authority, c.caller.Authority) {
		return deployments.Errorf(deployments.CodeForbidden, "what this token may do was changed while %s went on: "+
			"call it again", c.method)
	}
	return c.rule.allow(caller, c.method, first)
}

// ended gives why recheck has ended the stream; nil if it has not.
func (c *call) ended() error {
	var ended endedStream
	if errors.As(context.Cause(c.ctx), &ended) {
		return ended.error
	}
	return nil
}

// isRefusal reports whether an error says that the caller may not make the call, and not that this could not be found
// out.
func isRefusal(err error) bool {
	return refuses(deployments.CodeOf(err))
}

func refuses(code deployments.Code) bool {
	switch code {
	case deployments.CodeUnauthorized, deployments.CodeForbidden, deployments.CodeNotFound:
		return true
	}
	return false
}
