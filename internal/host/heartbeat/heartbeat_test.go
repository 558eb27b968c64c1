package heartbeat

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/host/failure"
	"go.temporal.io/sdk/temporal"
)

// answeringHeart answers each heartbeat with an error, or accepts it.
type answeringHeart struct{ err error }

func (h *answeringHeart) RecordActivityHeartbeat(context.Context, []byte, ...any) error { return h.err }

func (h *answeringHeart) set(err error) { h.err = err }

func TestNothingIsSentByAnAttemptThatNobodyCountsOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heart := &answeringHeart{err: errors.New("no connection")}
		p := &Beats{heart: heart, timeout: time.Second, received: time.Now(), cancels: make(chan struct{})}
		if err := p.HoldsLease(t.Context()); !failure.IsType(err, deployments.ErrorPostponed) {
			t.Errorf("with a lost connection: %v", err)
		}
		heart.set(nil)
		if err := p.HoldsLease(t.Context()); err != nil {
			t.Errorf("with an accepted heartbeat: %v", err)
		}
		heart.set(temporal.NewCanceledError())
		p.accepted = time.Time{}
		if err := p.HoldsLease(t.Context()); !temporal.IsCanceledError(err) {
			t.Errorf("with a cancel: %v", err)
		}
	})
}

func TestAProgramIsGivenUpBeforeItsHeartbeatTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heart := &answeringHeart{err: errors.New("no connection")}
		p := &Beats{heart: heart, timeout: time.Minute, received: time.Now().Add(-50 * time.Second),
			cancels: make(chan struct{})}
		if _ = p.beat(t.Context()); !p.Expiring() || p.alive() || !p.LastBeatRejected() {
			t.Error("nobody heard of it for 50 of 60 seconds")
		}
		heart.set(nil)
		if _ = p.beat(t.Context()); p.Expiring() || !p.alive() || p.LastBeatRejected() {
			t.Error("its heartbeat was accepted")
		}
	})
}
