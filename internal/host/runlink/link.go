package runlink

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/panics"
)

// ErrRunEnded is what Runs returns when the Run workflow is closed: nobody receives messages any more.
var ErrRunEnded = errors.New("the update has ended")

// ErrRefused is what Runs returns when Temporal does not take a message as it is, because a limit of the server is
// lower than this package expects. Another attempt would be refused, too.
var ErrRefused = errors.New("Temporal refuses a message of the program")

// Runs sends messages to Run workflows and receives their replies. Every error but ErrRunEnded and ErrRefused is
// transient: the same call is repeated.
type Runs interface {
	// Signal delivers messages. Delivering them twice is harmless.
	Signal(ctx context.Context, u deployments.UpdateName, m deployments.Messages) error
	// Poll waits a while for replies after the cursor. It may return none.
	Poll(ctx context.Context, u deployments.UpdateName, p deployments.Poll) (deployments.Replies, error)
}

const (
	// maxSignal bounds one signal in bytes of JSON, below Temporal's payload limit of 2 MB.
	maxSignal = 1 << 20
	// firstRetry and lastRetry bound the pauses between attempts to reach the Run.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// Link connects one epoch of a program to its Run. Messages are numbered from 1. A program often answers a reply with
// its next calls: those go with the next poll, which saves a signal. Everything else that waits goes into the next
// signal; one signal is in flight at a time. It is safe for concurrent use.
type Link struct {
	runs   Runs
	update deployments.UpdateName
	epoch  int

	mu       sync.Mutex
	queue    []queued // not sent yet
	first    int      // number of the first queued message
	inFlight int      // messages that were sent and not acknowledged
	carried  []*batch // those of them that polls and results carry
	polling  bool     // a poll is open: calls made now have to go by signal
	holds    int      // results that may carry the calls that are made now
	// offer gets each message instead of the Run, while calls are answered ahead; gathering is set while what it has
	// answered waits for more of its kind.
	offer     func(deployments.Message)
	gathering bool
	seq       int // last sequence number that was assigned
	waiting   map[int]chan engine.Reply
	toSignal  chan struct{} // holds a token while the queue may have something for a signal
	toCarry   chan struct{} // holds a token while the queue may have something for a poll or a result
	drained   *sync.Cond    // everything was delivered, or the link has ended

	ended chan struct{} // closed by end
	err   error
}

// queued is a message that was not sent yet.
type queued struct {
	message deployments.Message
	size    int  // in bytes of JSON
	call    int  // sequence number of its reply; 0 for a notice, and for what is answered
	offered bool // may be answered ahead, so it is not sent yet
}

// New makes the link of an update's epoch. Nothing is sent before Serve.
func New(runs Runs, u deployments.UpdateName, epoch int) *Link {
	l := &Link{
		runs: runs, update: u, epoch: epoch, first: 1,
		waiting: map[int]chan engine.Reply{}, toSignal: make(chan struct{}, 1), toCarry: make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
	l.drained = sync.NewCond(&l.mu)
	return l
}

// Epoch returns the epoch of the program that the link belongs to.
func (l *Link) Epoch() int { return l.epoch }

// Ended is closed when the link has ended. Err then returns why.
func (l *Link) Ended() <-chan struct{} { return l.ended }

// Err returns why the link has ended, or nil.
func (l *Link) Err() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}

// Serve delivers messages and replies until the context or the Run ends. It returns when both directions have ended.
func (l *Link) Serve(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var directions sync.WaitGroup
	for _, direction := range []func(context.Context) error{l.sendSignals, l.poll} {
		directions.Go(func() {
			defer cancel()
			l.end(panics.Do("exchanging messages with the run of an update", func() error { return direction(ctx) }))
		})
	}
	directions.Wait()
}

// Send queues a notice.
func (l *Link) Send(m deployments.Message) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.enqueue(m, 0)
}

// Call queues the message that newMessage makes for the next sequence number, and waits for its reply.
func (l *Link) Call(
	ctx context.Context, newMessage func(epoch, seq int) deployments.Message,
) (engine.Reply, error) {
	reply := make(chan engine.Reply, 1)
	l.mu.Lock()
	l.seq++
	seq := l.seq
	l.waiting[seq] = reply
	l.enqueue(newMessage(l.epoch, seq), seq)
	l.mu.Unlock()
	select {
	case r := <-reply:
		return r, nil
	case <-ctx.Done():
		l.mu.Lock()
		delete(l.waiting, seq) // else the program would seem to wait for more than one reply from now on
		l.mu.Unlock()
		return engine.Reply{}, context.Cause(ctx)
	case <-l.ended:
		return engine.Reply{}, l.Err()
	}
}

// Flush waits until every message was delivered. Polls and results may come back late: what they carry is
// retransmitted.
func (l *Link) Flush(ctx context.Context) error {
	l.mu.Lock()
	carried := slices.Clone(l.carried)
	l.mu.Unlock()
	for _, b := range carried {
		if err := l.retransmit(ctx, b); err != nil {
			return err
		}
	}
	return l.awaitDrained(ctx)
}

// awaitDrained waits until no message is queued or being sent.
func (l *Link) awaitDrained(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.drained.Broadcast()
	})
	defer stop()
	l.mu.Lock()
	defer l.mu.Unlock()
	for len(l.queue)+l.inFlight > 0 {
		switch {
		case l.err != nil:
			return l.err
		case ctx.Err() != nil:
			return context.Cause(ctx)
		}
		l.drained.Wait()
	}
	return nil
}

// enqueue appends a message to the queue; l.mu is held.
func (l *Link) enqueue(m deployments.Message, call int) {
	l.queue = append(l.queue, queued{message: m, size: sizeOf(m), call: call, offered: l.offer != nil})
	if l.offer != nil {
		l.offer(m)
		return
	}
	wake(l.toSignal)
	wake(l.toCarry)
}

// sizeOf returns the size of a message in a signal, in bytes.
func sizeOf(m deployments.Message) int {
	data, _ := json.Marshal(m) // its types have no other error than its size
	return len(data) + 1
}

func wake(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

// end ends the link with its first error; nil and later errors are ignored.
func (l *Link) end(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.err != nil || err == nil {
		return
	}
	l.err = err
	close(l.ended)
	l.drained.Broadcast()
}

// reach repeats a call, with growing pauses, until it succeeds or cannot, or the context has ended.
func reach(ctx context.Context, call func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err := call()
		if errors.Is(err, ErrRunEnded) || errors.Is(err, ErrRefused) {
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithMaxElapsedTime(0), backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: firstRetry, Multiplier: 2, MaxInterval: lastRetry,
	}))
	return err
}
