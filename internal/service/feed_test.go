package service

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// sleeping is a Temporal whose updates run for ever, and do nothing that they would tell.
type sleeping struct{ client.Client }

func (sleeping) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
}

func (sleeping) QueryWorkflowWithOptions(
	context.Context, *client.QueryWorkflowWithOptionsRequest,
) (*client.QueryWorkflowWithOptionsResponse, error) {
	return nil, serviceerror.NewUnavailable("asleep")
}

func (sleeping) GetWorkflowHistory(
	ctx context.Context, _, _ string, _ bool, _ enums.HistoryEventFilterType,
) client.HistoryEventIterator {
	return &asleep{ctx: ctx}
}

// asleep is a history in which one activity has ended, and nothing else happens.
type asleep struct {
	ctx    context.Context
	events int
}

func (a *asleep) HasNext() bool { return true }

func (a *asleep) Next() (*historypb.HistoryEvent, error) {
	if a.events++; a.events > 1 {
		<-a.ctx.Done()
		return nil, a.ctx.Err()
	}
	return &historypb.HistoryEvent{Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{}}}, nil
}

// counting counts the requests to an object store.
type counting struct {
	bucket.Memory
	requests atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string) (bucket.Object, error) {
	c.requests.Add(1)
	return c.Memory.Get(ctx, key)
}

func (c *counting) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	c.requests.Add(1)
	return c.Memory.List(ctx, q)
}

func line(t *testing.T, s *Service, p updates.Part, text string) {
	t.Helper()
	data, err := eventlog.Encode([]deployments.WatchEvent{{Event: &apitype.EngineEvent{
		DiagnosticEvent: &apitype.DiagnosticEvent{Message: text},
	}}})
	must(t, err)
	must(t, s.Updates.AppendEvents(t.Context(), p, data))
}

// warmed makes what compresses, which is made at its first use, outside of a bubble.
func warmed(t *testing.T) {
	t.Helper()
	keys, err := seal.NewKeyring(make([]byte, 32))
	must(t, err)
	box := keys.Box("test")
	_, err = box.Open(box.Seal(make([]byte, 1000), ""), "")
	must(t, err)
}

func TestManyWatchersOfAnIdleUpdateCostTheStoreAsMuchAsOne(t *testing.T) {
	warmed(t)
	synctest.Test(t, func(t *testing.T) {
		const watchers, patience = 20, 10 * time.Minute
		objects := &counting{}
		store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
		must(t, err)
		must(t, store.CreateStack(t.Context(), dev, nil))
		s := New(sleeping{}, store, Readers{})
		u := deployments.UpdateName{StackName: dev, Version: "1"}
		output := func(number int) updates.Part {
			return updates.Part{Update: u, Stream: "output",
				Number: number}
		}
		must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: u, Status: "running"}))
		line(t, s, output(1), "begun")

		ctx, stop := context.WithCancel(t.Context())
		var lines atomic.Int64
		var all sync.WaitGroup
		for range watchers {
			all.Go(func() {
				_ = s.Watch(ctx, u, func(e deployments.WatchEvent) error { // ends with its context
					if e.Event != nil {
						lines.Add(1)
					}
					return nil
				})
			})
			time.Sleep(time.Second) // of the bubble: they come one after the other
		}
		objects.requests.Store(0)
		time.Sleep(patience)
		if each := float64(objects.requests.Load()) / watchers / patience.Seconds(); each > 0.1 {
			t.Errorf("each who watches costs %.3f requests a second", each)
		}
		if got := lines.Load(); got != watchers {
			t.Errorf("%d lines were seen, want %d", got, watchers)
		}
		objects.requests.Store(0)
		line(t, s, output(2), "awake")
		time.Sleep(2 * slow)
		if got := lines.Load(); got != 2*watchers {
			t.Errorf("%d lines were seen, want %d", got, 2*watchers)
		}
		stop()
		all.Wait()
		synctest.Wait()
		if len(s.feeds.all) != 0 {
			t.Errorf("%d feeds are left over", len(s.feeds.all))
		}
	})
}

func TestTheCacheOfLogsIsBounded(t *testing.T) {
	var f feeds
	of := []*feed{{watching: 1}, {watching: 1}, {}}
	for i := range 100 {
		f.keep(of[i%3], updates.Part{Stream: "output", Number: i + 1}, [][]byte{make([]byte, 1<<20)})
	}
	parts := len(of[0].parts) + len(of[1].parts)
	if f.bytes > cachedBytes || parts != len(f.order) || parts != cachedBytes>>20 || len(of[2].parts) > 0 {
		t.Errorf("%d bytes in %d parts are kept, and %d that nobody watches", f.bytes, parts, len(of[2].parts))
	}
	f.forget(of[0])
	if f.bytes != len(of[1].parts)<<20 || len(f.order) != len(of[1].parts) || of[0].parts != nil {
		t.Errorf("with one feed less %d bytes in %d parts are kept", f.bytes, len(f.order))
	}
}
