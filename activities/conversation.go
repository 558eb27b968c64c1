package activities

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/panics"
)

// ErrRunEnded is what Runs answers when the Run workflow is closed: nobody listens any more.
var ErrRunEnded = errors.New("the update has ended")

// Runs speaks with Run workflows. Every error but ErrRunEnded is temporary: the same call is made again.
type Runs interface {
	// Signal delivers messages. Delivering them twice is harmless.
	Signal(ctx context.Context, u deployments.UpdateName, m deployments.Messages) error
	// Poll waits a while for replies after the cursor; no replies is an answer, too.
	Poll(ctx context.Context, u deployments.UpdateName, p deployments.Poll) (deployments.Replies, error)
}

const (
	// maxSignal bounds one signal in bytes of JSON, below the payload limit of 2 MB.
	maxSignal = 1 << 20
	// firstRetry and lastRetry bound the pauses between attempts to reach the Run.
	firstRetry = 50 * time.Millisecond
	lastRetry  = 5 * time.Second
)

// conversation is what one epoch of a program and its Run say to each other. Messages are numbered from 1. A program
// often answers replies with its next questions: those go with the next poll, which saves a signal. All else that waits
// goes into the next signal, of which one is in flight. The Run puts the messages in order.
type conversation struct {
	runs   Runs
	update deployments.UpdateName
	epoch  int

	mu      sync.Mutex
	queue   []queued  // not sent yet
	first   int       // number of the first queued message
	flying  int       // messages that were sent and not acknowledged
	parcels []*parcel // those among them that polls and results carry
	polling bool      // a poll is open: what is said now has to go by signal
	lending int       // results that may carry what is asked now
	seq     int       // last sequence number given out
	waiting map[int]chan engine.Reply
	spoken  chan struct{} // holds a token while the queue may have something for a signal
	asked   chan struct{} // holds a token while the queue may have something for a poll
	empty   *sync.Cond    // everything was delivered, or the conversation has ended

	ended chan struct{} // closed by end
	err   error
}

type queued struct {
	message deployments.Message
	size    int
	ask     int // sequence number of its reply; 0 if it has none
}

// carryFor is how long a poll waits for questions to carry, after it brought replies.
const carryFor = 2 * time.Millisecond

func newConversation(runs Runs, u deployments.UpdateName, epoch int) *conversation {
	c := &conversation{
		runs: runs, update: u, epoch: epoch, first: 1,
		waiting: map[int]chan engine.Reply{}, spoken: make(chan struct{}, 1), asked: make(chan struct{}, 1),
		ended: make(chan struct{}),
	}
	c.empty = sync.NewCond(&c.mu)
	return c
}

// hold delivers messages and replies until the context or the Run ends. It returns when both directions are closed.
func (c *conversation) hold(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	var directions sync.WaitGroup
	directions.Go(func() { c.keep(ctx, c.deliver); cancel() })
	directions.Go(func() { c.keep(ctx, c.listen); cancel() })
	directions.Wait()
}

// keep keeps up one direction, whose end is that of the conversation.
func (c *conversation) keep(ctx context.Context, direction func(context.Context) error) {
	c.end(panics.Do("talking with the run of an update", func() error { return direction(ctx) }))
}

// say queues a message that has no reply.
func (c *conversation) say(m deployments.Message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.enqueue(m, 0)
}

// ask queues the message that about gives for the next sequence number, and waits for its reply.
func (c *conversation) ask(ctx context.Context, about func(epoch, seq int) deployments.Message) (engine.Reply, error) {
	answer := make(chan engine.Reply, 1)
	c.mu.Lock()
	c.seq++
	seq := c.seq
	c.waiting[seq] = answer
	c.enqueue(about(c.epoch, seq), seq)
	c.mu.Unlock()

	select {
	case r := <-answer:
		return r, nil
	case <-ctx.Done():
		c.mu.Lock()
		delete(c.waiting, seq) // else it would seem that the program waits for more than one answer, for good
		c.mu.Unlock()
		return engine.Reply{}, context.Cause(ctx)
	case <-c.ended:
		return engine.Reply{}, c.err
	}
}

// flush waits until everything said was delivered. Polls and results may come back late: what they carry is said again.
func (c *conversation) flush(ctx context.Context) error {
	c.mu.Lock()
	parcels := slices.Clone(c.parcels)
	c.mu.Unlock()
	for _, p := range parcels {
		if err := c.resend(ctx, p); err != nil {
			return err
		}
	}
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.empty.Broadcast()
	})
	defer stop()
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(c.queue)+c.flying > 0 {
		select {
		case <-c.ended:
			return c.err
		case <-ctx.Done():
			return context.Cause(ctx)
		default:
			c.empty.Wait()
		}
	}
	return nil
}

func (c *conversation) enqueue(m deployments.Message, ask int) {
	data, _ := json.Marshal(m) // only to know its size
	c.queue = append(c.queue, queued{m, len(data) + 1, ask})
	wake(c.spoken)
	wake(c.asked)
}

func wake(token chan struct{}) {
	select {
	case token <- struct{}{}:
	default:
	}
}

