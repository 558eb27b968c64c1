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
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// cluster answers as the server does: with every activity that is asked for, and to polls with what is put into
// offered.
type cluster struct {
	offered chan string
	polled  chan context.Context // of each poll that has begun
	refuse  error
}

func (c *cluster) invoke(
	ctx context.Context, _ string, request, reply any, _ *grpc.ClientConn, _ ...grpc.CallOption,
) error {
	switch request := request.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		if c.refuse != nil {
			return c.refuse
		}
		to := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse)
		for _, command := range request.Commands {
			if a := command.GetScheduleActivityTaskCommandAttributes(); a.GetRequestEagerExecution() {
				to.ActivityTasks = append(to.ActivityTasks, &workflowservice.PollActivityTaskQueueResponse{
					ActivityId: a.GetActivityId()})
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
	err = s.intercept(s.Context(), "", &workflowservice.RespondWorkflowTaskCompletedRequest{Commands: commands},
		&answer, nil, s.invoke)
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
	if got, err := s.pollOnce(waittest.Context(s)); err != nil || got != want {
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
	waittest.For(t, "the poll at the server ends", (<-s.polled).Done())
}

func TestNoMoreIsAskedForThanPollersCanTake(t *testing.T) {
	s := newSDK(t)
	s.refuse = errors.New("unavailable")
	if _, err := s.complete(schedule("a", "mine", false)); err == nil {
		t.Fatal("no error")
	}
	s.refuse = nil
	var many []*commandpb.Command
	for i := range slotsOfQueue + 1 {
		many = append(many, schedule(strconv.Itoa(i), "mine", false))
	}
	if _, err := s.complete(many...); err != nil {
		t.Fatal(err)
	}
	if many[slotsOfQueue].GetScheduleActivityTaskCommandAttributes().GetRequestEagerExecution() ||
		len(s.tasks) != slotsOfQueue {
		t.Fatal("more was asked for than there is room for")
	}
	for i := range slotsOfQueue {
		s.mustPoll(strconv.Itoa(i))
	}
	if s.taken != 0 {
		t.Fatalf("%d slots are taken after all tasks were polled", s.taken)
	}
}

// slots are those of a worker that polls through s; all but the given number are reserved.
func (s sdk) slots(free int) worker.SlotSupplier {
	s.Helper()
	options, err := s.withSlots(worker.Options{MaxConcurrentActivityExecutionSize: slotsOfQueue})
	if err != nil {
		s.Fatal(err)
	}
	c, err := client.NewLazyClient(client.Options{})
	if err != nil {
		s.Fatal(err)
	}
	defer c.Close()
	_ = worker.New(c, "mine", options) // panics at options that contradict each other
	slots := options.Tuner.GetActivityTaskSlotSupplier()
	for range slotsOfQueue - free {
		s.reserve(slots)
	}
	return slots
}

func (s sdk) reserve(slots worker.SlotSupplier) {
	s.Helper()
	if _, err := slots.ReserveSlot(s.Context(), nil); err != nil {
		s.Fatal(err)
	}
}

// asks tells whether a task is asked for eagerly.
func (s sdk) asks(id string) bool {
	s.Helper()
	command := schedule(id, "mine", false)
	if _, err := s.complete(command); err != nil {
		s.Fatal(err)
	}
	return command.GetScheduleActivityTaskCommandAttributes().GetRequestEagerExecution()
}

func TestNothingIsAskedForThatWouldWaitForAnActivityToEnd(t *testing.T) {
	s := newSDK(t)
	slots := s.slots(1)
	if !s.asks("a") || s.asks("b") {
		t.Fatal("what is asked for is not just what there is a slot for")
	}
	s.reserve(slots)
	s.mustPoll("a")
	if s.asks("c") {
		t.Fatal("more was asked for while every slot was taken")
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := slots.ReserveSlot(ended, nil); err == nil {
		t.Fatal("there was another slot")
	}
	slots.ReleaseSlot(nil)
	if !s.asks("d") {
		t.Fatal("nothing was asked for when an activity had ended")
	}
}

func TestAPollThatATaskHasOvertakenKeepsASlotFree(t *testing.T) {
	s := newSDK(t)
	slots := s.slots(1)
	polled := make(chan string)
	go func() {
		id, _ := s.pollOnce(s.Context())
		polled <- id
	}()
	<-s.polled
	if !s.asks("a") || <-polled != "a" {
		t.Fatal("the poll was not overtaken")
	}
	if s.asks("b") {
		t.Fatal("the last slot was given away, though the server may still answer the poll")
	}
	s.reserve(slots)
	go func() { s.offered <- "c" }()
	s.mustPoll("c")
	slots.ReleaseSlot(nil)
	if !s.asks("d") {
		t.Fatal("nothing was asked for when an activity had ended")
	}
}

func TestTheLargestUpdateAndWhatItHasAheadLeaveRoomForOthers(t *testing.T) {
	if room := mostOfOrganization - deployments.MaxParallel*3/2; room < 100 {
		t.Fatalf("there is room for %d others", room)
	}
}
