package temporal

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/provider"
	"github.com/google/uuid"
	"go.temporal.io/api/schedule/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc/codes"
)

// Schedule is deployctl:temporal:Schedule.
type Schedule struct{ conn *connection }

// ScheduleIn declares a schedule.
type ScheduleIn struct {
	Name             string         `pulumi:"name,autoname,replace" doc:"The schedule's ID at the server; without it, the resource's name and a random suffix."`
	Namespace        string         `pulumi:"namespace,optional,replace" doc:"The namespace; without it deployctl:temporalNamespace."`
	Cron             []string       `pulumi:"cron,optional" doc:"When it runs, as cron expressions of 5 to 7 fields."`
	Intervals        []Interval     `pulumi:"intervals,optional" doc:"When it runs, as intervals such as 6h, or 6h/15m for quarter past."`
	Timezone         string         `pulumi:"timezone,optional" doc:"The time zone of cron, such as Europe/Berlin; without it UTC."`
	Jitter           Duration       `pulumi:"jitter,optional" doc:"Within which time span a run may begin later."`
	WorkflowType     string         `pulumi:"workflowType" doc:"The type of the workflow that is started."`
	WorkflowID       string         `pulumi:"workflowId,optional" doc:"The beginning of the workflows' IDs, which the server completes with the time; without it, the name."`
	TaskQueue        string         `pulumi:"taskQueue" doc:"The task queue of the workflow."`
	Input            []any          `pulumi:"input,optional" doc:"The workflow's arguments: any JSON."`
	ExecutionTimeout Duration       `pulumi:"executionTimeout,optional" doc:"How long a workflow may take with all its runs."`
	RunTimeout       Duration       `pulumi:"runTimeout,optional" doc:"How long one run may take."`
	TaskTimeout      Duration       `pulumi:"taskTimeout,optional" doc:"How long one workflow task may take."`
	Memo             map[string]any `pulumi:"memo,optional" doc:"The memo of the workflows: any JSON by names. Only those that are declared are managed."`
	Overlap          string         `pulumi:"overlap,optional" default:"Skip" doc:"What happens if the workflow before still runs: Skip, BufferOne, BufferAll, CancelOther, TerminateOther or AllowAll."`
	CatchupWindow    Duration       `pulumi:"catchupWindow,optional" default:"365d" doc:"How late a run may begin that the server has missed."`
	PauseOnFailure   bool           `pulumi:"pauseOnFailure,optional" doc:"Whether a workflow that fails pauses the schedule."`
	Paused           *bool          `pulumi:"paused,optional" doc:"Whether it is paused. Without it, a pause by hand stays."`
	Note             string         `pulumi:"note,optional" doc:"A note, such as why it is paused. Without it, what is there stays."`
}

// ScheduleOut describes a schedule that exists.
type ScheduleOut struct {
	ScheduleIn
	Calendars []string `pulumi:"calendars" doc:"What the server has made of cron."`
	Owner     string   `pulumi:"owner" doc:"The mark that it is this resource's."`
}

func (o *ScheduleOut) owner() string {
	if o == nil {
		return ""
	}
	return o.Owner
}

// calendars are those that are remembered for inputs with that cron.
func (o *ScheduleOut) calendars(cron []string) []string {
	if o == nil || !slices.Equal(o.Cron, cron) {
		return nil
	}
	return o.Calendars
}

// Describe is the type's text in the schema.
func (s *Schedule) Describe() string {
	return "A schedule of a Temporal server, which starts a workflow. Its ID, for imports, is NAMESPACE/NAME. Search " +
		"attributes, retries and start and end times that were set otherwise stay."
}

// Naming keeps IDs short and readable.
func (s *Schedule) Naming() provider.Naming {
	return provider.Naming{MaxLen: 64, Alphabet: "abcdefghijklmnopqrstuvwxyz0123456789-"}
}

// Check knows what has no form of its own at the server.
func (s *Schedule) Check(_ context.Context, in provider.Inputs[ScheduleIn]) []provider.Failure {
	var failures []provider.Failure
	fail := func(property, format string, args ...any) {
		failures = append(failures, provider.Failure{Property: property, Reason: fmt.Sprintf(format, args...)})
	}
	if in.Known("cron") {
		for i, text := range in.Value.Cron {
			switch fields := len(strings.Fields(text)); {
			case strings.Contains(text, "TZ="):
				fail(fmt.Sprintf("cron[%d]", i), "has a time zone: use timezone")
			case strings.Contains(text, "#"):
				fail(fmt.Sprintf("cron[%d]", i), "may have no comment")
			case strings.HasPrefix(text, "@every"):
				fail(fmt.Sprintf("cron[%d]", i), "is an interval: use intervals")
			case text != strings.TrimSpace(text), !strings.HasPrefix(text, "@") && (fields < 5 || fields > 7):
				fail(fmt.Sprintf("cron[%d]", i), "must have 5 to 7 fields")
			}
		}
	}
	if in.Known("overlap") {
		if _, err := overlapOf(in.Value.Overlap); err != nil {
			fail("overlap", "%s", err)
		}
	}
	if in.Known("memo") {
		for _, key := range []string{ownerKey, stackKey} {
			if _, taken := in.Value.Memo[key]; taken {
				fail("memo", "may not hold %q, which marks ownership", key)
			}
		}
	}
	return failures
}