func (c *conversation) deliver(ctx context.Context) error {
	for {
		batch := c.batch()
		if len(batch.Items) == 0 {
			select {
			case <-c.spoken:
				continue
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		err := reach(ctx, func() error { return c.runs.Signal(ctx, c.update, batch) })
		if err != nil {
			return err
		}
		c.delivered(len(batch.Items))
	}
}

// batch takes what goes into the next signal: as much of the queue as fits, but nothing that a poll or a result will
// carry.
func (c *conversation) batch() deployments.Messages {
	c.mu.Lock()
	defer c.mu.Unlock()
	if (!c.polling || c.lending > 0) && c.onlyAsks() {
		return deployments.Messages{}
	}
	return c.take()
}

// onlyAsks reports that everything in the queue has a reply, so that a poll that carries it is sure to return.
func (c *conversation) onlyAsks() bool {
	return !slices.ContainsFunc(c.queue, func(q queued) bool { return q.ask == 0 })
}

// carry takes what goes with the next poll, which is open from now on. After replies, the program gets a moment to ask
// on.
func (c *conversation) carry(ctx context.Context, replied bool) *parcel {
	if replied {
		timer := time.NewTimer(carryFor)
		defer timer.Stop()
		select {
		case <-c.asked:
		case <-timer.C:
		case <-ctx.Done():
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polling = true
	defer wake(c.spoken)
	if !replied {
		return nil
	}
	return c.pack()
}

// take sends off the head of the queue: as much as fits, at least one message if there is one.
func (c *conversation) take() deployments.Messages {
	b := deployments.Messages{Epoch: c.epoch, First: c.first}
	size := 0
	for _, q := range c.queue {
		size += q.size
		if size > maxSignal && len(b.Items) > 0 {
			break
		}
		b.Items = append(b.Items, q.message)
	}
	c.queue = c.queue[len(b.Items):]
	c.first += len(b.Items)
	c.flying += len(b.Items)
	return b
}

func (c *conversation) delivered(n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.landed(n)
}

func (c *conversation) landed(n int) {
	c.flying -= n
	if len(c.queue)+c.flying == 0 {
		c.empty.Broadcast()
	}
}

// parcel is what a poll or a result carries: questions, whose answers tell that it has arrived.
type parcel struct {
	messages deployments.Messages
	asks     []int
}

func (p *parcel) content() *deployments.Messages {
	if p == nil {
		return nil
	}
	return &p.messages
}

// pack takes what a poll or a result is to carry; nil when there is nothing, or something that has no answer.
func (c *conversation) pack() *parcel {
	if len(c.queue) == 0 || !c.onlyAsks() {
		return nil
	}
	queue := c.queue
	p := &parcel{messages: c.take()}
	for _, q := range queue[:len(p.messages.Items)] {
		p.asks = append(p.asks, q.ask)
	}
	c.parcels = append(c.parcels, p)
	return p
}

// arrived notes that parcels have been delivered, of which those that were noted before are ignored.
func (c *conversation) arrived(is func(*parcel) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.parcels = slices.DeleteFunc(c.parcels, func(p *parcel) bool {
		if is(p) {
			c.landed(len(p.asks))
			return true
		}
		return false
	})
}

// resend says by signal what a parcel holds. The Run knows what it has heard before.
func (c *conversation) resend(ctx context.Context, p *parcel) error {
	err := reach(ctx, func() error { return c.runs.Signal(ctx, c.update, p.messages) })
	if err == nil {
		c.arrived(func(other *parcel) bool { return other == p })
	}
	return err
}

func (c *conversation) listen(ctx context.Context) error {
	poll := deployments.Poll{Epoch: c.epoch}
	replied := false
	for {
		carried := c.carry(ctx, replied)
		poll.Messages = carried.content()
		var got deployments.Replies
		err := reach(ctx, func() (err error) { got, err = c.runs.Poll(ctx, c.update, poll); return err })
		if err != nil {
			return err
		}
		c.closed(carried)
		poll.Cursor = max(poll.Cursor, got.Cursor)
		replied = len(got.Replies) > 0
		select { // what was asked before is in the queue, or on its way
		case <-c.asked:
		default:
		}
		for _, r := range got.Replies {
			c.answer(r)
		}
		if got.Done {
			return ErrRunEnded
		}
	}
}

// closed notes that a poll has returned, with what it carried.
func (c *conversation) closed(carried *parcel) {
	c.arrived(func(p *parcel) bool { return p == carried })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.polling = false
}

// answer hands a reply to who asked, and tells whether anyone did. Repeats and replies of other epochs are nobody's.
func (c *conversation) answer(r engine.Reply) bool {
	if r.Epoch != c.epoch {
		return false
	}
	c.arrived(func(p *parcel) bool { return slices.Contains(p.asks, r.Seq) })
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting, ok := c.waiting[r.Seq]
	if ok {
		delete(c.waiting, r.Seq)
		waiting <- r
	}
	return ok
}

// end closes the conversation with its first error; nil and later ones are ignored.
func (c *conversation) end(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || err == nil {
		return
	}
	c.err = err
	close(c.ended)
	c.empty.Broadcast()
}

// reach makes a call again, after a growing pause, until it succeeds, the Run has ended, or the context has.
func reach(ctx context.Context, call func() error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	err := persist(ctx, func(err error) bool { return !errors.Is(err, ErrRunEnded) && ctx.Err() == nil }, call)
	if err != nil && ctx.Err() != nil && !errors.Is(err, ErrRunEnded) {
		err = context.Cause(ctx)
	}
	return err
}
