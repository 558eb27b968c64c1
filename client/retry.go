package client

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/wire"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"
)

// Pauses between attempts.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Quiet is how long the service may be silent before Options.Unreachable is called.
const Quiet = 3 * time.Second

// unary is a generated method with a request to send.
type unary[Req, Resp any] func(context.Context, Req, ...grpc.CallOption) (Resp, error)

// repeat makes a call that may be repeated, until it is answered or patience ends.
func repeat[Req, Resp any](ctx context.Context, c *Client, method unary[Req, Resp], req Req) (Resp, error) {
	var resp Resp
	err := c.retryUntilReached(ctx, func(ctx context.Context) (err error) {
		resp, err = method(ctx, req)
		return err
	})
	return resp, err
}

// once makes a call that must not be repeated: it waits for a connection, then sends once.
func once[Req, Resp any](ctx context.Context, c *Client, method unary[Req, Resp], req Req) (Resp, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var resp Resp
	err := c.sentOnce(ctx, func(ctx context.Context) (err error) {
		resp, err = method(ctx, req)
		return err
	})
	return resp, err
}

// sentOnce makes attempts until one is sent.
func (c *Client) sentOnce(ctx context.Context, attempt func(context.Context) error) error {
	const attempts = 3
	var err error
	for range attempts {
		if err := c.reach(ctx); err != nil {
			return err
		}
		var sent bool
		err, sent = try(ctx, attempt)
		switch {
		case deployments.CodeOf(err) != deployments.CodeUnavailable || wire.Answered(err):
			return err
		case sent:
			return deployments.Errorf(deployments.CodeUnavailable, "the connection to the service at %s was lost before "+
				"it answered, so it is not known whether this was done: look, and repeat the command if it was not: %w",
				c.options.Address, err)
		}
	}
	return err
}

// try makes an attempt at a call, and reports whether it was sent over a connection, which is one to the service then.
func try(ctx context.Context, attempt func(context.Context) error) (_ error, sent bool) {
	underway := &call{}
	err := wire.ToError(attempt(context.WithValue(ctx, callKey{}, underway)))
	if deployments.CodeOf(err) == deployments.CodeCancelled && ctx.Err() == nil && !wire.Answered(err) {
		err = deployments.Errorf(deployments.CodeUnavailable, "the service ended the call: %s", err)
	}
	return err, underway.sent.Load()
}

// retryUntilReached runs attempt until it succeeds, fails for good, or the service has been unreachable for as long as
// the options allow. While the service has a call, it is not unreachable, though the call is lost in the end.
func (c *Client) retryUntilReached(ctx context.Context, attempt func(context.Context) error) error {
	begun, patience := time.Now(), c.options.Patience
	if !c.silence.everReached() {
		patience = c.options.FirstPatience
	}
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		sending := time.Now()
		err, sent := try(ctx, attempt)
		if err == nil || deployments.CodeOf(err) != deployments.CodeUnavailable {
			c.silence.reached()
			return err
		}
		if wire.Answered(err) {
			patience = c.options.Patience // the address is right
			if time.Since(begun) >= Quiet {
				c.silence.waits(err.Error())
			}
		} else {
			if sent {
				begun = begun.Add(time.Since(sending))
			}
			if sent || brokenOff(err) {
				patience = c.options.Patience // something accepts connections there
			}
			c.silence.failed()
		}
		if c.options.Missed != nil {
			c.options.Missed()
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if time.Since(begun)+pause > patience {
			return c.unreachable(err)
		}
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// unreachable returns the error about a service that was not reached: the part that does not answer, in the service's
// words, an untrusted certificate, or the address if the service has never been reached.
func (c *Client) unreachable(err error) error {
	if wire.Answered(err) {
		return err
	}
	if handshakeFailed(err) && !brokenOff(err) {
		return deployments.Errorf(deployments.CodeUnavailable, "there is no secure connection to the service at %s; "+
			"have its certificate (tls-cert) replaced, or name its authority's with ca-cert: %w", c.options.Address,
			err)
	}
	hint := ""
	switch {
	case brokenOff(err):
		hint = ": what accepts connections there ends them before they are secure, as a load balancer does that has no " +
			"service behind it"
	case strings.Contains(err.Error(), doors.Unsent): // likewise
		hint = "; if that is right, have it use a certificate (tls-cert), and name the certificate's authority with " +
			"ca-cert"
	case !c.silence.everReached():
		hint = "; check that it runs there, and the address (deployctl settings says where it comes from)"
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the service at %s cannot be reached%s: %w",
		c.options.Address, hint, err)
}

func handshakeFailed(err error) bool {
	return strings.Contains(err.Error(), "authentication handshake failed") // gRPC keeps only the text
}

// brokenOff reports whether a TLS handshake ended although nobody objected to anything.
func brokenOff(err error) bool {
	return handshakeFailed(err) && slices.ContainsFunc([]string{
		"failed: EOF", "connection reset", "broken pipe", "i/o timeout", "deadline exceeded",
	}, func(how string) bool { return strings.Contains(err.Error(), how) })
}

// sleep waits for d, or until ctx ends.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// silence reports when the service has not been reached for a while, and when it is reached again, each once.
type silence struct {
	tell     func(bool)
	tellPart func(string)

	mu    sync.Mutex
	since time.Time // zero while it is reached
	told  bool
	ever  bool // it has been reached once
	part  bool // the service has named a part that does not answer, since the last successful call
}

func (s *silence) everReached() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ever
}

func (s *silence) failed() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.since.IsZero() {
		s.since = time.Now()
	}
	if !s.told && time.Since(s.since) >= Quiet {
		s.told = true
		if s.tell != nil {
			s.tell(true)
		}
	}
}

func (s *silence) reached() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.told && s.tell != nil {
		s.tell(false)
	}
	if s.part && s.tellPart != nil {
		s.tellPart("")
	}
	s.since, s.told, s.ever, s.part = time.Time{}, false, true, false
}

// receive reads a stream to its end.
func receive[T any](next func() (T, error), fn func(T) error) error {
	for {
		item, err := next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = fn(item)
		}
		if err != nil {
			return err
		}
	}
}

// waits reports, once, which part of a reached service does not answer.
func (s *silence) waits(why string) {
	s.mu.Lock()
	told := s.part
	s.since, s.ever, s.part = time.Time{}, true, true
	s.mu.Unlock()
	if !told && s.tellPart != nil {
		s.tellPart(why)
	}
}

// call is what is known of an attempt at a call, in its context.
type call struct{ sent atomic.Bool }

type callKey struct{}

// HandleRPC implements stats.Handler: the header of a call in progress says what the service waits for. That of a
// request is written to a connection on which the service has been heard.
func (s *silence) HandleRPC(ctx context.Context, e stats.RPCStats) {
	switch e := e.(type) {
	case *stats.InHeader:
		for _, why := range e.Header.Get(wire.WaitingHeader) {
			s.waits(why)
		}
	case *stats.OutHeader:
		if c, ok := ctx.Value(callKey{}).(*call); ok {
			c.sent.Store(true)
		}
	}
}

// TagRPC implements stats.Handler.
func (s *silence) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (s *silence) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (s *silence) HandleConn(context.Context, stats.ConnStats) {}
