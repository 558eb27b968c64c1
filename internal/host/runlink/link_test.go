package runlink

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/runlink/runlinktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// echo answers every registration with its name as id, and may fail calls or deliver twice.
type echo struct {
	runlinktest.Order
	mu      sync.Mutex
	batches []int
	items   []deployments.Message
	replies []engine.Reply
	fail    int
	open    chan struct{} // signals wait for it
	closed  bool
	refuses bool
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
	if e.refuses {
		return fmt.Errorf("%w: too large", ErrRefused)
	}
	for _, item := range e.Take(m) {
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

func call(l *Link, name string, inputs engine.Bag) (engine.Reply, error) {
	return l.Call(context.Background(), func(epoch, seq int) deployments.Message {
		return deployments.Message{Registered: &engine.Registered{
			Epoch: epoch, Seq: seq, Registration: engine.Registration{Name: name, Inputs: inputs},
		}}
	})
}

func serve(t *testing.T, runs Runs) *Link {
	l := New(runs, deployments.UpdateName{StackName: stack, Version: "1"}, 2)
	ctx, cancel := context.WithCancel(context.Background())
	var holding sync.WaitGroup
	holding.Go(func() { l.Serve(ctx) })
	t.Cleanup(func() { cancel(); holding.Wait() })
	return l
}

// One batch may be on its way by signal and one by poll; then comes the rest.
func TestAllQueuedMessagesGoIntoTheNextSignal(t *testing.T) {
	e := &echo{open: make(chan struct{})}
	l := serve(t, e)
	var asking sync.WaitGroup
	for i := range 500 {
		asking.Go(func() {
			name := fmt.Sprint("r", i)
			if r, err := call(l, name, engine.Bag{}); err != nil || r.ID != name {
				t.Errorf("%s: %+v %v", name, r, err)
			}
		})
	}
	waittest.Until(t, "500 messages are queued", func() bool { return l.queuedSoFar() == 500 })
	close(e.open)
	asking.Wait()
	if err := l.Flush(t.Context()); err != nil || len(e.batches) > 4 {
		t.Errorf("%d signals of %v: %v", len(e.batches), e.batches, err)
	}
}

func TestASignalIsBoundedByBytes(t *testing.T) {
	e := &echo{open: make(chan struct{})}
	l := serve(t, e)
	big := engine.Bag{Digest: "d", Inline: []byte(`"` + strings.Repeat("x", maxSignal/3) + `"`)}
	var asking sync.WaitGroup
	for i := range 7 {
		asking.Go(func() { _, _ = call(l, fmt.Sprint(i), big) })
	}
	waittest.Until(t, "7 messages are queued", func() bool { return l.queuedSoFar() == 7 })
	close(e.open)
	asking.Wait()
	for _, n := range e.batches {
		if n > 2 {
			t.Errorf("signals of %v", e.batches)
		}
	}
}

func TestMessagesThatAreDeliveredTwiceHaveOneReplyAndTheEndOfTheRunIsReported(t *testing.T) {
	e := &echo{open: make(chan struct{}), fail: 2}
	close(e.open)
	l := serve(t, e)
	if r, err := call(l, "a", engine.Bag{}); err != nil || r.ID != "a" {
		t.Fatalf("%+v %v", r, err)
	}
	if err := l.Flush(t.Context()); err != nil || len(e.items) != 1 {
		t.Errorf("%d items, %v", len(e.items), err)
	}
	e.mu.Lock()
	e.closed = true
	e.mu.Unlock()
	if _, err := call(l, "b", engine.Bag{}); !errors.Is(err, ErrRunEnded) {
		t.Errorf("%v", err)
	}
}

func TestARefusedMessageIsNotSentAgain(t *testing.T) {
	e := &echo{open: make(chan struct{}), refuses: true}
	close(e.open)
	l := serve(t, e)
	if _, err := call(l, "a", engine.Bag{}); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
	if err := l.Flush(t.Context()); !errors.Is(err, ErrRefused) {
		t.Errorf("%v", err)
	}
}

// queuedSoFar is the number of messages that were queued until now.
func (l *Link) queuedSoFar() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.first - 1 + len(l.queue)
}

func TestACallWhoseContextEndsIsForgotten(t *testing.T) {
	l := New(make(signals), deployments.UpdateName{}, 1)
	for range 100 {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err := l.Call(ctx, func(_, seq int) deployments.Message {
			return deployments.Message{Registered: &engine.Registered{Seq: seq}}
		})
		if !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	if len(l.waiting) != 0 {
		t.Errorf("%d replies are waited for", len(l.waiting))
	}
}

var stack = deployments.StackName{Organization: "organization", Project: "test", Stack: "dev"}
