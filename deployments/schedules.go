package deployments

import (
	"context"
	"strings"
	"time"

	"github.com/deployctl/deployctl/engine"
)

// ScheduleName names one schedule of a stack: ORG/PROJECT/STACK/NAME.
type ScheduleName struct {
	StackName
	Name string `json:"name"`
}

// String gives ORG/PROJECT/STACK/NAME.
func (n ScheduleName) String() string { return n.StackName.String() + "/" + n.Name }

// Validate reports the first part of the name that cannot be used, as CodeInvalid.
func (n ScheduleName) Validate() error {
	if err := n.StackName.Validate(); err != nil {
		return err
	}
	return ValidateName("schedule", n.Name)
}

// ScheduleID is the id of the schedule in Temporal; those of its workflows add the due time.
func ScheduleID(n ScheduleName) string { return "scheduled/" + n.String() }

// scheduleRunLayout is what Temporal appends to the id of a schedule's workflow: when the run is due.
const scheduleRunLayout = "-2006-01-02T15:04:05Z"

// ScheduleOfRun parses the id of a workflow that a schedule has started: the schedule, and when the run is due.
func ScheduleOfRun(workflow string) (n ScheduleName, due time.Time, err error) {
	rest, ours := strings.CutPrefix(workflow, "scheduled/")
	at := len(rest) - len(scheduleRunLayout)
	if !ours || at < 0 {
		return n, due, Errorf(CodeInvalid, "%q is not the name of a run of a schedule", workflow)
	}
	if due, err = time.Parse(scheduleRunLayout, rest[at:]); err != nil {
		return n, due, Errorf(CodeInvalid, "the name of the run %q does not say when it is due", workflow)
	}
	parts := strings.Split(rest[:at], "/")
	if len(parts) != 4 {
		return n, due, Errorf(CodeInvalid, "%q is not the name of a run of a schedule", workflow)
	}
	n = ScheduleName{StackName{parts[0], parts[1], parts[2]}, parts[3]}
	return n, due, n.Validate()
}

// ScheduleKind is what a schedule does.
type ScheduleKind string

// The kinds of schedules.
const (
	ScheduleDrift   ScheduleKind = "drift"   // check for drift, and remediate it with Remediate
	ScheduleUpdate  ScheduleKind = "update"  // repeat the stack's last successful up
	SchedulePreview ScheduleKind = "preview" // preview that up
	ScheduleRefresh ScheduleKind = "refresh" // make the state what the resources are
	ScheduleDestroy ScheduleKind = "destroy" // delete every resource: with At, the stack's time to live
)

// operations are the kinds of the updates of schedules, by the kind of the schedule. A drift check is a refresh
// preview.
var operations = map[ScheduleKind]engine.Kind{
	ScheduleDrift: engine.KindRefresh, ScheduleUpdate: engine.KindUp, SchedulePreview: engine.KindUp,
	ScheduleRefresh: engine.KindRefresh, ScheduleDestroy: engine.KindDestroy,
}

// Operation is the kind of the updates of a schedule; a remediation is an up.
func (k ScheduleKind) Operation() engine.Kind { return operations[k] }

// Schedule is work that the service starts by itself.
type Schedule struct {
	Name ScheduleName `json:"name"`
	Kind ScheduleKind `json:"kind"`
	// Exactly one of Every, Cron and At is set. Cron is in UTC unless it begins with CRON_TZ=ZONE; At runs once.
	Every time.Duration `json:"every,omitempty"`
	Cron  string        `json:"cron,omitempty"`
	At    time.Time     `json:"at,omitzero"`
	// Remediate makes an update remove the drift that was found.
	Remediate bool `json:"remediate,omitempty"`
	// RemoveStack removes the stack, with its history and its schedules, once a destroy has deleted its resources.
	RemoveStack bool `json:"removeStack,omitempty"`
	// Options are those of its updates.
	Options   ScheduleOptions `json:"options,omitzero"`
	Initiator string          `json:"initiator,omitempty"` // who created it
	// Authority limits the schedule's updates and their programs to what its creator may do at the time; see
	// UpdateRequest.
	Authority *Authority `json:"authority,omitempty"`
	Paused    bool       `json:"paused,omitempty"`

	// The service sets the following fields.

	// Note says why it is paused.
	Note    string       `json:"note,omitempty"`
	Created time.Time    `json:"created,omitzero"`
	Next    time.Time    `json:"next,omitzero"` // zero when there is none
	Last    *ScheduleRun `json:"last,omitempty"`
}

// MaxSchedules limits the schedules of a stack.
const MaxSchedules = 100

// leastPause is the shortest interval of a schedule.
const leastPause = time.Minute

// maxCronLength limits Schedule.Cron.
const maxCronLength = 1 << 10

