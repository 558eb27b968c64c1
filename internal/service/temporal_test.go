package service

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	querypb "go.temporal.io/api/query/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// fakeTemporal is a Temporal in memory: what the service asks of it. Its Stack workflow is a lock and a queue, its
// Update and Run workflows take signals, and its schedules are kept and never run.
type fakeTemporal struct {
	client.Client
	mu        sync.Mutex
	away      error            // what every call fails with, if not nil
	open      map[string]bool  // workflows by id: running, or closed
	signals   map[string][]any // by the workflow that got them
	started   []deployments.UpdateInput
	told      []deployments.NotifyInput
	active    *deployments.UpdateName
	waiting   []deployments.UpdateName
	version   int
	accepted  map[string]deployments.Accepted
	undecided map[string]bool // URNs that the Run waits for
	recovered func() error    // what the Stack workflow does to recover its update
	schedules map[string]*client.ScheduleDescription
	updating  func()    // called while a schedule is being updated
	since     time.Time // when every workflow began
	listed    int       // how often the schedules were listed
	refusal   error     // of schedules that are to be made
	// attributes are the search attributes of workflows.
	attributes map[string]*commonpb.SearchAttributes
}

// newFake returns a service with a stack, and its Temporal.
func newFake(t *testing.T) (*Service, *fakeTemporal) {
	t.Helper()
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}),
		statestore.Options{Master: make([]byte, 32)})
	must(t, err)
	must(t, store.CreateStack(t.Context(), dev, nil))
	f := &fakeTemporal{
		open: map[string]bool{}, signals: map[string][]any{}, accepted: map[string]deployments.Accepted{},
		undecided: map[string]bool{}, schedules: map[string]*client.ScheduleDescription{},
	}
	return New(f, store, Readers{Data: converter.GetDefaultDataConverter(),
		Failures: temporal.GetDefaultFailureConverter()}), f
}

func version(n int) deployments.UpdateName {
	return deployments.UpdateName{StackName: dev, Version: strconv.Itoa(n)}
}

// begin makes an update the active one, with its workflows.
func (f *fakeTemporal) begin(u deployments.UpdateName) {
	f.active = &u
	f.open[deployments.StackWorkflowID(dev)] = true
	f.open[deployments.UpdateWorkflowID(u)], f.open[deployments.RunWorkflowID(u)] = true, true
}

// call locks f; the error is Temporal's, when it is away.
func (f *fakeTemporal) call() (unlock func(), err error) {
	f.mu.Lock()
	return f.mu.Unlock, f.away
}

func missing() error { return serviceerror.NewNotFound("no such workflow") }

func refused(code deployments.Code, why string) error {
	return temporal.NewNonRetryableApplicationError(why, string(code), nil)
}

// shared panics at a workflow that does not say whose it is: it would have a share of the workers that is nobody's.
func shared(id string, p temporal.Priority) {
	if p.FairnessKey == "" {
		panic("the workflow " + id + " has no fairness key")
	}
}

func (f *fakeTemporal) NewWithStartWorkflowOperation(
	o client.StartWorkflowOptions, _ any, _ ...any,
) client.WithStartWorkflowOperation {
	shared(o.ID, o.Priority)
	return nil
}

func (f *fakeTemporal) UpdateWithStartWorkflow(
	_ context.Context, o client.UpdateWithStartWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	unlock, err := f.call()
	defer unlock()
	if err != nil {
		return nil, err
	}
	f.open[o.UpdateOptions.WorkflowID] = true
	return f.update(o.UpdateOptions), nil
}

func (f *fakeTemporal) UpdateWorkflow(
	_ context.Context, o client.UpdateWorkflowOptions,
) (client.WorkflowUpdateHandle, error) {
	unlock, err := f.call()
	defer unlock()
	if err == nil && !f.open[o.WorkflowID] {
		err = missing()
	}
	return f.update(o), err
}

// update answers what a workflow is asked.
func (f *fakeTemporal) update(o client.UpdateWorkflowOptions) outcome {
	switch o.UpdateName {
	case deployments.UpdateSubmit:
		return f.submit(o.Args[0].(deployments.UpdateRequest))
	case deployments.UpdateReserve:
		if f.active != nil {
			return outcome{err: refused(deployments.CodeConflict, "busy")}
		}
		f.version++
		return outcome{value: f.version}
	case deployments.UpdateWithdraw:
		u := o.Args[0].(deployments.Withdrawal).Update
		before := len(f.waiting)
		f.waiting = slices.DeleteFunc(f.waiting, func(w deployments.UpdateName) bool { return w == u })
		return outcome{value: len(f.waiting) < before}
	case deployments.UpdateRecover:
		return outcome{err: f.recovered()}
	case deployments.UpdateRenew:
		return outcome{value: time.Now().Add(o.Args[0].(time.Duration))}
	case deployments.UpdateResolve:
		resolved := o.Args[0].(engine.Resolved)
		if !f.undecided[string(resolved.URN)] {
			return outcome{err: refused(deployments.CodeConflict, "it does not wait")}
		}
		f.signals[o.WorkflowID] = append(f.signals[o.WorkflowID], resolved)
		return outcome{}
	}
	return outcome{err: refused(deployments.CodeInternal, "unknown update "+o.UpdateName)}
}