// Preview knows the mark, and time spans in the form that they become.
func (s *Schedule) Preview(_ context.Context, r provider.Request[ScheduleIn, ScheduleOut]) (ScheduleOut, error) {
	return ScheduleOut{ScheduleIn: r.News, Owner: r.Owner()}, nil
}

// scheduleSeen is a schedule as the server has it.
type scheduleSeen struct {
	ScheduleIn
	mark
	calendars []string
	whole     *schedule.Schedule
	token     []byte
}

// schedule returns nil if there is none. Calendars are those that the cron is known to become.
func (o *opened) schedule(ctx context.Context, p place, calendars []string) (*scheduleSeen, error) {
	got, err := o.frontend.DescribeSchedule(ctx, &workflowservice.DescribeScheduleRequest{
		Namespace: p.namespace, ScheduleId: p.name})
	if is(err, codes.NotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	seen := scheduleOf(p, got.GetSchedule(), calendars)
	seen.token = got.GetConflictToken()
	return seen, nil
}

// Reconcile creates the schedule with its mark, or updates it if it differs.
func (s *Schedule) Reconcile(
	ctx context.Context, r provider.Request[ScheduleIn, ScheduleOut],
) (string, ScheduleOut, error) {
	o, err := s.conn.get()
	if err != nil {
		return "", ScheduleOut{}, err
	}
	p, err := o.place(r.ID, r.News.Namespace, r.News.Name)
	if err != nil {
		return "", ScheduleOut{}, err
	}
	e := ensuring{opened: o, place: p, r: r, thing: "schedule " + p.id()}
	seen, err := e.ensure(ctx)
	out := ScheduleOut{ScheduleIn: r.News, Owner: r.Owner()}
	if seen == nil {
		return "", ScheduleOut{}, err
	}
	out.Calendars = seen.calendars
	return p.id(), out, err
}

// ensuring is one schedule that shall be as declared.
type ensuring struct {
	*opened
	place
	r     provider.Request[ScheduleIn, ScheduleOut]
	thing string
}

// ensure returns the schedule, nil if there is none or it is not ours. An update is carried out after it is answered,
// or not at all if another one came before: so what it has come to is read.
func (e ensuring) ensure(ctx context.Context) (seen *scheduleSeen, err error) {
	var differs []string
	for range attempts {
		seen, err = e.schedule(ctx, e.place, e.r.Output.calendars(e.r.News.Cron))
		switch {
		case err != nil:
			return nil, e.failed(e.r.Redact, e.thing, err)
		case seen == nil:
			if err = e.create(ctx); err != nil && !is(err, codes.AlreadyExists) {
				return nil, e.refused(ctx, err)
			}
			continue
		}
		if err := seen.refuses(e.r.Identity, e.thing, e.id(), e.r.ID != "", e.r.Output.owner()); err != nil {
			return nil, err
		}
		if differs = seen.differences(e.r); len(differs) == 0 {
			return seen, nil
		}
		if err = e.update(ctx, seen); err != nil && !conflicts(err) && !is(err, codes.NotFound) {
			return seen, e.failed(e.r.Redact, e.thing, err)
		}
	}
	if seen, err = e.schedule(ctx, e.place, nil); err != nil {
		return nil, e.failed(e.r.Redact, e.thing, err)
	}
	if seen == nil {
		return nil, busy(e.thing)
	}
	if err := seen.refuses(e.r.Identity, e.thing, e.id(), e.r.ID != "", e.r.Output.owner()); err != nil {
		return nil, err
	}
	if differs = seen.differences(e.r); len(differs) > 0 {
		return seen, fmt.Errorf("%s has other properties than declared (%s) after %d updates", e.thing,
			strings.Join(differs, ", "), attempts)
	}
	return seen, nil
}

// refused is the error of a create. A namespace that does not exist may be one that this frontend does not know yet.
func (e ensuring) refused(ctx context.Context, err error) error {
	if stale(err) {
		if there, lookErr := e.describe(ctx, e.place.namespace); lookErr == nil && there != nil {
			return &provider.NotDone{Err: fmt.Errorf("%s: the frontend does not know the namespace yet", e.thing),
				RetryAfter: time.Second}
		}
	}
	return e.failed(e.r.Redact, e.thing, err)
}

func (e ensuring) create(ctx context.Context) error {
	whole, err := e.r.News.on(nil, nil, markOf(e.r.Identity), e.place.name)
	if err != nil {
		return err
	}
	_, err = e.frontend.CreateSchedule(ctx, &workflowservice.CreateScheduleRequest{Namespace: e.place.namespace,
		ScheduleId: e.place.name, Schedule: whole, RequestId: uuid.NewString()})
	return err
}

func (e ensuring) update(ctx context.Context, seen *scheduleSeen) error {
	whole, err := e.r.News.on(seen.whole, e.r.Olds, markOf(e.r.Identity), e.place.name)
	if err != nil {
		return err
	}
	_, err = e.frontend.UpdateSchedule(ctx, &workflowservice.UpdateScheduleRequest{Namespace: e.place.namespace,
		ScheduleId: e.place.name, Schedule: whole, ConflictToken: seen.token})
	return err
}

// Read answers by the ID, or by the name in the inputs.
func (s *Schedule) Read(
	ctx context.Context, r provider.Lookup[ScheduleIn, ScheduleOut],
) (found provider.Found[ScheduleIn, ScheduleOut], err error) {
	o, err := s.conn.get()
	if err != nil {
		return found, err
	}
	var was ScheduleIn
	if r.Inputs != nil {
		was = *r.Inputs
	}
	p, err := o.place(r.ID, was.Namespace, was.Name)
	if err != nil {
		return found, err
	}
	seen, err := o.schedule(ctx, p, r.Output.calendars(was.Cron))
	switch {
	case err != nil:
		return found, o.failed(r.Redact, "schedule "+p.id(), err)
	case seen == nil:
		found.Ownership = provider.Absent
		return found, nil
	}
	in := seen.ScheduleIn
	if r.Inputs != nil {
		in = in.managed(was)
	}
	in.Namespace = o.declared(p, was.Namespace)
	remembered := r.Output.owner()
	return provider.Found[ScheduleIn, ScheduleOut]{Ownership: seen.ownership(r.Identity, remembered), ID: p.id(),
		Owner: seen.people(), Inputs: in, Output: ScheduleOut{ScheduleIn: in, Calendars: seen.calendars,
			Owner: seen.kept(r.Identity, remembered)}}, nil
}

// managed is what was seen without what is not declared, and so not managed.
func (in ScheduleIn) managed(was ScheduleIn) ScheduleIn {
	in.Memo = maps.Clone(in.Memo)
	maps.DeleteFunc(in.Memo, func(name string, _ any) bool { _, declared := was.Memo[name]; return !declared })
	if len(in.Memo) == 0 {
		in.Memo = nil
	}
	if was.Paused == nil {
		in.Paused = nil
	}
	if was.Note == "" {
		in.Note = ""
	}
	if was.WorkflowID == "" && in.WorkflowID == in.Name {
		in.WorkflowID = ""
	}
	return in
}

// List looks at every schedule of the configured namespace.
func (s *Schedule) List(ctx context.Context, stack provider.Identity, found func(id string) error) error {
	o, err := s.conn.listed()
	if err != nil || o == nil || o.namespace == "" {
		return err
	}
	for request := (&workflowservice.ListSchedulesRequest{Namespace: o.namespace}); ; {
		page, err := o.frontend.ListSchedules(ctx, request)
		if err != nil {
			return o.failed(unchanged, "the list of schedules", err)
		}
		for _, one := range page.GetSchedules() {
			p := place{o.namespace, one.GetScheduleId()}
			seen, err := o.schedule(ctx, p, nil)
			if err != nil {
				return o.failed(unchanged, "schedule "+p.id(), err)
			}
			if seen != nil && seen.of(stack) {
				if err := found(p.id()); err != nil {
					return err
				}
			}
		}
		if request.NextPageToken = page.GetNextPageToken(); len(request.NextPageToken) == 0 {
			return nil
		}
	}
}

// Delete leaves alone what another owner has taken over.
func (s *Schedule) Delete(ctx context.Context, r provider.Existing[ScheduleIn, ScheduleOut]) error {
	o, err := s.conn.get()
	if err != nil {
		return err
	}
	p, err := o.place(r.ID, "", "")
	if err != nil {
		return err
	}
	seen, err := o.schedule(ctx, p, nil)
	if err == nil {
		if seen == nil || seen.lost(r.Identity, r.Output.Owner) {
			return nil
		}
		_, err = o.frontend.DeleteSchedule(ctx, &workflowservice.DeleteScheduleRequest{Namespace: p.namespace,
			ScheduleId: p.name})
	}
	if err == nil || is(err, codes.NotFound) {
		return nil
	}
	return o.failed(r.Redact, "schedule "+p.id(), err)
}

var errOverlap = errors.New("must be Skip, BufferOne, BufferAll, CancelOther, TerminateOther or AllowAll")
