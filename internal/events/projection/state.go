package projection

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// Phase is where a step stands.
type Phase int

// The phases of a step.
const (
	PhaseWaiting Phase = iota // known of only as a parent, or by a diagnostic
	PhaseRunning
	PhaseDone
	PhaseFailed
)

// Row is one resource of an update.
type Row struct {
	URN      string
	Type     string
	Name     string
	Parent   string // URN
	Op       apitype.OpType
	Phase    Phase
	Started  time.Time
	Finished time.Time
	// Attempt, LastError and NextRetry are of a step that is being retried.
	Attempt   int
	LastError string
	NextRetry time.Time
	// Turnless says that the step has been issued and waits for its turn: so many run at a time.
	Turnless bool
	Changes  []Change
	Notes    []string // what else people care for: another name, a lost protection, a taint
	Diags    []Diag

	Current  apitype.OpType // the step that Phase is about; Op is the most telling one so far
	Metadata apitype.StepEventMetadata
	// DeletesFirst says that what is replaced is deleted before its replacement is made.
	DeletesFirst bool
}

// Diag is one diagnostic.
type Diag struct {
	URN      string
	Severity string // info, info#err, warning, error, debug
	Message  string // without colours and without the newline at the end
}

// State is what an update's event log has said so far.
type State struct {
	Rows     []*Row // in order of first mention
	Diags    []Diag // those of no resource
	Outputs  map[string]any
	Previous map[string]any // the outputs before
	Program  string         // the declarations that an import has written
	Progress deployments.Progress
	End      *deployments.UpdateInfo
	Planning bool      // the events are a preview's
	Begun    time.Time // when the first item was shown, or a view asked
	// Parallel is how many steps run at a time; 0 until it is known. More are issued, and wait for their turn.
	Parallel int

	ByURN map[string]*Row
	// policyPacks and remediated are what policy packs have found; see PolicyPacks.
	policyPacks []*PolicyPack
	remediated  map[[4]string]bool

	Issued []*Row // those of steps that have not ended, in the order of their turns
}

// NewState gives the state of an update of which nothing is known.
func NewState() *State { return &State{ByURN: map[string]*Row{}} }

// StackType is the type of the resource that stands for the stack.
const StackType = "pulumi:pulumi:Stack"

// Apply takes in one item. It returns the row that the item is about, or nil.
func (s *State) Apply(e deployments.WatchEvent) *Row {
	switch {
	case e.End != nil:
		s.End = e.End
	case e.Progress != nil:
		s.progress(*e.Progress, time.Now())
	case e.Event != nil:
		return s.event(*e.Event)
	}
	return nil
}

func (s *State) event(e apitype.EngineEvent) *Row {
	at := time.Unix(int64(e.Timestamp), 0)
	if e.Timestamp > 0 && (s.Begun.IsZero() || at.Before(s.Begun)) {
		s.Begun = at
	}
	switch {
	case e.ResourcePreEvent != nil:
		s.Planning = e.ResourcePreEvent.Planning
		return s.step(e.ResourcePreEvent.Metadata, PhaseRunning, at)
	case e.ResOutputsEvent != nil:
		s.Planning = e.ResOutputsEvent.Planning
		row := s.step(e.ResOutputsEvent.Metadata, PhaseDone, at)
		if row.Type == StackType {
			s.outputs(e.ResOutputsEvent.Metadata)
		}
		return row
	case e.ResOpFailedEvent != nil:
		return s.step(e.ResOpFailedEvent.Metadata, PhaseFailed, at)
	case e.DiagnosticEvent != nil:
		return s.diagnostic(*e.DiagnosticEvent)
	case e.PolicyEvent != nil:
		s.violation(*e.PolicyEvent)
	case e.PolicyRemediationEvent != nil:
		s.remediation(*e.PolicyRemediationEvent)
	case e.SummaryEvent != nil:
		s.finished(*e.SummaryEvent)
	case e.ErrorEvent != nil:
		s.Diags = append(s.Diags, Diag{Severity: "error", Message: safetext.Message(e.ErrorEvent.Error)})
	case e.StdoutEvent != nil:
		s.Program = e.StdoutEvent.Message // the last one, if an epoch was lost
	}
	return nil
}

// outputs keeps the stack's outputs.
func (s *State) outputs(m apitype.StepEventMetadata) {
	if m.Old != nil {
		s.Previous = m.Old.Outputs
	}
	if m.New != nil {
		s.Outputs = m.New.Outputs
	}
	if m.Op == apitype.OpDelete {
		s.Outputs = nil
	}
}

// row finds or makes the row of a URN.
func (s *State) row(id string) *Row {
	if row, ok := s.ByURN[id]; ok {
		return row
	}
	row := newRow(id)
	s.ByURN[id] = row
	s.Rows = append(s.Rows, row)
	return row
}

func newRow(id string) *Row {
	row := &Row{URN: id, Name: id}
	if u, err := urn.Parse(id); err == nil {
		row.Type, row.Name = string(u.Type()), u.Name()
	}
	return row
}

