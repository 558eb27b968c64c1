package runlink

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// signals keeps what is signalled. Its polls bring nothing.
type signals chan deployments.Messages

func (s signals) Signal(_ context.Context, _ deployments.UpdateName, m deployments.Messages) error {
	s <- m
	return nil
}

func (s signals) Poll(ctx context.Context, _ deployments.UpdateName, _ deployments.Poll) (deployments.Replies, error) {
	<-ctx.Done()
	return deployments.Replies{}, ctx.Err()
}

// sent dequeues what waits, as if a poll had carried it.
func (l *Link) sent() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acknowledge(len(l.dequeue().Items))
}

// callTwice makes one call and, as soon as it has its reply, the next; the first is sent when it returns.
func callTwice(t *testing.T, runs Runs) (l *Link, replies chan engine.Reply) {
	l = New(runs, deployments.UpdateName{StackName: stack, Version: "1"}, 1)
	replies = make(chan engine.Reply, 2)
	go func() {
		for _, name := range []string{"first", "second"} {
			r, err := call(l, name, engine.Bag{})
			if err != nil {
				t.Error(err)
			}
			replies <- r
		}
	}()
	synctest.Wait()
	l.sent()
	return l, replies
}

func TestAResultCarriesTheCallThatFollowsItsReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := make(signals, 1)
		l, replies := callTwice(t, runs)
		delivered, next := l.ReplyEarly(t.Context(), engine.Reply{Epoch: 1, Seq: 1, ID: "x"})
		if !delivered || next == nil || next.First != 2 || len(next.Items) != 1 ||
			next.Items[0].Registered.Name != "second" {
			t.Fatalf("%v, %+v", delivered, next)
		}
		if r := <-replies; r.ID != "x" {
			t.Errorf("the reply is %+v", r)
		}
		if !l.deliver(engine.Reply{Epoch: 1, Seq: 2, ID: "y"}) || l.Flush(t.Context()) != nil {
			t.Error("the second call has no reply, or was not delivered")
		}
		<-replies
		if time.Sleep(2 * retransmitAfter); len(runs) > 0 {
			t.Errorf("it was signalled, too: %+v", <-runs)
		}
	})
}

func TestWhatALostResultCarriedIsRetransmitted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := make(signals, 1)
		l, replies := callTwice(t, runs)
		_, lost := l.ReplyEarly(t.Context(), engine.Reply{Epoch: 1, Seq: 1})
		repeated := <-runs
		if lost == nil || repeated.First != lost.First || len(repeated.Items) != 1 {
			t.Fatalf("%+v was retransmitted as %+v", lost, repeated)
		}
		l.deliver(engine.Reply{Epoch: 1, Seq: 2})
		<-replies
		<-replies
		if err := l.Flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAResultWaitsForNoCallWhileTheProgramAwaitsOtherReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, replies := callTwice(t, make(signals, 1))
		go func() { _, _ = call(l, "beside", engine.Bag{}) }()
		synctest.Wait()
		l.sent()
		begin := time.Now()
		delivered, next := l.ReplyEarly(t.Context(), engine.Reply{Epoch: 1, Seq: 1})
		if !delivered || next != nil || time.Since(begin) > 0 {
			t.Errorf("%v, %+v after %v", delivered, next, time.Since(begin))
		}
		<-replies
		for seq := 2; seq <= 3; seq++ {
			synctest.Wait()
			l.deliver(engine.Reply{Epoch: 1, Seq: seq})
		}
	})
}

// slowRuns replies to polls when the test says so, and keeps what is signalled.
type slowRuns struct {
	signals
	replies chan engine.Reply
	carried chan deployments.Messages
}

func (s slowRuns) Poll(ctx context.Context, _ deployments.UpdateName, p deployments.Poll) (deployments.Replies, error) {
	if p.Messages != nil {
		s.carried <- *p.Messages
	}
	select {
	case r := <-s.replies:
		return deployments.Replies{Replies: []engine.Reply{r}, Cursor: p.Cursor + 1}, nil
	case <-ctx.Done():
		return deployments.Replies{}, ctx.Err()
	}
}

// A poll that carried a call stays open while its step takes long, or when a result brought the reply.
func TestTheEndOfAProgramWaitsForNoPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := slowRuns{make(signals, 5), make(chan engine.Reply), make(chan deployments.Messages, 1)}
		l := serve(t, runs)
		go func() {
			_, _ = call(l, "first", engine.Bag{})
			_, _ = call(l, "second", engine.Bag{})
		}()
		<-runs.signals
		runs.replies <- engine.Reply{Epoch: 2, Seq: 1}
		carried := <-runs.carried
		l.Send(deployments.Message{Exited: &engine.ProgramExited{Epoch: 2}})
		begin := time.Now()
		if err := l.Flush(t.Context()); err != nil || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		received := map[int]bool{}
		for len(received) < 2 {
			m := <-runs.signals
			received[m.First] = true
		}
		if !received[carried.First] || !received[carried.First+1] {
			t.Errorf("%v were received, not what the poll carried, %d, and the end", received, carried.First)
		}
	})
}
