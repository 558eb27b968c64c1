package console

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Bounds of what is kept of the log of one update.
const (
	mostSteps      = 20_000
	mostMessages   = 10_000
	messageBytes   = 2 << 20 // of all messages
	mostViolations = 1_000
	shownChanges   = 30 // of one step
	changeText     = 300
	messageText    = 4_000
	stepCost       = 1_200    // bytes of a step, about
	mostTold       = 24 << 20 // bytes of a log, from which on no more changes are kept
)

// told is what the log of an update says, without the values of resources.
type told struct {
	state      *projection.State
	details    map[string]*detail // by URN
	messages   []message
	dropped    int // messages that came before those
	bytes      int // of the messages
	omitted    int // events of resources beyond mostSteps, or with a name that is too long
	violations int
	restarts   []time.Time // when the program was started again
	ended      bool
	size       int // about what it takes in memory
}

// detail is what is kept of a step beside its row.
type detail struct {
	component bool
	changes   []change
	more      int // changes that are not kept
	attempts  int // the most that were seen
	failure   string
}

// change is a property that a step changes.
type change struct {
	Path, Old, New string
	Replaces       bool
}

// message is something that the update, its program or a plugin has said.
type message struct {
	At             time.Time
	Severity, Name string
	Text           string
}

func newTold() told { return told{state: projection.NewState(), details: map[string]*detail{}} }

// apply takes in one item of the log.
func (t *told) apply(e deployments.WatchEvent) {
	if e.Event != nil {
		if e.Event = cut(e.Event); e.Event == nil {
			t.omitted++
			return
		}
	}
	if t.beyond(e.Event) {
		return
	}
	var at time.Time
	if e.Event != nil {
		at = time.Unix(int64(e.Event.Timestamp), 0)
		if d := e.Event.DiagnosticEvent; d != nil && !d.Ephemeral && d.Severity != "debug" {
			t.say(at, *d)
		}
		if f := e.Event.ErrorEvent; f != nil {
			t.say(at, apitype.DiagnosticEvent{Severity: "error", Message: f.Error})
		}
	}
	row := t.state.Apply(e)
	t.ended = t.ended || e.End != nil
	t.state.Diags, t.state.Outputs, t.state.Previous, t.state.Program = nil, nil, nil, ""
	if p := e.Progress; p != nil {
		for _, running := range p.Running {
			if d := t.details[running.URN]; d != nil {
				d.attempts = max(d.attempts, running.Attempt)
			}
		}
	}
	if row != nil {
		t.keep(row, e.Event)
	}
}

// beyond reports whether an event is about one resource, or one violation, too many.
func (t *told) beyond(e *apitype.EngineEvent) bool {
	if e == nil {
		return false
	}
	id := ""
	switch {
	case e.ResourcePreEvent != nil:
		id = e.ResourcePreEvent.Metadata.URN
	case e.ResOutputsEvent != nil:
		id = e.ResOutputsEvent.Metadata.URN
	case e.ResOpFailedEvent != nil:
		id = e.ResOpFailedEvent.Metadata.URN
	case e.DiagnosticEvent != nil:
		id = e.DiagnosticEvent.URN
	case e.PolicyEvent != nil || e.PolicyRemediationEvent != nil:
		if p := e.PolicyEvent; p != nil {
			t.size += len(p.Message)
		}
		t.violations++
		return t.violations > mostViolations
	}
	if _, known := t.state.ByURN[id]; id == "" || known || len(t.state.Rows) < mostSteps {
		return false
	}
	t.omitted++
	return true
}

// policies returns what policy packs have found so far; what they find later does not change it.
func (t *told) policies() []*projection.PolicyPack {
	packs := t.state.PolicyPacks()
	for i, p := range packs {
		p := *p
		p.Violations, p.Remediated = slices.Clone(p.Violations), maps.Clone(p.Remediated)
		packs[i] = &p
	}
	return packs
}

// keep takes out of a row what may be large, and keeps what pages show of it.
func (t *told) keep(row *projection.Row, e *apitype.EngineEvent) {
	d := t.details[row.URN]
	if d == nil {
		d = &detail{}
		t.details[row.URN] = d
		t.size += stepCost + 2*len(row.URN)
	}
	if len(row.Changes) > 0 {
		t.size -= sizeOf(d.changes)
		if d.changes, d.more = nil, len(row.Changes); t.size < mostTold {
			d.changes, d.more = changesOf(row.Changes)
		}
		t.size += sizeOf(d.changes)
	}
	if m := metadataOf(e); m != nil {
		d.component = d.component || m.New != nil && !m.New.Custom || m.New == nil && m.Old != nil && !m.Old.Custom
	}
	if n := len(row.Diags); n > 0 {
		last := row.Diags[n-1]
		if last.Severity == "error" || row.CutOff() {
			d.failure = short(messageText, last.Message)
		}
		row.Diags = []projection.Diag{{Severity: last.Severity, Message: short(messageText, last.Message)}}
	}
	row.Changes, row.Metadata = nil, apitype.StepEventMetadata{}
}

func sizeOf(changes []change) (bytes int) {
	for _, c := range changes {
		bytes += len(c.Path) + len(c.Old) + len(c.New)
	}
	return bytes
}

func metadataOf(e *apitype.EngineEvent) *apitype.StepEventMetadata {
	switch {
	case e == nil:
	case e.ResourcePreEvent != nil:
		return &e.ResourcePreEvent.Metadata
	case e.ResOutputsEvent != nil:
		return &e.ResOutputsEvent.Metadata
	case e.ResOpFailedEvent != nil:
		return &e.ResOpFailedEvent.Metadata
	}
	return nil
}

// changesOf returns changes as pages show them.
func changesOf(all []projection.Change) (list []change, more int) {
	for i, c := range all {
		if i == shownChanges {
			return list, len(all) - i
		}
		shown := change{Path: short(changeText, safetext.Visible(c.Path)), Old: "(not shown)", New: "(not shown)",
			Replaces: c.Replaces}
		if !c.Hidden {
			before, now := projection.FormatPair(c.Old, c.New)
			shown.Old, shown.New = short(changeText, before), short(changeText, now)
		}
		if c.Old == nil {
			shown.Old = ""
		}
		if c.New == nil {
			shown.New = ""
		}
		list = append(list, shown)
	}
	return list, 0
}

// say keeps a message, and forgets the oldest ones when there are too many.
func (t *told) say(at time.Time, d apitype.DiagnosticEvent) {
	m := message{At: at, Severity: d.Severity, Text: safetext.Message(d.Prefix + d.Message)}
	if d.URN != "" {
		m.Name = short(messageText, projection.Violation{URN: d.URN}.Of().Name)
	}
	if d.URN == "" && strings.HasPrefix(strings.TrimPrefix(m.Text, "info: "), engine.StartsAgain) &&
		len(t.restarts) < stepsSize {
		t.restarts = append(t.restarts, at)
	}
	t.messages = append(t.messages, m)
	t.bytes += len(m.Text) + len(m.Name)
	t.size += len(m.Text) + len(m.Name) + 100
	for len(t.messages) > mostMessages || t.bytes > messageBytes {
		first := t.messages[0]
		t.bytes -= len(first.Text) + len(first.Name)
		t.size -= len(first.Text) + len(first.Name) + 100
		t.messages = t.messages[1:]
		t.dropped++
	}
}
