package service

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/updates"
)

// brief is a Temporal with an update that runs, has claimed its stack at once, and is committed after a while.
type brief struct {
	sleeping
	committed time.Duration
}

func (brief) DescribeWorkflowExecution(
	context.Context, string, string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
		Status: enums.WORKFLOW_EXECUTION_STATUS_RUNNING}}, nil
}

func (b brief) GetWorkflowHistory(
	context.Context, string, string, bool, enums.HistoryEventFilterType,
) client.HistoryEventIterator {
	return &briefly{committed: b.committed}
}

// briefly is the history of such an update.
type briefly struct {
	committed time.Duration
	events    int
}

func (b *briefly) HasNext() bool { return b.events < 4 }

func (b *briefly) Next() (*historypb.HistoryEvent, error) {
	b.events++
	e := &historypb.HistoryEvent{EventId: int64(b.events), EventTime: timestamppb.Now()}
	name := map[bool]string{true: deployments.ActivityClaimStack, false: deployments.ActivityCommitUpdate}[b.events < 3]
	if b.events%2 == 1 {
		e.Attributes = &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{
			ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
				ActivityType: &commonpb.ActivityType{Name: name}}}
		return e, nil
	}
	if name == deployments.ActivityCommitUpdate {
		time.Sleep(b.committed) // of the bubble
	}
	e.Attributes = &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{
		ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: int64(b.events - 1)}}
	return e, nil
}

// listing counts the lists of an object store.
type listing struct {
	bucket.Memory
	lists atomic.Int64
}

func (l *listing) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	l.lists.Add(1)
	return l.Memory.List(ctx, q)
}

func TestAWatcherLooksForWhatMayBeThere(t *testing.T) {
	warmed(t)
	for committed, most := range map[time.Duration]int64{
		firstPart / 2: 1, firstPart + firstPart/2: 2, 10 * time.Second: 8, // with the end
	} {
		synctest.Test(t, func(t *testing.T) {
			objects := &listing{}
			store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
			must(t, err)
			must(t, store.CreateStack(t.Context(), dev, nil))
			s := New(brief{committed: committed}, store, Readers{})
			u := deployments.UpdateName{StackName: dev, Version: "1"}
			objects.lists.Store(0)
			began := time.Now()
			time.AfterFunc(committed-time.Nanosecond, func() {
				run := updates.Part{Update: u, Stream: eventlog.RunStream, Number: 1}
				line(t, s, run, "done")
				run.Number++
				end, err := eventlog.Encode([]deployments.WatchEvent{{End: &deployments.UpdateInfo{Update: u,
					Status: "succeeded"}}})
				must(t, err)
				must(t, s.Updates.AppendEvents(t.Context(), run, end))
			})
			var said []string
			must(t, s.Watch(t.Context(), u, func(e deployments.WatchEvent) error {
				switch {
				case e.End != nil:
					said = append(said, e.End.Status)
				case e.Event != nil:
					said = append(said, e.Event.DiagnosticEvent.Message)
				}
				return nil
			}))
			if took := time.Since(began); took > committed+brisk || len(said) != 2 || said[1] != "succeeded" {
				t.Errorf("after %v it has said %q", took, said)
			}
			if n := objects.lists.Load(); n > most {
				t.Errorf("of an update of %v its log is listed %d times", committed, n)
			}
			synctest.Wait()
		})
	}
}
