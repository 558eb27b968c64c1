package service

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/activities"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// handing is a Temporal in which an update is not there before it was looked for a few times.
type handing struct {
	client.Client
	late   string
	looks  int
	arrive func()
}

func (h *handing) DescribeWorkflowExecution(_ context.Context, id, _ string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
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
	log, err := activities.EncodeEvents([]deployments.WatchEvent{{End: &info}})
	must(t, err)
	must(t, s.PutInfo(t.Context(), info))
	must(t, s.AppendEvents(t.Context(), statestore.Part{Update: info.Update, Stream: activities.RunStream, Number: 1}, log))
}

// The end of an update that moves is written before the update that it goes on as is queued.
func TestAWatcherWaitsForWhatAnUpdateGoesOnAs(t *testing.T) {
	s := newService(t)
	first, second := deployments.UpdateName{StackName: dev, Version: "1"}, deployments.UpdateName{StackName: dev, Version: "2"}
	temporal := &handing{Client: s.temporal, late: deployments.UpdateWorkflowID(second), arrive: func() {
		closeLog(t, s, deployments.UpdateInfo{Update: second, Status: "succeeded"})
	}}
	s.temporal = temporal
	closeLog(t, s, deployments.UpdateInfo{Update: first, Status: string(deployments.StatusMoved), Next: "2", Error: "its build is gone"})

	var said, status string
	must(t, s.Watch(t.Context(), first, func(e deployments.WatchEvent) error {
		switch {
		case e.Event != nil && e.Event.DiagnosticEvent != nil:
			said += e.Event.DiagnosticEvent.Message
		case e.End != nil:
			status += e.End.Status
		}
		return nil
	}))
	if want := "update 1 goes on as update 2: its build is gone\n"; said != want || status != "succeeded" {
		t.Errorf("it said %q and ended %q after %d looks", said, status, temporal.looks)
	}
}

func TestEveryEventSaysWhichStreamOfWhichUpdateItIsOf(t *testing.T) {
	s := newService(t)
	first, second := deployments.UpdateName{StackName: dev, Version: "1"}, deployments.UpdateName{StackName: dev, Version: "2"}
	for _, u := range []deployments.UpdateName{first, second} {
		output, err := activities.EncodeEvents([]deployments.WatchEvent{{Event: &apitype.EngineEvent{}}})
		must(t, err)
		must(t, s.AppendEvents(t.Context(), statestore.Part{Update: u, Stream: "output", Number: 1}, output))
	}
	closeLog(t, s, deployments.UpdateInfo{Update: first, Status: string(deployments.StatusMoved), Next: "2"})
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
