package activities

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// echo answers every registration with its name as id, and may fail calls or deliver twice.
type echo struct {
	order
	mu      sync.Mutex
	batches []int
	items   []deployments.Message
	replies []engine.Reply
	fail    int
	open    chan struct{} // signals wait for it
	closed  bool
}

func (e *echo) Signal(ctx context.Context, _ deployments.UpdateName, m deployments.Messages) error {
	select {
	case <-e.open:
	case <-ctx.Done():
		return ctx.Err()
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return fmt.Errorf("gone: %w", ErrRunEnded)
	}
	for _, item := range e.take(m) {
		e.items = append(e.items, item)
		if r := item.Registered; r != nil {
			e.replies = append(e.replies, engine.Reply{Epoch: r.Epoch, Seq: r.Seq, ID: r.Name})
		}
	}
	if e.fail > 0 { // it was received, but the answer is lost
		e.fail--
		return errors.New("no connection")
	}
	e.batches = append(e.batches, len(m.Items))
	return nil
}

func (e *echo) Poll(ctx context.Context, u deployments.UpdateName, p deployments.Poll) (deployments.Replies, error) {
	if p.Messages != nil {
		if err := e.Signal(ctx, u, *p.Messages); err != nil {
			return deployments.Replies{}, err
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return deployments.Replies{}, ErrRunEnded
	}
	stale := engine.Reply{Epoch: p.Epoch - 1, Seq: 1, ID: "stale"}
	return deployments.Replies{Replies: append([]engine.Reply{stale}, e.replies[p.Cursor:]...), Cursor: len(e.replies)},
		nil
}

func register(c *conversation, name string, inputs engine.Bag) (engine.Reply, error) {
	return c.ask(context.Background(), func(epoch, seq int) deployments.Message {
		return deployments.Message{Registered: &engine.Registered{
			Epoch: epoch, Seq: seq, Registration: engine.Registration{Name: name, Inputs: inputs},
		}}
	})
}

func converse(t *testing.T, runs Runs) *conversation {
	c := newConversation(runs, deployments.UpdateName{StackName: testStack, Version: "1"}, 2)
	ctx, cancel := context.WithCancel(context.Background())
	var holding sync.WaitGroup
	holding.Go(func() { c.hold(ctx) })
	t.Cleanup(func() { cancel(); holding.Wait() })
	return c
}

// One batch may be on its way by signal and one by poll; then comes the rest.
func TestEverythingThatWaitsGoesIntoTheNextSignal(t *testing.T) {
	e := &echo{open: make(chan struct{})}
	c := converse(t, e)
	var asking sync.WaitGroup
	for i := range 500 {
		asking.Go(func() {
			name := fmt.Sprint("r", i)
			if r, err := register(c, name, engine.Bag{}); err != nil || r.ID != name {
				t.Errorf("%s: %+v %v", name, r, err)
			}
		})
	}
	waitFor(t, func() bool { return c.said() == 500 })
	close(e.open)
	asking.Wait()
	if err := c.flush(t.Context()); err != nil || len(e.batches) > 4 {
		t.Errorf("%d signals of %v: %v", len(e.batches), e.batches, err)
	}
}

func TestASignalIsBoundedByBytes(t *testing.T) {
	e := &echo{open: make(chan struct{})}
	c := converse(t, e)
	big := engine.Bag{Digest: "d", Inline: []byte(`"` + strings.Repeat("x", maxSignal/3) + `"`)}
	var asking sync.WaitGroup
	for i := range 7 {
		asking.Go(func() { _, _ = register(c, fmt.Sprint(i), big) })
	}
	waitFor(t, func() bool { return c.said() == 7 })
	close(e.open)
	asking.Wait()
	for _, n := range e.batches {
		if n > 2 {
			t.Errorf("signals of %v", e.batches)
		}
	}
}

func TestWhatIsDeliveredTwiceIsAnsweredOnceAndAnEndIsTold(t *testing.T) {
	e := &echo{open: make(chan struct{}), fail: 2}
	close(e.open)
	c := converse(t, e)
	if r, err := register(c, "a", engine.Bag{}); err != nil || r.ID != "a" {
		t.Fatalf("%+v %v", r, err)
	}
	if err := c.flush(t.Context()); err != nil || len(e.items) != 1 {
		t.Errorf("%d items, %v", len(e.items), err)
	}
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	if _, err := register(c, "b", engine.Bag{}); !errors.Is(err, ErrRunEnded) {
		t.Errorf("%v", err)
	}
}

// said is the number of messages so far.
func (c *conversation) said() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.first - 1 + len(c.queue)
}
