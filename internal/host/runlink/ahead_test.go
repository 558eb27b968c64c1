package runlink

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// offered returns a link that answers ahead, and what it offers.
func offered(t *testing.T) (l *Link, runs signals, offers *[]int) {
	runs, offers = make(signals, 100), &[]int{}
	l = New(runs, deployments.UpdateName{StackName: stack, Version: "1"}, 1)
	l.AnswerAhead(func(m deployments.Message) { *offers = append(*offers, m.Registered.Seq) })
	ctx, cancel := context.WithCancel(t.Context())
	go l.Serve(ctx)
	t.Cleanup(func() {
		cancel()
		synctest.Wait()
	})
	return l, runs, offers
}

// callAhead makes a call, whose reply has its name as id, and waits until it is offered.
func callAhead(t *testing.T, l *Link, name string) {
	go func() {
		if r, err := call(l, name, engine.Bag{}); err == nil && r.ID != name {
			t.Errorf("the reply to %s is %+v", name, r)
		}
	}()
	synctest.Wait()
}

func TestWhatIsAnsweredAheadGoesToTheRunInOneSignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, runs, offers := offered(t)
		for seq := 1; seq <= 3; seq++ {
			name := fmt.Sprint("r", seq)
			callAhead(t, l, name)
			l.Answer(engine.Reply{Epoch: 1, Seq: seq, ID: name}, engine.Ahead{Answer: name})
		}
		if len(*offers) != 3 || len(runs) > 0 {
			t.Fatalf("%v were offered, %d signals were sent at once", *offers, len(runs))
		}
		got := <-runs
		if len(got.Items) != 3 || got.First != 1 {
			t.Fatalf("the signal is %+v", got)
		}
		for i, item := range got.Items {
			if want := fmt.Sprint("r", i+1); item.Registered.Name != want || item.Registered.Ahead.Answer != want {
				t.Errorf("item %d is %+v", i, item.Registered)
			}
		}
	})
}

func TestACallWaitsForEarlierCallsThatAreNotAnsweredYet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, runs, _ := offered(t)
		callAhead(t, l, "r1")
		callAhead(t, l, "r2")
		l.Answer(engine.Reply{Epoch: 1, Seq: 2, ID: "r2"}, engine.Ahead{Answer: "r2"})
		settled(runs)
		if len(runs) > 0 {
			t.Fatalf("%+v was sent before the first", <-runs)
		}
		l.GoOn()
		got := <-runs
		if len(got.Items) != 2 || got.Items[0].Registered.Ahead != nil || got.Items[1].Registered.Ahead == nil {
			t.Fatalf("the signal is %+v", got)
		}
		l.deliver(engine.Reply{Epoch: 1, Seq: 1, ID: "r1"})
		callAhead(t, l, "r3")
		if got := <-runs; got.First != 3 || got.Items[0].Registered.Ahead != nil {
			t.Errorf("after that, a call was sent as %+v", got)
		}
		l.deliver(engine.Reply{Epoch: 1, Seq: 3, ID: "r3"})
	})
}

// settled waits longer than messages are gathered.
func settled(runs signals) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*gatherFor)
	defer cancel()
	<-ctx.Done()
	synctest.Wait()
}