func (f *fakeTemporal) submit(r deployments.UpdateRequest) outcome {
	if a, ok := f.accepted[r.RequestID]; ok {
		return outcome{value: a}
	}
	if f.active != nil && r.OnBusy == deployments.OnBusyFail {
		return outcome{err: refused(deployments.CodeConflict, "busy")}
	}
	f.version++
	a := deployments.Accepted{Update: version(f.version)}
	if f.active == nil {
		f.begin(a.Update)
	} else {
		f.waiting = append(f.waiting, a.Update)
		a.Position = len(f.waiting)
	}
	f.accepted[r.RequestID] = a
	return outcome{value: a}
}

// outcome is an answer of a workflow.
type outcome struct {
	client.WorkflowUpdateHandle
	client.WorkflowRun
	value any
	err   error
}

func (o outcome) HasValue() bool { return o.value != nil }

func (o outcome) Get(_ context.Context, into any) error {
	if o.err == nil && into != nil && o.value != nil {
		reflect.ValueOf(into).Elem().Set(reflect.ValueOf(o.value))
	}
	return o.err
}

// encoded is an answer to a query.
type encoded struct{ value any }

func (e encoded) HasValue() bool { return true }

func (e encoded) Get(into any) error {
	data, err := json.Marshal(e.value)
	return cmp.Or(err, json.Unmarshal(data, into))
}

func (f *fakeTemporal) QueryWorkflowWithOptions(
	_ context.Context, o *client.QueryWorkflowWithOptionsRequest,
) (*client.QueryWorkflowWithOptionsResponse, error) {
	unlock, err := f.call()
	defer unlock()
	running, known := f.open[o.WorkflowID]
	switch {
	case err != nil:
		return nil, err
	case !known:
		return nil, missing()
	case !running:
		return &client.QueryWorkflowWithOptionsResponse{QueryRejected: &querypb.QueryRejected{}}, nil
	case o.QueryType == deployments.QueryProgress:
		waiting := slices.Sorted(maps.Keys(f.undecided))
		return &client.QueryWorkflowWithOptionsResponse{
			QueryResult: encoded{deployments.Progress{Waiting: waiting}}}, nil
	}
	info := deployments.StackInfo{Stack: dev, Version: f.version}
	if f.active != nil {
		info.Active = &deployments.UpdateInfo{Update: *f.active, Status: "running"}
	}
	for _, u := range f.waiting {
		info.Queued = append(info.Queued, deployments.UpdateInfo{Update: u, Status: "queued"})
	}
	return &client.QueryWorkflowWithOptionsResponse{QueryResult: encoded{info}}, nil
}

func (f *fakeTemporal) ExecuteWorkflow(
	_ context.Context, o client.StartWorkflowOptions, _ any, args ...any,
) (client.WorkflowRun, error) {
	shared(o.ID, o.Priority)
	unlock, err := f.call()
	defer unlock()
	if _, known := f.open[o.ID]; err == nil && known {
		err = serviceerror.NewWorkflowExecutionAlreadyStarted("there is one", "", "")
	}
	if err != nil {
		return nil, err
	}
	f.open[o.ID] = true
	switch in := args[0].(type) {
	case deployments.UpdateInput:
		f.started = append(f.started, in)
	case deployments.NotifyInput:
		f.told = append(f.told, in)
	}
	return outcome{}, nil
}

func (f *fakeTemporal) SignalWorkflow(_ context.Context, id, _, _ string, arg any) error {
	unlock, err := f.call()
	defer unlock()
	if err == nil && !f.open[id] {
		err = missing()
	}
	if err == nil {
		f.signals[id] = append(f.signals[id], arg)
	}
	return err
}

func (f *fakeTemporal) DescribeWorkflowExecution(
	_ context.Context, id, _ string,
) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	unlock, err := f.call()
	defer unlock()
	running, known := f.open[id]
	if err == nil && !known {
		err = missing()
	}
	status := enums.WORKFLOW_EXECUTION_STATUS_TERMINATED
	if running {
		status = enums.WORKFLOW_EXECUTION_STATUS_RUNNING
	}
	return &workflowservice.DescribeWorkflowExecutionResponse{
		WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{Status: status}}, err
}

