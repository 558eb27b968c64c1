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

// eager gets activities of a worker's private queue in the response that schedules them. The server can do so for any
// queue and any number; the SDK asks for three at most, and only on the workflow's own queue. That saves a transaction
// and two hops for each activity, about half of the server's cost.
//
// It sits between the SDK and the server: it marks commands for the queue, takes the tasks out of the response, and
// gives them to the queue's pollers. A task that the server returns to a poll meanwhile is kept for the next poll. A
// task that its process loses is lost like any other that was polled.
//
// Invariant: every task that the server may hand out has a slot, because its timeouts run from then on.
type eager struct {
	mu    sync.Mutex
	queue string // empty until there is a worker: then nothing is marked
	// slots of pollers and activities, tasks that were requested or not polled yet, and overtaken polls
	taken int

	tasks chan *workflowservice.PollActivityTaskQueueResponse
	polls chan *serverPoll // polls overtaken by a task
}

// serverPoll is a poll at the server.
type serverPoll struct {
	cancel context.CancelFunc
	done   chan struct{} // closed when answer or err is set
	answer *workflowservice.PollActivityTaskQueueResponse
	err    error
}

func newEager() *eager {
	return &eager{
		tasks: make(chan *workflowservice.PollActivityTaskQueueResponse, slotsOfQueue),
		polls: make(chan *serverPoll, slotsOfQueue),
	}
}

// serve sets the queue. Call it once, before its workers start.
func (e *eager) serve(queue string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.queue = queue
}

// withSlots returns options whose slots eager counts.
func (e *eager) withSlots(o worker.Options) (worker.Options, error) {
	tuner, err := worker.NewFixedSizeTuner(worker.FixedSizeTunerOptions{NumActivitySlots: slotsOfQueue})
	o.MaxConcurrentActivityExecutionSize, o.Tuner = 0, slotTuner{tuner, e}
	return o, err
}

type slotTuner struct {
	worker.WorkerTuner
	eager *eager
}

// GetActivityTaskSlotSupplier returns the supplier of activity slots.
func (r slotTuner) GetActivityTaskSlotSupplier() worker.SlotSupplier {
	return slots{r.WorkerTuner.GetActivityTaskSlotSupplier(), r.eager}
}

// slots count as taken from before a poll until the end of the activity that it returned. TryReserveSlot is not
// counted: the SDK calls it only in workers that run workflows.
type slots struct {
	worker.SlotSupplier
	eager *eager
}

// ReserveSlot waits for a slot.
func (s slots) ReserveSlot(ctx context.Context, info worker.SlotReservationInfo) (*worker.SlotPermit, error) {
	s.eager.addTaken(1)
	permit, err := s.SlotSupplier.ReserveSlot(ctx, info)
	if err != nil {
		s.eager.addTaken(-1)
	}
	return permit, err
}

// ReleaseSlot releases a slot.
func (s slots) ReleaseSlot(info worker.SlotReleaseInfo) {
	s.SlotSupplier.ReleaseSlot(info)
	s.eager.addTaken(-1)
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

// mark requests the queue's activities, as far as there are slots, and returns their ids.
func (e *eager) mark(r *workflowservice.RespondWorkflowTaskCompletedRequest) map[string]bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	asked := map[string]bool{}
	for _, c := range r.GetCommands() {
		a := c.GetScheduleActivityTaskCommandAttributes()
		if a == nil || e.queue == "" || a.GetTaskQueue().GetName() != e.queue {
			continue
		}
		if a.RequestEagerExecution = e.taken < slotsOfQueue; a.RequestEagerExecution {
			asked[a.GetActivityId()] = true
			e.taken++
		}
	}
	return asked
}

// take moves the requested tasks from the response to the pollers. The SDK does not see them.
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
		e.tasks <- task // it has a slot
	}
	r.ActivityTasks = others
	e.addTaken(taken - len(asked))
}

func (e *eager) addTaken(n int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.taken += n
}

// poll returns a waiting task, or the server's answer.
func (e *eager) poll(
	ctx context.Context, to *workflowservice.PollActivityTaskQueueResponse,
	call func(context.Context, *workflowservice.PollActivityTaskQueueResponse) error,
) error {
	select {
	case task := <-e.tasks:
		e.addTaken(-1) // the poller has a slot
		return copyTask(to, task)
	default:
	}
	var p *serverPoll
	select {
	case p = <-e.polls:
		e.addTaken(-1)
	default:
		p = open(ctx, call)
	}
	select {
	case task := <-e.tasks:
		e.polls <- p // the slot of the task is now the poll's
		return copyTask(to, task)
	case <-p.done:
		proto.Merge(to, p.answer)
		return p.err
	case <-ctx.Done():
		p.cancel()
		if errors.Is(ctx.Err(), context.Canceled) {
			e.cancelPolls()
		}
		return ctx.Err()
	}
}

func copyTask(to, task *workflowservice.PollActivityTaskQueueResponse) error {
	proto.Merge(to, task)
	return nil
}

// cancelPolls ends overtaken polls when their worker stops.
func (e *eager) cancelPolls() {
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
) *serverPoll {
	p := &serverPoll{done: make(chan struct{}), answer: &workflowservice.PollActivityTaskQueueResponse{}}
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
