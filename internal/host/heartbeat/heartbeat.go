// Package heartbeat sends the heartbeats of activities, and knows by them whether Temporal still counts on an attempt.
package heartbeat

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/host/failure"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
)

// Heart sends a heartbeat at once and returns Temporal's answer: nil if it was accepted, a CanceledError if the
// activity is to end. A Temporal client implements it.
type Heart interface {
	RecordActivityHeartbeat(ctx context.Context, taskToken []byte, details ...any) error
}

const (
	// defaultTimeout is the timeout of an activity without a heartbeat timeout.
	defaultTimeout = 30 * time.Second
	// freshFor is how long after its start an attempt counts as alive without a heartbeat.
	freshFor = 3 * time.Second
)

// Beats sends an activity's heartbeats and knows when the last one was accepted. The SDK's own heartbeats do not
// report that, and treat a lost connection as a cancel.
type Beats struct {
	heart   Heart
	token   []byte
	timeout time.Duration
	cancel  context.CancelFunc
	stopped chan struct{}

	received time.Time // when this worker received the activity
	mu       sync.Mutex
	accepted time.Time // start or last accepted heartbeat; zero if neither is known
	refused  bool      // the last heartbeat was not accepted
	asked    int       // attempts that the provider rejected; heartbeats carry the number to the next attempt

	cancels chan struct{}   // closed once a cancel was requested
	stops   <-chan struct{} // closed once the worker was asked to stop
	once    sync.Once
}

// New returns what sends heartbeats of the activity with a task token. None is sent by itself.
func New(heart Heart, token []byte, timeout time.Duration) *Beats {
	return &Beats{
		heart: heart, token: token, timeout: timeout,
		stopped: make(chan struct{}), cancels: make(chan struct{}), received: time.Now(),
	}
}

// Start sends heartbeats until stop. They outlive the context, because a call of the activity may outlive it.
func Start(ctx context.Context, heart Heart) *Beats {
	info := activity.GetInfo(ctx)
	p := New(heart, info.TaskToken, info.HeartbeatTimeout)
	p.stops = activity.GetWorkerStopChannel(ctx)
	if p.timeout <= 0 {
		p.timeout = defaultTimeout
	}
	// otherwise the clocks differ, or the task was delayed
	if lag := time.Since(info.StartedTime); lag >= 0 && lag < freshFor {
		p.accepted = info.StartedTime
	}
	if activity.HasHeartbeatDetails(ctx) {
		_ = activity.GetHeartbeatDetails(ctx, &p.asked) // on an error the count starts at 0
	}
	var beating context.Context
	beating, p.cancel = context.WithCancel(context.WithoutCancel(ctx))
	go p.run(beating)
	return p
}

func (p *Beats) run(ctx context.Context) {
	defer close(p.stopped)
	tick := time.NewTicker(p.timeout / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			_ = p.beat(ctx) // the result is in accepted and refused
		case <-ctx.Done():
			return
		}
	}
}

// Cancelled is closed once a cancel was requested.
func (p *Beats) Cancelled() <-chan struct{} { return p.cancels }

// Stopping is closed once the worker was asked to stop.
func (p *Beats) Stopping() <-chan struct{} { return p.stops }

// Stop ends the heartbeats.
func (p *Beats) Stop() {
	p.cancel()
	<-p.stopped
}

// beat sends a heartbeat now.
func (p *Beats) beat(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, p.timeout/4)
	defer cancel()
	sent := time.Now()
	err := p.heart.RecordActivityHeartbeat(ctx, p.token, p.details()...)
	var cancelled *temporal.CanceledError
	if errors.As(err, &cancelled) {
		p.once.Do(func() { close(p.cancels) })
		err = nil // it was accepted
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.refused = err != nil; !p.refused {
		p.accepted = sent
	}
	return err
}

// details returns what a heartbeat carries. Temporal keeps only the details of the last heartbeat.
func (p *Beats) details() []any {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked == 0 {
		return nil
	}
	return []any{p.asked}
}

// Rejected counts an attempt that the provider has rejected, and returns the number of such attempts.
func (p *Beats) Rejected(ctx context.Context) int {
	p.mu.Lock()
	p.asked++
	asked := p.asked
	p.mu.Unlock()
	_ = p.beat(context.WithoutCancel(ctx)) // if it fails, the next attempt counts one less
	return asked
}

// alive reports whether Temporal still regards this attempt as running: its start or last accepted heartbeat is younger
// than half the timeout.
func (p *Beats) alive() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.accepted) < p.timeout/2
}

// Expiring reports whether this attempt is about to reach its heartbeat timeout.
func (p *Beats) Expiring() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	since := min(time.Since(p.accepted), time.Since(p.received))
	return since > p.timeout*3/4
}

// LastBeatRejected reports that the last heartbeat was not accepted, so that a result may not be accepted either.
func (p *Beats) LastBeatRejected() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.refused
}

// HoldsLease returns nil if a changing call may be sent now: this attempt is the only one for at least half a timeout,
// it is not cancelled, and its worker does not stop.
func (p *Beats) HoldsLease(ctx context.Context) error {
	p.mu.Lock()
	fresh := time.Since(p.accepted) < freshFor
	p.mu.Unlock()
	if !fresh {
		_ = p.beat(context.WithoutCancel(ctx)) // alive checks the result
	}
	if !p.alive() {
		return failure.Postponed("the service lost sight of this attempt before the call was made", 0)
	}
	select {
	case <-p.cancels:
		return temporal.NewCanceledError()
	case <-p.stops:
		return failure.Postponed("the worker stops", 0)
	default:
		return nil
	}
}

// CancelRequested reports, after an activity's context has ended, whether the reason is a requested cancel. The SDK
// also ends the context when it cannot reach Temporal or the worker stops.
func (p *Beats) CancelRequested(ctx context.Context) bool {
	_ = p.beat(context.WithoutCancel(ctx)) // the result is in accepted and refused
	select {
	case <-p.cancels:
		return true
	default:
		return false
	}
}

// Beat sends heartbeats for an activity that may be repeated at any time, until stop is called.
func Beat(ctx context.Context) (stop func()) {
	if !activity.IsActivity(ctx) {
		return func() {}
	}
	ctx, stop = context.WithCancel(ctx)
	go func() {
		tick := time.NewTicker(defaultTimeout / 4)
		defer tick.Stop()
		for {
			activity.RecordHeartbeat(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return
			}
		}
	}()
	return stop
}

// UntilCancelled returns a context that also ends when the activity is cancelled.
func (p *Beats) UntilCancelled(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	go func() {
		select {
		case <-p.cancels:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}

// WasCancelled reports whether a cancel was requested.
func (p *Beats) WasCancelled() bool {
	select {
	case <-p.cancels:
		return true
	default:
		return false
	}
}
