package activities

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// signals keeps what is signalled. Nobody polls it.
type signals chan deployments.Messages

func (s signals) Signal(_ context.Context, _ deployments.UpdateName, m deployments.Messages) error {
	s <- m
	return nil
}

func (s signals) Poll(ctx context.Context, _ deployments.UpdateName, _ deployments.Poll) (deployments.Replies, error) {
	<-ctx.Done()
	return deployments.Replies{}, ctx.Err()
}

// sent takes what waits as if a poll had carried it.
func (c *conversation) sent() {
	c.mu.Lock()
	n := len(c.take().Items)
	c.mu.Unlock()
	c.delivered(n)
}

// askTwice asks one question and, as soon as it is answered, the next; the first is on its way when it returns.
func askTwice(t *testing.T, runs Runs) (s *session, answers chan engine.Reply) {
	talk := newConversation(runs, deployments.UpdateName{StackName: testStack, Version: "1"}, 1)
	s = &session{}
	s.talk.Store(talk)
	answers = make(chan engine.Reply, 2)
	go func() {
		for _, name := range []string{"first", "second"} {
			r, err := register(talk, name, engine.Bag{})
			if err != nil {
				t.Error(err)
			}
			answers <- r
		}
	}()
	synctest.Wait()
	talk.sent()
	return s, answers
}

func TestAResultCarriesWhatIsAskedAfterItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := make(signals, 1)
		s, answers := askTwice(t, runs)
		answered, next := s.handOver(t.Context(), engine.Reply{Epoch: 1, Seq: 1, ID: "x"})
		if !answered || next == nil || next.First != 2 || len(next.Items) != 1 ||
			next.Items[0].Registered.Name != "second" {
			t.Fatalf("%v, %+v", answered, next)
		}
		if r := <-answers; r.ID != "x" {
			t.Errorf("the answer is %+v", r)
		}
		talk := s.talk.Load()
		if !talk.answer(engine.Reply{Epoch: 1, Seq: 2, ID: "y"}) || talk.flush(t.Context()) != nil {
			t.Error("the second is not answered, or not delivered")
		}
		<-answers
		if time.Sleep(2 * remindAfter); len(runs) > 0 {
			t.Errorf("it was signalled, too: %+v", <-runs)
		}
	})
}

func TestWhatALostResultCarriedIsSaidAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := make(signals, 1)
		s, answers := askTwice(t, runs)
		_, lost := s.handOver(t.Context(), engine.Reply{Epoch: 1, Seq: 1})
		again := <-runs
		if lost == nil || again.First != lost.First || len(again.Items) != 1 {
			t.Fatalf("%+v was said again as %+v", lost, again)
		}
		s.talk.Load().answer(engine.Reply{Epoch: 1, Seq: 2})
		<-answers
		<-answers
		if err := s.talk.Load().flush(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestAResultWaitsForNoQuestionWhileTheProgramHasOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, answers := askTwice(t, make(signals, 1))
		talk := s.talk.Load()
		go func() { _, _ = register(talk, "beside", engine.Bag{}) }()
		synctest.Wait()
		talk.sent()
		begin := time.Now()
		answered, next := s.handOver(t.Context(), engine.Reply{Epoch: 1, Seq: 1})
		if !answered || next != nil || time.Since(begin) > 0 {
			t.Errorf("%v, %+v after %v", answered, next, time.Since(begin))
		}
		<-answers
		for seq := 2; seq <= 3; seq++ {
			synctest.Wait()
			talk.answer(engine.Reply{Epoch: 1, Seq: seq})
		}
	})
}

// slow answers polls with what it is told to, and keeps what is signalled.
type slow struct {
	signals
	replies chan engine.Reply
	carried chan deployments.Messages
}

func (s slow) Poll(ctx context.Context, _ deployments.UpdateName, p deployments.Poll) (deployments.Replies, error) {
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

// A poll that carried a question stays open while its step takes long, or when a result brought the answer.
func TestTheEndOfAProgramWaitsForNoPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		runs := slow{make(signals, 5), make(chan engine.Reply), make(chan deployments.Messages, 1)}
		talk := converse(t, runs)
		go func() {
			_, _ = register(talk, "first", engine.Bag{})
			_, _ = register(talk, "second", engine.Bag{})
		}()
		<-runs.signals
		runs.replies <- engine.Reply{Epoch: 2, Seq: 1}
		carried := <-runs.carried
		talk.say(deployments.Message{Exited: &engine.ProgramExited{Epoch: 2}})
		begin := time.Now()
		if err := talk.flush(t.Context()); err != nil || time.Since(begin) > 0 {
			t.Errorf("%v after %v", err, time.Since(begin))
		}
		heard := map[int]bool{}
		for len(heard) < 2 {
			m := <-runs.signals
			heard[m.First] = true
		}
		if !heard[carried.First] || !heard[carried.First+1] {
			t.Errorf("heard were %v, not what the poll carried, %d, and the end", heard, carried.First)
		}
	})
}
