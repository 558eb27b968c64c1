package service

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// handing is a Temporal in which an update is not there before it was looked for a few times.
type handing struct {
	client.Client
	late   string
	looks  int
	arrive func()
}

func (h *handing) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	if h.looks++; id != h.late || h.looks < 3 {
		return nil, serviceerror.NewNotFound("no such workflow")
	}
	h.arrive()
	return &workflowservice.DescribeWorkflowExecutionResponse{}, nil
}

func (h *handing) QueryWorkflowWithOptions(
	context.Context, *client.QueryWorkflowWithOptionsRequest,
) (*client.QueryWorkflowWithOptionsResponse, error) {
	return nil, serviceerror.NewNotFound("no such workflow")
}

// closeLog writes the log of an update that has ended.
func closeLog(t *testing.T, s *Service, info deployments.UpdateInfo) {
	t.Helper()
	info.Ended = time.Now()
	log, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
	must(t, err)
	must(t, s.Updates.PutInfo(t.Context(), info))
	must(t, s.Updates.AppendEvents(t.Context(), updates.Part{Update: info.Update, Stream: eventlog.RunStream, Number: 1},
		log))
}

// watchedToItsEnd watches an update to its end, and returns what is said meanwhile, and the status at the end.
func watchedToItsEnd(t *testing.T, s *Service, u deployments.UpdateName) (said, status string) {
	t.Helper()
	must(t, s.Watch(t.Context(), u, func(e deployments.WatchEvent) error {
		switch {
		case e.Event != nil && e.Event.DiagnosticEvent != nil:
			said += e.Event.DiagnosticEvent.Message
		case e.End != nil:
			status += e.End.Status
		}
		return nil
	}))
	return said, status
}

// The end of an update that moves is written before the update that it goes on as is queued.
func TestAWatcherWaitsForTheContinuationOfAnUpdate(t *testing.T) {
	s := newService(t)
	first, second := deployments.UpdateName{StackName: dev, Version: "1"},
		deployments.UpdateName{StackName: dev, Version: "2"}
	temporal := &handing{Client: s.temporal, late: deployments.UpdateWorkflowID(second), arrive: func() {
		closeLog(t, s, deployments.UpdateInfo{Update: second, Status: "succeeded"})
	}}
	s.temporal = temporal
	closeLog(t, s, deployments.UpdateInfo{Update: first, Status: string(deployments.StatusMigrated), Next: "2",
		Error: "its build is gone"})

	said, status := watchedToItsEnd(t, s, first)
	if want := "update 1 continues as update 2: its build is gone\n"; said != want || status != "succeeded" {
		t.Errorf("it said %q and ended %q after %d looks", said, status, temporal.looks)
	}
}

// All that the service knew of the former stack, in its bucket and in Temporal, was lost.
func TestAWatcherIsNotToldTheLogOfAFormerStack(t *testing.T) {
	objects := &bucket.Memory{}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), dev, nil))
	s := New(sleeping{}, store, Readers{})
	u := deployments.UpdateName{StackName: dev, Version: "1"}
	closeLog(t, s, deployments.UpdateInfo{Update: u, Status: "succeeded"})
	followed, leave := s.feeds.join(s, u, map[string]int{})
	p := updates.Part{Update: u, Stream: eventlog.RunStream, Number: 1}
	parts, err := s.Updates.ReadEvents(t.Context(), p, 1)
	must(t, err)
	s.feeds.keep(followed, p, parts)
	leave()
	storetest.Lose(t, objects)
	must(t, s.CreateStack(t.Context(), dev, nil))
	closeLog(t, s, deployments.UpdateInfo{Update: u, Status: "failed"})
	if _, status := watchedToItsEnd(t, s, u); status != "failed" {
		t.Errorf("the first update of the stack ended %q", status)
	}
}

func TestEveryEventSaysWhichStreamOfWhichUpdateItIsOf(t *testing.T) {
	s := newService(t)
	first, second := deployments.UpdateName{StackName: dev, Version: "1"},
		deployments.UpdateName{StackName: dev, Version: "2"}
	for _, u := range []deployments.UpdateName{first, second} {
		output, err := eventlog.Encode([]deployments.WatchEvent{{Event: &apitype.EngineEvent{}}})
		must(t, err)
		must(t, s.Updates.AppendEvents(t.Context(), updates.Part{Update: u, Stream: "output", Number: 1}, output))
	}
	closeLog(t, s, deployments.UpdateInfo{Update: first, Status: string(deployments.StatusMigrated), Next: "2"})
	closeLog(t, s, deployments.UpdateInfo{Update: second, Status: "succeeded"})
	s.temporal = &handing{Client: s.temporal, late: deployments.UpdateWorkflowID(second), looks: 2, arrive: func() {}}
	var streams []string
	must(t, s.Watch(t.Context(), first, func(e deployments.WatchEvent) error {
		if e.Event != nil {
			streams = append(streams, e.Stream)
		}
		return nil
	}))
	if want := []string{"1/output", "1/service", "2/output"}; !slices.Equal(streams, want) {
		t.Errorf("the streams are %v, want %v", streams, want)
	}
}

func TestADamagedPartOfALogIsReportedAndTheWatchContinues(t *testing.T) {
	for name, number := range map[string]int{"a part in the middle": 2, "the part with the end": 3} {
		t.Run(name, func(t *testing.T) {
			objects := &bucket.Memory{}
			store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
			must(t, err)
			must(t, store.CreateStack(t.Context(), dev, nil))
			s := New(sleeping{}, store, Readers{})
			u := deployments.UpdateName{StackName: dev, Version: "1"}
			part := updates.Part{Update: u, Stream: eventlog.RunStream, Number: 1}
			for _, text := range []string{"first", "second"} {
				line(t, s, part, text)
				part.Number++
			}
			info := deployments.UpdateInfo{Update: u, Status: "succeeded", Ended: time.Now()}
			end, err := eventlog.Encode([]deployments.WatchEvent{{End: &info}})
			must(t, err)
			must(t, s.Updates.AppendEvents(t.Context(), part, end))
			must(t, s.Updates.PutInfo(t.Context(), info))
			list, err := objects.List(t.Context(), bucket.Query{})
			must(t, err)
			for _, key := range list.Keys {
				if strings.HasSuffix(key, fmt.Sprintf("events/%s/%08d", eventlog.RunStream, number)) {
					_, err := objects.Put(t.Context(), key, []byte("no seal"), bucket.Condition{})
					must(t, err)
				}
			}
			var told []string
			must(t, s.Watch(t.Context(), u, func(e deployments.WatchEvent) error {
				switch {
				case e.End != nil:
					told = append(told, e.End.Status)
				case e.Event != nil:
					told = append(told, strings.TrimSpace(e.Event.DiagnosticEvent.Message))
				}
				return nil
			}))
			want := []string{"first", "second", "succeeded"}
			notice := fmt.Sprintf("part %d of the log %q of update 1 is damaged", number, eventlog.RunStream)
			if number == 2 {
				want[1] = notice
			} else {
				want = slices.Insert(want, 2, notice)
			}
			if !slices.EqualFunc(told, want, strings.HasPrefix) {
				t.Errorf("it told %q, want %q", told, want)
			}
		})
	}
}