func (f *fakeTemporal) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	unlock, err := f.call()
	defer unlock()
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	for _, id := range slices.Sorted(maps.Keys(f.open)) {
		if f.open[id] && strings.HasPrefix(id, "update/") {
			answer.Executions = append(answer.Executions, &workflowpb.WorkflowExecutionInfo{
				Execution: &commonpb.WorkflowExecution{WorkflowId: id}, StartTime: timestamppb.New(f.since),
				SearchAttributes: f.attributes[id],
			})
		}
	}
	return answer, err
}

func (f *fakeTemporal) ScheduleClient() client.ScheduleClient { return fakeSchedules{f: f} }

// fakeSchedules are the schedules of a fakeTemporal.
type fakeSchedules struct {
	client.ScheduleClient
	f *fakeTemporal
}

func (s fakeSchedules) Create(_ context.Context, o client.ScheduleOptions) (client.ScheduleHandle, error) {
	unlock, err := s.f.call()
	defer unlock()
	if _, known := s.f.schedules[o.ID]; err == nil && known {
		err = temporal.ErrScheduleAlreadyRunning
	}
	if err == nil {
		err = s.f.refusal
	}
	if err != nil {
		return nil, err
	}
	action := *o.Action.(*client.ScheduleWorkflowAction)
	shared(o.ID, action.Priority)
	payload, err := converter.GetDefaultDataConverter().ToPayload(action.Args[0])
	if err != nil {
		return nil, err
	}
	action.Args = []any{payload}
	s.f.schedules[o.ID] = &client.ScheduleDescription{Schedule: client.Schedule{Action: &action,
		State: &client.ScheduleState{Paused: o.Paused, Note: o.Note}}}
	return fakeSchedule{f: s.f, id: o.ID}, nil
}

func (s fakeSchedules) List(context.Context, client.ScheduleListOptions) (client.ScheduleListIterator, error) {
	unlock, err := s.f.call()
	defer unlock()
	s.f.listed++
	return &listed{ids: slices.Sorted(maps.Keys(s.f.schedules)), f: s.f}, err
}

// listed iterates over schedules.
type listed struct {
	ids []string
	f   *fakeTemporal
}

func (l *listed) HasNext() bool { return len(l.ids) > 0 }

func (l *listed) Next() (*client.ScheduleListEntry, error) {
	id := l.ids[0]
	l.ids = l.ids[1:]
	d := l.f.schedules[id]
	return &client.ScheduleListEntry{ID: id, Paused: d.Schedule.State.Paused, Note: d.Schedule.State.Note,
		NextActionTimes: d.Info.NextActionTimes}, nil
}

func (s fakeSchedules) GetHandle(_ context.Context, id string) client.ScheduleHandle {
	return fakeSchedule{f: s.f, id: id}
}

// fakeSchedule is one of them.
type fakeSchedule struct {
	client.ScheduleHandle
	f  *fakeTemporal
	id string
}

// change changes the schedule, if there is one.
func (s fakeSchedule) change(f func(*client.ScheduleDescription)) error {
	unlock, err := s.f.call()
	defer unlock()
	d, known := s.f.schedules[s.id]
	if err == nil && !known {
		err = missing()
	}
	if err == nil {
		f(d)
	}
	return err
}

func (s fakeSchedule) Describe(context.Context) (d *client.ScheduleDescription, err error) {
	err = s.change(func(found *client.ScheduleDescription) { d = found })
	return d, err
}

func (s fakeSchedule) Delete(context.Context) error {
	return s.change(func(*client.ScheduleDescription) { delete(s.f.schedules, s.id) })
}

func (s fakeSchedule) Pause(_ context.Context, o client.SchedulePauseOptions) error {
	return s.change(func(d *client.ScheduleDescription) {
		d.Schedule.State.Paused, d.Schedule.State.Note = true,
			o.Note
	})
}

func (s fakeSchedule) Unpause(_ context.Context, o client.ScheduleUnpauseOptions) error {
	return s.change(func(d *client.ScheduleDescription) {
		d.Schedule.State.Paused, d.Schedule.State.Note = false,
			o.Note
	})
}

func (s fakeSchedule) Trigger(context.Context, client.ScheduleTriggerOptions) error {
	return s.change(func(d *client.ScheduleDescription) {
		id := s.id + "-2026-03-04T12:00:00Z"
		s.f.open[id] = true
		d.Info.RunningWorkflows = append(d.Info.RunningWorkflows, client.ScheduleWorkflowExecution{WorkflowID: id})
	})
}
