package worker

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"time"

	commandpb "go.temporal.io/api/command/v1"
	taskqueuepb "go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// cluster answers as the server does: with every activity that is asked for, and to polls with what is put into offered.
type cluster struct {
	offered chan string
	polled  chan context.Context // of each poll that has begun
	refuse  error
}

func (c *cluster) invoke(ctx context.Context, _ string, request, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption) error {
	switch request := request.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		if c.refuse != nil {
			return c.refuse
		}
		to := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse)
		for _, command := range request.Commands {
			if a := command.GetScheduleActivityTaskCommandAttributes(); a.GetRequestEagerExecution() {
				to.ActivityTasks = append(to.ActivityTasks, &workflowservice.PollActivityTaskQueueResponse{ActivityId: a.GetActivityId()})
			}
		}
	case *workflowservice.PollActivityTaskQueueRequest:
		c.polled <- ctx
		select {
		case id := <-c.offered:
			proto.Merge(reply.(proto.Message), &workflowservice.PollActivityTaskQueueResponse{ActivityId: id})
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

func schedule(id, queue string, wanted bool) *commandpb.Command {
	return &commandpb.Command{Attributes: &commandpb.Command_ScheduleActivityTaskCommandAttributes{
		ScheduleActivityTaskCommandAttributes: &commandpb.ScheduleActivityTaskCommandAttributes{
			ActivityId: id, TaskQueue: &taskqueuepb.TaskQueue{Name: queue}, RequestEagerExecution: wanted,
		},
	}}
}

// sdk calls the server through an eager, as the SDK does.
type sdk struct {
	*testing.T
	*eager
	*cluster
}

func newSDK(t *testing.T) sdk {
	s := sdk{t, newEager(), &cluster{offered: make(chan string), polled: make(chan context.Context, 10)}}
	s.serve("mine")
	return s
}

// complete answers a workflow task and gives the activities that the SDK gets to see.
func (s sdk) complete(commands ...*commandpb.Command) (ids []string, err error) {
	var answer workflowservice.RespondWorkflowTaskCompletedResponse
	err = s.intercept(s.Context(), "", &workflowservice.RespondWorkflowTaskCompletedRequest{Commands: commands}, &answer, nil, s.invoke)
	for _, task := range answer.ActivityTasks {
		ids = append(ids, task.GetActivityId())
	}
	return ids, err
}

func (s sdk) pollOnce(ctx context.Context) (string, error) {
	var answer workflowservice.PollActivityTaskQueueResponse
	request := &workflowservice.PollActivityTaskQueueRequest{TaskQueue: &taskqueuepb.TaskQueue{Name: "mine"}}
	err := s.intercept(ctx, "", request, &answer, nil, s.invoke)
	return answer.GetActivityId(), err
}

func (s sdk) mustPoll(want string) {
	s.Helper()
	ctx, cancel := context.WithTimeout(s.Context(), time.Minute)
	defer cancel()
	if got, err := s.pollOnce(ctx); err != nil || got != want {
		s.Fatalf("polled %q, %v; want %q", got, err, want)
	}
}

func TestActivitiesOfTheOwnQueueAreHandedOutWithTheAnswerThatSchedulesThem(t *testing.T) {
	s := newSDK(t)
	seen, err := s.complete(schedule("a", "mine", false), schedule("b", "shared", true), schedule("c", "other", false))
	if err != nil || len(seen) != 1 || seen[0] != "b" {
		t.Fatalf("the SDK sees %v, %v; want what it asked for itself", seen, err)
	}
	s.mustPoll("a")
}

func TestAPollThatATaskHasOvertakenAnswersTheNext(t *testing.T) {
	s := newSDK(t)
	first := make(chan string)
	go func() {
		id, _ := s.pollOnce(s.Context())
		first <- id
	}()
	<-s.polled
	if _, err := s.complete(schedule("a", "mine", false)); err != nil {
		t.Fatal(err)
	}
	if id := <-first; id != "a" {
		t.Fatalf("polled %q", id)
	}
	go func() { s.offered <- "b" }()
	s.mustPoll("b")
	if len(s.polled) != 0 {
		t.Fatal("there was a second poll at the server")
	}
}

func TestAWorkerThatStopsEndsItsPolls(t *testing.T) {
	s := newSDK(t)
	ctx, stop := context.WithCancel(s.Context())
	time.AfterFunc(0, func() { stop() })
	if _, err := s.pollOnce(ctx); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	select {
	case <-(<-s.polled).Done():
	case <-time.After(time.Minute):
		t.Fatal("the poll is still open at the server")
	}
}

func TestNoMoreIsAskedForThanPollersCanTake(t *testing.T) {
	s := newSDK(t)
	s.refuse = errors.New("unavailable")
	if _, err := s.complete(schedule("a", "mine", false)); err == nil {
		t.Fatal("no error")
	}
	s.refuse = nil
	var many []*commandpb.Command
	for i := range concurrent + 1 {
		many = append(many, schedule(strconv.Itoa(i), "mine", false))
	}
	if _, err := s.complete(many...); err != nil {
		t.Fatal(err)
	}
	if many[concurrent].GetScheduleActivityTaskCommandAttributes().GetRequestEagerExecution() || len(s.tasks) != concurrent {
		t.Fatal("more was asked for than there is room for")
	}
	for i := range concurrent {
		s.mustPoll(strconv.Itoa(i))
	}
	if s.owed != 0 {
		t.Fatalf("%d tasks are owed after all were polled", s.owed)
	}
}