func (s *State) step(m apitype.StepEventMetadata, p Phase, at time.Time) *Row {
	row := s.row(m.URN)
	op := shownOp(m)
	if rankOf(op) >= rankOf(row.Op) || row.Op == "" {
		row.Op = op
		row.Metadata = m
	}
	// A state that is replaced after its replacement was made is marked to be deleted.
	row.DeletesFirst = row.DeletesFirst || op == apitype.OpDeleteReplaced && m.Old != nil && !m.Old.Delete
	if p == PhaseRunning {
		row.Started, row.Finished = at, time.Time{}
		s.issue(row, m, at)
	} else {
		s.release(row, at)
		row.Finished = at
		row.Attempt, row.LastError, row.NextRetry = 0, "", time.Time{}
	}
	row.Phase, row.Current = p, op
	for _, state := range []*apitype.StepEventStateMetadata{m.Old, m.New} {
		if state != nil && state.Parent != "" {
			row.Parent = state.Parent
		}
	}
	if notes := notesOf(m); len(notes) > 0 {
		row.Notes = notes
	}
	if changes := changesOf(m); len(changes) > 0 {
		row.Changes = changes
	}
	if m.Op == apitype.OpRefresh && p == PhaseDone {
		row.found(m)
	}
	return row
}

// found says what a refresh has found, unless the row tells of more than of that.
func (r *Row) found(m apitype.StepEventMetadata) {
	switch {
	case r.Op != apitype.OpRefresh:
		return
	case m.New == nil:
		r.Op = OpGone
	case len(r.Changes) > 0:
		r.Op = OpDrifted
	}
	r.Current = r.Op
}

// Sorted gives the rows by type and name, numbers in names by their value: the same in a preview and in the update
// after it.
func (s *State) Sorted() []*Row {
	rows := slices.Clone(s.Rows)
	slices.SortStableFunc(rows, func(a, b *Row) int {
		if c := strings.Compare(a.Type, b.Type); c != 0 {
			return c
		}
		return natural(a.Name, b.Name)
	})
	return rows
}

// natural compares two names; stretches of digits count as numbers.
func natural(a, b string) int {
	for a != "" && b != "" {
		x, y := digits(a), digits(b)
		if x > 0 && y > 0 {
			n, m := strings.TrimLeft(a[:x], "0"), strings.TrimLeft(b[:y], "0")
			if c := cmp.Or(cmp.Compare(len(n), len(m)), strings.Compare(n, m)); c != 0 {
				return c
			}
			a, b = a[x:], b[y:]
			continue
		}
		if a[0] != b[0] {
			return cmp.Compare(a[0], b[0])
		}
		a, b = a[1:], b[1:]
	}
	return cmp.Compare(len(a), len(b))
}

// digits is how many digits a name begins with.
func digits(name string) int {
	return len(name) - len(strings.TrimLeft(name, "0123456789"))
}

// diagnostic keeps a diagnostic with its resource. Chatter that is meant to vanish is dropped.
func (s *State) diagnostic(e apitype.DiagnosticEvent) *Row {
	if e.Ephemeral || e.Severity == "debug" {
		return nil
	}
	d := Diag{URN: e.URN, Severity: e.Severity, Message: safetext.Message(e.Prefix + e.Message)}
	if e.URN == "" {
		s.Diags = append(s.Diags, d)
		return nil
	}
	row := s.row(e.URN)
	row.Diags = append(row.Diags, d)
	return row
}

// progress updates the rows of running steps.
func (s *State) progress(p deployments.Progress, at time.Time) {
	if p.Phase != nil {
		s.Progress.Phase = p.Phase
		return
	}
	p.Phase = s.Progress.Phase
	s.Progress = p
	s.learn(p.Running)
	s.turns(at)
	for _, step := range p.Running {
		row, ok := s.ByURN[step.URN]
		if !ok || row.Phase != PhaseRunning {
			continue
		}
		row.Attempt, row.LastError, row.NextRetry = step.Attempt, step.LastError, step.NextRetry
		if !step.Started.IsZero() {
			row.Started = step.Started
		}
	}
}

// notesOf returns what a step does beside its operation.
func notesOf(m apitype.StepEventMetadata) (notes []string) {
	if m.Old == nil || m.New == nil {
		return nil
	}
	if was, err := urn.Parse(m.Old.URN); err == nil && m.Old.URN != m.URN && m.Op != apitype.OpRefresh {
		switch is := newRow(m.URN); {
		case string(was.Type()) != is.Type:
			notes = append(notes, fmt.Sprintf("was %s %s", was.Type(), was.Name()))
		case was.Name() != is.Name:
			notes = append(notes, "was "+was.Name())
		default:
			notes = append(notes, "had another parent")
		}
	}
	if m.Old.Taint && rankOf(m.Op) >= rankOf(apitype.OpDeleteReplaced) {
		notes = append(notes, "tainted")
	}
	if m.Old.Protect && !m.New.Protect && m.Op != apitype.OpRefresh {
		notes = append(notes, "no longer protected")
	}
	return notes
}

// Noted says whether anything is to be said of a resource, changed or not.
func (s *State) Noted() bool {
	return slices.ContainsFunc(s.Rows, func(r *Row) bool { return len(r.Notes) > 0 && !r.Internal() })
}

// Changed says whether any resource changes, or the stack's outputs do. A read is a change if it brought something new:
// only then it is counted.
func (s *State) Changed() bool {
	return s.OutputsChanged() || s.End != nil && s.End.Changes[string(apitype.OpRead)] > 0 ||
		slices.ContainsFunc(s.Rows, func(r *Row) bool { return r.IsChange() && r.Op != apitype.OpRead && !r.Internal() })
}

// IsChange says whether the row's step does anything.
func (r *Row) IsChange() bool {
	return r.Op != "" && r.Op != apitype.OpSame && r.Op != apitype.OpRefresh
}

// Internal says whether the row is of a provider that nobody declared: it is shown only when something is wrong with
// it.
func (r *Row) Internal() bool {
	return strings.HasPrefix(r.Type, "pulumi:providers:") && strings.HasPrefix(r.Name, "default") &&
		r.Phase != PhaseFailed && len(r.Diags) == 0
}
