package worker

import (
	"context"
	"errors"
	"sync"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// last is a worker whose activities end when all others have been asked to stop, too.
type last struct {
	worker.Worker
	refuse error
	asked  *sync.WaitGroup
}

func (l *last) Start() error { return l.refuse }

func (l *last) Stop() {
	l.asked.Done()
	l.asked.Wait()
}

func TestWorkersStopAllAtOnce(t *testing.T) {
	var asked sync.WaitGroup
	asked.Add(3)
	stop, err := start(&last{asked: &asked}, &last{asked: &asked}, &last{asked: &asked})
	if err != nil {
		t.Fatal(err)
	}
	stop() // for ever, if one waits for another
}

func TestOnlyWorkersThatWereStartedAreStopped(t *testing.T) {
	refused := errors.New("no connection")
	var asked sync.WaitGroup
	asked.Add(1)
	stop, err := start(&last{asked: &asked}, &last{refuse: refused}, &last{})
	if !errors.Is(err, refused) {
		t.Errorf("the start says %v", err)
	}
	stop()
}

func TestAWorkerThatIsAskedToEndWhileItStartsEndsWithoutAnError(t *testing.T) {
	store, err := statestore.New(&bucket.Memory{}, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	away, err := client.NewLazyClient(client.Options{HostPort: "127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	defer away.Close()
	c := &Connection{Client: away, Store: store}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Run(ctx, Options{Organizations: []string{"initech"}}); err != nil {
		t.Errorf("it says %v", err)
	}
}
