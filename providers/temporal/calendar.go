package temporal

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/provider"
	"go.temporal.io/api/common/v1"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/taskqueue/v1"
	"go.temporal.io/api/workflow/v1"
	"google.golang.org/protobuf/proto"
)

func overlapOf(name string) (enums.ScheduleOverlapPolicy, error) {
	policy, err := enums.ScheduleOverlapPolicyFromString(name)
	if err != nil || policy == enums.SCHEDULE_OVERLAP_POLICY_UNSPECIFIED {
		return 0, errOverlap
	}
	return policy, nil
}

// on writes what is declared onto a schedule as the server has it, nil if it has none: what is not managed stays. Olds
// are the inputs of the last success.
func (in ScheduleIn) on(whole *schedule.Schedule, olds *ScheduleIn, m mark, id string) (*schedule.Schedule, error) {
	if whole = proto.CloneOf(whole); whole == nil {
		whole = &schedule.Schedule{}
	}
	if whole.Spec == nil {
		whole.Spec = &schedule.ScheduleSpec{}
	}
	if whole.State == nil {
		whole.State = &schedule.ScheduleState{}
	}
	in.specify(whole.Spec)
	action := whole.GetAction().GetStartWorkflow()
	if action == nil {
		action = &workflow.NewWorkflowExecutionInfo{}
	}
	if err := in.act(action, olds, m, id); err != nil {
		return nil, err
	}
	whole.Action = &schedule.ScheduleAction{Action: &schedule.ScheduleAction_StartWorkflow{StartWorkflow: action}}
	overlap, err := overlapOf(in.Overlap)
	if err != nil {
		return nil, err
	}
	whole.Policies = &schedule.SchedulePolicies{OverlapPolicy: overlap, CatchupWindow: in.CatchupWindow.proto(),
		PauseOnFailure: in.PauseOnFailure, KeepOriginalWorkflowId: whole.GetPolicies().GetKeepOriginalWorkflowId()}
	if in.Paused != nil {
		whole.State.Paused = *in.Paused
	}
	if in.Note != "" {
		whole.State.Notes = in.Note
	}
	return whole, nil
}

// specify gives each cron expression itself as its comment: the server keeps only calendars, and their comments.
func (in ScheduleIn) specify(spec *schedule.ScheduleSpec) {
	spec.CronString, spec.Calendar, spec.StructuredCalendar, spec.Interval = nil, nil, nil, nil
	for _, text := range in.Cron {
		spec.CronString = append(spec.CronString, text+" # "+text)
	}
	for _, i := range in.Intervals {
		spec.Interval = append(spec.Interval, &schedule.IntervalSpec{Interval: i.Every.proto(), Phase: i.Phase.proto()})
	}
	spec.TimezoneName, spec.TimezoneData, spec.Jitter = in.Timezone, nil, in.Jitter.proto()
}

func (in ScheduleIn) act(action *workflow.NewWorkflowExecutionInfo, olds *ScheduleIn, m mark, id string) error {
	action.WorkflowId = cmp.Or(in.WorkflowID, id)
	action.WorkflowType = &common.WorkflowType{Name: in.WorkflowType}
	action.TaskQueue = &taskqueue.TaskQueue{Name: in.TaskQueue}
	action.WorkflowExecutionTimeout, action.WorkflowRunTimeout = in.ExecutionTimeout.proto(), in.RunTimeout.proto()
	action.WorkflowTaskTimeout = in.TaskTimeout.proto()
	action.Input = nil
	for _, value := range in.Input {
		p, err := payload(value)
		if err != nil {
			return fmt.Errorf("input: %w", err)
		}
		if action.Input == nil {
			action.Input = &common.Payloads{}
		}
		action.Input.Payloads = append(action.Input.Payloads, p)
	}
	memo := maps.Clone(action.GetMemo().GetFields())
	if memo == nil {
		memo = map[string]*common.Payload{}
	}
	if olds != nil {
		for name := range olds.Memo {
			delete(memo, name)
		}
	}
	fields := maps.Clone(in.Memo)
	if fields == nil {
		fields = map[string]any{}
	}
	for key, text := range m.pairs() {
		fields[key] = text
	}
	for name, value := range fields {
		p, err := payload(value)
		if err != nil {
			return fmt.Errorf("memo %q: %w", name, err)
		}
		memo[name] = p
	}
	action.Memo = &common.Memo{Fields: memo}
	return nil
}