// Validate reports, as CodeInvalid, why the schedule is not valid.
func (s Schedule) Validate() error {
	if err := s.Name.Validate(); err != nil {
		return err
	}
	given := 0
	for _, set := range []bool{s.Every != 0, s.Cron != "", !s.At.IsZero()} {
		if set {
			given++
		}
	}
	if s.Kind.Operation() == "" {
		return Errorf(CodeInvalid, "%q cannot be scheduled; schedule drift, update, preview, refresh or destroy", s.Kind)
	}
	switch {
	case given != 1:
		return Errorf(CodeInvalid, "a schedule needs exactly one of an interval (--every), a cron expression "+
			"(--cron) and a time (--at, --in)")
	case s.Every != 0 && s.Every < leastPause:
		return Errorf(CodeInvalid, "a schedule can run every minute at most, not every %s", s.Every)
	case s.Remediate && s.Kind != ScheduleDrift:
		return Errorf(CodeInvalid, "--remediate is for drift schedules")
	case s.RemoveStack && s.Kind != ScheduleDestroy:
		return Errorf(CodeInvalid, "--remove-stack is for destroy schedules")
	}
	if err := s.Options.validate(s.Kind); err != nil {
		return err
	}
	if err := validateText("cron expression", s.Cron, maxCronLength); err != nil {
		return err
	}
	return ValidateInitiator(s.Initiator)
}

// NeedsProgram reports whether an update of the schedule, or its drift check, runs the program.
func (s Schedule) NeedsProgram(driftCheck bool) bool {
	if driftCheck || s.Kind == ScheduleRefresh || s.Kind == ScheduleDestroy {
		return s.Options.RunProgram
	}
	return true
}

// When describes when the schedule runs.
func (s Schedule) When() string {
	switch {
	case s.Every != 0:
		return "every " + s.Every.String()
	case s.Cron != "":
		return s.Cron
	}
	return "once"
}

// ScheduleRun is one run of a schedule.
type ScheduleRun struct {
	ID      string    `json:"id"` // of its workflow
	Started time.Time `json:"started"`
	Ended   time.Time `json:"ended,omitzero"`
	Status  string    `json:"status"` // running, succeeded, failed, cancelled
	Error   string    `json:"error,omitempty"`
	// Updates are the updates that it submitted, including the drift check; known when it has ended.
	Updates []UpdateName `json:"updates,omitempty"`
	Drifted int          `json:"drifted,omitempty"` // resources
}

// Drift is the result of the last drift check of a stack.
type Drift struct {
	Update    UpdateName        `json:"update"` // the drift check: a refresh preview
	At        time.Time         `json:"at"`
	Resources []DriftedResource `json:"resources"`
	// Remediation is the update that has removed the drift since.
	Remediation *UpdateName `json:"remedy,omitempty"`
}

// DriftedResource is a resource that differs from its recorded state.
type DriftedResource struct {
	URN        string            `json:"urn"`
	Gone       bool              `json:"gone,omitempty"` // it does not exist any more
	Properties []DriftedProperty `json:"properties,omitempty"`
}

// DriftedProperty is a property that differs. Values are JSON with secrets redacted; empty when there is none.
type DriftedProperty struct {
	Path     string `json:"path"`
	Expected string `json:"expected,omitempty"`
	Actual   string `json:"actual,omitempty"`
}

// Schedules manages scheduled work and returns its results.
type Schedules interface {
	// CreateSchedule makes a schedule. Needs RoleDeployer. CodeExists: the stack has a schedule of this name.
	// CodeConflict: it has MaxSchedules. CodeInvalid: also when its time is over, the caller's token expires before, or
	// it needs a program and the stack has no update that it could repeat under the service's own secrets provider.
	CreateSchedule(ctx context.Context, s Schedule) error
	// Schedules lists the schedules of a stack by name. Needs RoleViewer. Fails as every method does.
	Schedules(ctx context.Context, s StackName) ([]Schedule, error)
	// Schedule describes a schedule. Needs RoleViewer. Fails as every method does.
	Schedule(ctx context.Context, n ScheduleName) (Schedule, error)
	// RemoveSchedule removes a schedule; an update of it that is running continues. Needs RoleDeployer. Fails as every
	// method does.
	RemoveSchedule(ctx context.Context, n ScheduleName) error
	// PauseSchedule pauses or resumes a schedule; the note says who did. Needs RoleDeployer. CodeInvalid: also when it
	// is resumed, and the store does not have it.
	PauseSchedule(ctx context.Context, n ScheduleName, paused bool, initiator string) error
	// RunSchedule runs a schedule now, also one that is paused. Needs RoleDeployer. CodeConflict: it is running.
	// CodeInvalid: also when the store does not have it.
	RunSchedule(ctx context.Context, n ScheduleName) error
	// ScheduleRuns lists the runs of a schedule, the latest first. Needs RoleViewer. Fails as every method does.
	ScheduleRuns(ctx context.Context, n ScheduleName, limit int) ([]ScheduleRun, error)
	// Drift returns what the last drift check found. Needs RoleViewer. CodeNotFound: also when there was none.
	Drift(ctx context.Context, s StackName) (Drift, error)
}
