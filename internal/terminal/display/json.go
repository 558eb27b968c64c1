package display

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/events/projection"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Summary is the last line of --json.
type Summary struct {
	Type    string         `json:"type"` // "summary"
	Result  string         `json:"result"`
	Changes map[string]int `json:"changes"`
	Seconds float64        `json:"seconds"`
	Update  string         `json:"update"`
	// Error is the update's error in one sentence.
	Error string `json:"error,omitempty"`
	// Policies counts what policy packs found; nil without a pack.
	Policies *PolicyCounts `json:"policies,omitempty"`
}

// SummaryOf summarises an ended update. The common kinds of changes are always listed, others only if they occurred.
func SummaryOf(end deployments.UpdateInfo) Summary {
	changes := map[string]int{"create": 0, "update": 0, "replace": 0, "delete": 0, "same": 0}
	for op, n := range end.Changes {
		changes[op] = n
	}
	return Summary{
		Type: "summary", Result: end.Status, Changes: changes, Seconds: float64(end.Took().Milliseconds()) / 1000,
		Update: end.Update.String(), Error: end.Error,
	}
}

// jsonLines prints engine events unchanged.
type jsonLines struct {
	encoder *json.Encoder
	state   *projection.State
	begun   map[shownStep]bool // of which an event was printed
}

// shownStep is a kind of step of a resource.
type shownStep struct {
	op  apitype.OpType
	urn string
}

func stepOf(m apitype.StepEventMetadata) shownStep { return shownStep{m.Op, m.URN} }

// oneEvent are the steps of which the log may have the end alone: there may be very many.
var oneEvent = map[apitype.OpType]bool{apitype.OpSame: true, apitype.OpRefresh: true}

func newJSON(o Options) *jsonLines {
	encoder := json.NewEncoder(o.Out)
	encoder.SetEscapeHTML(false)
	return &jsonLines{encoder, o.State, map[shownStep]bool{}}
}

func (j *jsonLines) Item(e deployments.WatchEvent) {
	j.state.Apply(e)
	switch {
	case e.Event != nil:
		j.begin(*e.Event)
		_ = j.encoder.Encode(e.Event) // a reader that has closed the pipe must not end the update
	case e.End != nil:
		summary := SummaryOf(*e.End)
		summary.Policies = policyCounts(j.state)
		_ = j.encoder.Encode(summary)
	}
}

// begin prints a begin event before an end that has none in the log: readers expect one before each.
func (j *jsonLines) begin(e apitype.EngineEvent) {
	begin := apitype.ResourcePreEvent{}
	switch {
	case e.ResourcePreEvent != nil:
		j.begun[stepOf(e.ResourcePreEvent.Metadata)] = true
		return
	case e.ResOutputsEvent != nil:
		begin.Metadata, begin.Planning = e.ResOutputsEvent.Metadata, e.ResOutputsEvent.Planning
	case e.ResOpFailedEvent != nil:
		begin.Metadata = e.ResOpFailedEvent.Metadata
	default:
		return
	}
	step := stepOf(begin.Metadata)
	if oneEvent[step.op] && !j.begun[step] {
		_ = j.encoder.Encode(apitype.EngineEvent{Sequence: e.Sequence, Timestamp: e.Timestamp, ResourcePreEvent: &begin})
	}
	j.begun[step] = step.op != apitype.OpRefresh // a copy that waits for its deletion has the same URN, and is read, too
}

// Note prints to standard error, so that programs that read the output do not see it.
func (j *jsonLines) Note(text string) { _, _ = fmt.Fprintln(os.Stderr, text) }

func (j *jsonLines) Close() {}
