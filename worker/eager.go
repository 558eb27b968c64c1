package worker

import (
	"context"
	"errors"
	"sync"

	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
)

// eager hands activities of a worker's private queue to that worker in the answer that schedules them. The server can
// do so for any queue and any number; the SDK asks for three at most, and only on the queue of the workflow itself. It
// saves a transaction and two hops an activity, which is about half of what the server spends on it.
//
// It sits between the SDK and the server: it marks commands for the queue on their way out, takes the tasks out of the
// answer, and gives them to the queue's pollers. What the server hands out meanwhile is kept for the next poll. A task
// that its process loses is lost like any other that was polled.
//
// Invariant: whatever the server may hand out has a slot, since time runs for an activity from then on.
type eager struct {
	mu    sync.Mutex
	queue string // empty while there is no worker: then nothing is marked
	// slots of pollers and activities, tasks that were asked for or are not polled yet, and overtaken polls
	taken int

	tasks chan *workflowservice.PollActivityTaskQueueResponse
	polls chan *openPoll // those that a task has overtaken
}

// openPoll is a poll at the server.
type openPoll struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when answer or err is there
	answer *workflowservice.PollActivityTaskQueueResponse
	err    error
}

func newEager() *eager {
	return &eager{
		tasks: make(chan *workflowservice.PollActivityTaskQueueResponse, concurrent),
		polls: make(chan *openPoll, concurrent),
	}
}

// serve says whose queue it is. It is called once, before its workers start.
func (e *eager) serve(queue string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = queue
}

// room makes options those of the queue's worker: eager knows of its slots.
func (e *eager) room(o worker.Options) (worker.Options, error) {
	tuner, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{NumActivitySlots: concurrent})
	o.MaxConcurrentActivityExecutionSize, o.Tuner = 0, room{tuner, e}
	return o, err
}

type room struct {
	worker.WorkerTuner
	eager *eager
}

// GetActivityTaskSlotSupplier gives the slots for activities.
func (r room) GetActivityTaskSlotSupplier() worker.SlotSupplier {
	return slots{r.WorkerTuner.GetActivityTaskSlotSupplier(), r.eager}
}

// slots count as taken from before a poll until the activity that it brought has been answered for. TryReserveSlot is
// not counted: the SDK calls it only in workers that carry out workflows.
type slots struct {
	worker.SlotSupplier
	eager *eager
}

// ReserveSlot waits for a slot.
func (s slots) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	s.eager.occupy(1)
	permit, err := s.SlotSupplier.ReserveSlot(ctx, info)
	if err != nil {
		s.eager.occupy(-1)
	}
	return permit, err
}

// ReleaseSlot gives a slot back.
func (s slots) ReleaseSlot(info worker.SlotReleaseInfo) {
	s.SlotSupplier.ReleaseSlot(info)
	s.eager.occupy(-1)
}

// intercept is a grpc.UnaryClientInterceptor.
func (e *eager) intercept(
	ctx context.Context, method string, request, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker,
	options ...grpc.CallOption,
) error {
	call := func(ctx context.Context, reply any) error {
		return invoke(ctx, method, request, reply, conn, options...)
	}
	switch request := request.(type) {
	case *workflowservice.RespondWorkflowTaskCompletedRequest:
		answer, ok := reply.(*workflowservice.RespondWorkflowTaskCompletedResponse)
		if !ok {
			break
		}
		asked := e.mark(request)
		err := call(ctx, reply)
		e.take(answer, asked)
		return err
	case *workflowservice.PollActivityTaskQueueRequest:
		answer, ok := reply.(*workflowservice.PollActivityTaskQueueResponse)
		if !ok || !e.serves(request.GetTaskQueue().GetName()) {
			break
		}
		return e.poll(ctx, answer, func(ctx context.Context, to *workflowservice.PollActivityTaskQueueResponse) error {
			return call(ctx, to)
		})
	}
	return call(ctx, reply)
}

func (e *eager) serves(queue string) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.queue != "" && queue == e.queue
}

// mark asks for the queue's activities, as far as there is room, and gives their ids.
func (e *eager) mark(r *workflowservice.RespondWorkflowTaskCompletedRequest) map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := map[string]bool{}
	for _, c := range r.GetCommands() {
		a := c.GetScheduleActivityTaskCommandAttributes()
		if a == nil || e.queue == "" || a.GetTaskQueue().GetName() != e.queue {
			continue
		}
		if a.RequestEagerExecution = e.taken < concurrent; a.RequestEagerExecution {
			asked[a.GetActivityId()] = true
			e.taken++
		}
	}
	return asked
}

// take moves what was asked for from the answer to the pollers. The SDK does not know of it.
func (e *eager) take(r *workflowservice.RespondWorkflowTaskCompletedResponse, asked map[string]bool) {
	if len(asked) == 0 {
		return
	}
	var others []*workflowservice.PollActivityTaskQueueResponse
	taken := 0
	for _, task := range r.GetActivityTasks() {
		if !asked[task.GetActivityId()] {
			others = append(others, task)
			continue
		}
		taken++
		e.tasks <- task // there is room: it counts as taken
	}
	r.ActivityTasks = others
	e.occupy(taken - len(asked))
}

func (e *eager) occupy(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.taken += n
}

// poll answers with a task that is here, or with the server's answer.
func (e *eager) poll(
	ctx context.Context, to *workflowservice.PollActivityTaskQueueResponse,
	call func(context.Context, *workflowservice.PollActivityTaskQueueResponse) error,
) error {
	select {
	case task := <-e.tasks:
		e.occupy(-1) // the poller has a slot
		return give(to, task)
	default:
	}
	var p *openPoll
	select {
	case p = <-e.polls:
		e.occupy(-1)
	default:
		p = open(ctx, call)
	}
	select {
	case task := <-e.tasks:
		e.polls <- p // what was taken for the task now is for the poll
		return give(to, task)
	case <-p.done:
		proto.Merge(to, p.answer)
		return p.err
	case <-ctx.Done():
		p.cancel()
		if errors.Is(ctx.Err(), context.Canceled) {
			e.hangUp()
		}
		return ctx.Err()
	}
}

func give(to, task *workflowservice.PollActivityTaskQueueResponse) error {
	proto.Merge(to, task)
	return nil
}

// hangUp ends the polls that nobody waits for: their worker stops.
func (e *eager) hangUp() {
	for {
		select {
		case p := <-e.polls:
			p.cancel()
		default:
			return
		}
	}
}

// open begins a poll that lasts as long as ctx would have, but is not cancelled with it.
func open(
	ctx context.Context, call func(context.Context, *workflowservice.PollActivityTaskQueueResponse) error,
) *openPoll {
	p := &openPoll{done: make(chan struct{}), answer: &workflowservice.PollActivityTaskQueueResponse{}}
	polling := context.WithoutCancel(ctx)
	if deadline, ok := ctx.Deadline(); ok {
		polling, p.cancel = context.WithDeadline(polling, deadline)
	} else {
		polling, p.cancel = context.WithCancel(polling)
	}
	go func() {
		defer p.cancel()
		p.err = call(polling, p.answer)
		close(p.done)
	}()
	return p
}