// scheduleOf reads a schedule. Its cron are the comments of its calendars, unless these are others than those that the
// cron is known to become: then somebody has changed them, and they are shown as they are.
func scheduleOf(p place, whole *schedule.Schedule, known []string) *scheduleSeen {
	seen := &scheduleSeen{whole: whole}
	spec, action, policies := whole.GetSpec(), whole.GetAction().GetStartWorkflow(), whole.GetPolicies()
	paused := whole.GetState().GetPaused()
	seen.ScheduleIn = ScheduleIn{
		Name: p.name, Namespace: p.namespace, Timezone: spec.GetTimezoneName(),
		Jitter:       durationOf(spec.GetJitter().AsDuration()),
		WorkflowType: action.GetWorkflowType().GetName(), WorkflowID: action.GetWorkflowId(),
		TaskQueue:        action.GetTaskQueue().GetName(),
		ExecutionTimeout: durationOf(action.GetWorkflowExecutionTimeout().AsDuration()),
		RunTimeout:       durationOf(action.GetWorkflowRunTimeout().AsDuration()),
		TaskTimeout:      durationOf(action.GetWorkflowTaskTimeout().AsDuration()),
		Overlap:          policies.GetOverlapPolicy().String(), PauseOnFailure: policies.GetPauseOnFailure(),
		CatchupWindow: durationOf(policies.GetCatchupWindow().AsDuration()),
		Paused:        &paused, Note: whole.GetState().GetNotes(),
	}
	seen.calendars = []string{}
	for _, c := range spec.GetStructuredCalendar() {
		seen.calendars = append(seen.calendars, calendarText(c))
	}
	trusted := known == nil || slices.Equal(known, seen.calendars)
	for i, c := range spec.GetStructuredCalendar() {
		text := seen.calendars[i]
		if trusted && c.GetComment() != "" {
			text = c.GetComment()
		}
		seen.Cron = append(seen.Cron, text)
	}
	for _, i := range spec.GetInterval() {
		seen.Intervals = append(seen.Intervals, Interval{durationOf(i.GetInterval().AsDuration()),
			durationOf(i.GetPhase().AsDuration())})
	}
	for _, p := range action.GetInput().GetPayloads() {
		seen.Input = append(seen.Input, valueOf(p))
	}
	for name, p := range action.GetMemo().GetFields() {
		value := valueOf(p)
		switch text, _ := value.(string); name {
		case ownerKey:
			seen.mark.owner = text
		case stackKey:
			seen.mark.stack = text
		default:
			if seen.Memo == nil {
				seen.Memo = map[string]any{}
			}
			seen.Memo[name] = value
		}
	}
	return seen
}

// calendarText is a calendar as a cron expression of seven fields.
func calendarText(c *schedule.StructuredCalendarSpec) string {
	var fields []string
	for _, ranges := range [][]*schedule.Range{c.GetSecond(), c.GetMinute(), c.GetHour(), c.GetDayOfMonth(),
		c.GetMonth(), c.GetDayOfWeek(), c.GetYear()} {
		var parts []string
		for _, r := range ranges {
			parts = append(parts, fmt.Sprintf("%d-%d/%d", r.GetStart(), max(r.GetEnd(), r.GetStart()), max(r.GetStep(), 1)))
		}
		fields = append(fields, cmp.Or(strings.Join(parts, ","), "*"))
	}
	return strings.Join(fields, " ")
}

// differences are the names of the properties that are not as declared.
func (s *scheduleSeen) differences(r provider.Request[ScheduleIn, ScheduleOut]) []string {
	want, have := r.News, s.managed(r.News)
	want.Namespace, want.Name = have.Namespace, have.Name
	var names []string
	if s.mark != markOf(r.Identity) {
		names = append(names, "owner")
	}
	if r.Olds != nil { // what is no longer declared is removed
		for name := range r.Olds.Memo {
			_, declared := want.Memo[name]
			if _, there := s.Memo[name]; there && !declared {
				names = append(names, "memo")
			}
		}
	}
	a, b := reflect.ValueOf(want), reflect.ValueOf(have)
	for i := range a.NumField() {
		x, y := a.Field(i), b.Field(i)
		if (x.Kind() == reflect.Slice || x.Kind() == reflect.Map) && x.Len()+y.Len() == 0 {
			continue // none is none
		}
		if !reflect.DeepEqual(x.Interface(), y.Interface()) {
			name, _, _ := strings.Cut(a.Type().Field(i).Tag.Get("pulumi"), ",")
			names = append(names, name)
		}
	}
	return names
}
