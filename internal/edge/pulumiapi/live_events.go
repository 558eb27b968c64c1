package pulumiapi

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// livePosition is how far a client has read the events of an update. As a continuation token it is base64 of JSON.
type livePosition struct {
	Version string                    `json:"version,omitempty"` // of the update that continues the one in the path
	Read    deployments.EventPosition `json:"read,omitzero"`
	Summary bool                      `json:"summary,omitempty"` // the summary was sent
}

func (p livePosition) token() *string {
	data, _ := json.Marshal(p) // it has no value that cannot be encoded
	text := base64.RawURLEncoding.EncodeToString(data)
	return &text
}

// livePosition returns the position that the caller asks for; without one it is the beginning.
func (c *call) livePosition() (p livePosition, err error) {
	text := c.query().Get("continuationToken")
	if text == "" {
		return p, nil
	}
	data, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil || json.Unmarshal(data, &p) != nil {
		return p, deployments.Errorf(deployments.CodeInvalid, "this is not a continuation token of the events")
	}
	return p, nil
}

// updateEvents returns the next events of an update, while it runs or after its end, and the position after them while
// there may be more. The CLI takes its exit code from the summary, so one is made for an update that ended before it
// could have one.
func updateEvents(c *call) (any, error) {
	u, err := c.update()
	if err != nil {
		return nil, err
	}
	at, err := c.livePosition()
	if err != nil {
		return nil, err
	}
	u.Version = cmp.Or(at.Version, u.Version)
	if err := u.Validate(); err != nil {
		return nil, err
	}
	info, err := c.edge.Service.Info(c.Context(), u) // before the events: all of an update that has ended are there
	if notFound(err) {
		err = c.expected(u)
	}
	if err != nil {
		return nil, err
	}
	events, read, err := c.edge.Service.EventsAfter(c.Context(), u, at.Read)
	if err != nil {
		return nil, err
	}
	if len(read.Ranges) == 0 { // a client writes all begins itself
		events = withBegins(events)
	}
	answer := apitype.GetUpdateEventsResponse{Events: []apitype.EngineEvent{}}
	wanted := c.eventFilter()
	for _, e := range events {
		at.Summary = at.Summary || e.SummaryEvent != nil
		whole(&e)
		if wanted.selects(e) {
			answer.Events = append(answer.Events, e)
		}
	}
	ended := !info.Ended.IsZero() && read.Equal(at.Read)
	at.Read = read
	switch {
	case !ended:
		answer.ContinuationToken = at.token()
	case info.Next != "":
		answer.ContinuationToken = livePosition{Version: info.Next}.token()
	case !at.Summary:
		answer.Events = append(answer.Events, endOf(info)...)
	}
	return answer, nil
}

// withBegins puts a begin before the end of each refresh that has none here, because the CLI knows a refresh by its
// begin. A read that is slow may have two, which shows the same.
func withBegins(events []apitype.EngineEvent) []apitype.EngineEvent {
	var all []apitype.EngineEvent
	begun := map[string]bool{}
	for _, e := range events {
		begin := apitype.ResourcePreEvent{}
		switch {
		case e.ResourcePreEvent != nil:
			begun[e.ResourcePreEvent.Metadata.URN] = true
		case e.ResOutputsEvent != nil:
			begin.Metadata, begin.Planning = e.ResOutputsEvent.Metadata, e.ResOutputsEvent.Planning
		case e.ResOpFailedEvent != nil:
			begin.Metadata = e.ResOpFailedEvent.Metadata
		}
		if begin.Metadata.Op == apitype.OpRefresh && !begun[begin.Metadata.URN] {
			all = append(all, apitype.EngineEvent{Sequence: e.Sequence, Timestamp: e.Timestamp, ResourcePreEvent: &begin})
		}
		all = append(all, e)
	}
	return all
}

// endOf returns the events about the end of an update that has no summary.
func endOf(info deployments.UpdateInfo) []apitype.EngineEvent {
	results := map[apitype.UpdateStatus]apitype.OperationResult{
		apitype.UpdateStatusSucceeded: apitype.OperationResultSucceeded,
		apitype.UpdateStatusCancelled: apitype.OperationResultCanceled,
	}
	result, known := results[statusOf(info)]
	if !known {
		result = apitype.OperationResultFailed
	}
	now := int(time.Now().Unix())
	events := []apitype.EngineEvent{{Timestamp: now, SummaryEvent: &apitype.SummaryEvent{Result: result,
		IsPreview: info.DryRun, ResourceChanges: map[apitype.OpType]int{}}}}
	if info.Error != "" {
		events = append([]apitype.EngineEvent{{Timestamp: now, DiagnosticEvent: &apitype.DiagnosticEvent{
			Message: info.Error + "\n", Severity: "error", Color: "never"}}}, events...)
	}
	return events
}

// whole fills in what the CLI relies on to show an event: the state of a resource, and of one that stays the same both
// states.
func whole(e *apitype.EngineEvent) {
	var m *apitype.StepEventMetadata
	switch {
	case e.ResourcePreEvent != nil:
		m = &e.ResourcePreEvent.Metadata
	case e.ResOutputsEvent != nil:
		m = &e.ResOutputsEvent.Metadata
	case e.ResOpFailedEvent != nil:
		m = &e.ResOpFailedEvent.Metadata
	default:
		return
	}
	if m.Old == nil && m.New == nil {
		m.New = &apitype.StepEventStateMetadata{Type: m.Type, URN: m.URN}
	}
	if m.Op == apitype.OpSame {
		m.Old, m.New = cmp.Or(m.Old, m.New), cmp.Or(m.New, m.Old)
	}
}
