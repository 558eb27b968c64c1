package deployment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/safetext"
	"github.com/deployctl/deployctl/statestore"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// writeEnd writes what the updates of a deployment have done to its log, and how it ended.
func (a *Activities) writeEnd(ctx context.Context, at statestore.LogPart, in deployments.EndDeploymentInput) error {
	var texts []string
	for _, u := range in.Updates {
		events, err := a.eventsOf(ctx, u)
		if err != nil {
			return err
		}
		for _, e := range events {
			texts = append(texts, linesOf(e)...)
		}
	}
	if len(texts) > mostLines {
		texts = append(texts[:mostLines], "The rest of the output is left out.")
	}
	end := "The deployment has " + string(in.Status) + "."
	if in.Status == deployments.DeploymentSkipped {
		end = "The deployment is skipped."
	}
	if in.Error != "" {
		end = strings.TrimSuffix(end, ".") + ": " + in.Error
	}
	texts = append(texts, end)
	lines := make([]apitype.DeploymentLogLine, len(texts))
	for i, text := range texts {
		lines[i] = apitype.DeploymentLogLine{Timestamp: time.Now().UTC(), Line: text + "\n"}
	}
	for ; len(lines) > 0; at.Number++ {
		n := min(len(lines), flushLines)
		if err := a.Store.PutDeploymentLog(ctx, at, lines[:n]); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// eventsOf returns the events of an update that has ended.
func (a *Activities) eventsOf(ctx context.Context, u deployments.UpdateName) ([]apitype.EngineEvent, error) {
	var all []apitype.EngineEvent
	var before deployments.EventPosition
	for {
		events, at, err := a.Service.EventsAfter(ctx, u, before)
		if err != nil {
			return nil, err
		}
		if at.Equal(before) {
			slices.SortStableFunc(all, func(a, b apitype.EngineEvent) int { return a.Timestamp - b.Timestamp })
			return all, nil
		}
		all, before = append(all, events...), at
	}
}

// linesOf returns an event of an update as lines; many events have none.
func linesOf(e apitype.EngineEvent) []string {
	switch {
	case e.DiagnosticEvent != nil && !e.DiagnosticEvent.Ephemeral:
		if text := safetext.Message(e.DiagnosticEvent.Message); text != "" {
			return strings.Split(text, "\n")
		}
	case e.ResOutputsEvent != nil && e.ResOutputsEvent.Metadata.Op != apitype.OpSame:
		return []string{changed(e.ResOutputsEvent.Metadata)}
	case e.ResOpFailedEvent != nil:
		return []string{changed(e.ResOpFailedEvent.Metadata) + ": failed"}
	case e.SummaryEvent != nil:
		var counts []string
		for _, op := range []apitype.OpType{apitype.OpCreate, apitype.OpUpdate, apitype.OpReplace, apitype.OpDelete,
			apitype.OpSame} {
			if n := e.SummaryEvent.ResourceChanges[op]; n > 0 {
				counts = append(counts, fmt.Sprintf("%s %d", op, n))
			}
		}
		return []string{strings.TrimSpace("resources: " + strings.Join(counts, ", "))}
	}
	return nil
}

func changed(m apitype.StepEventMetadata) string { return safetext.Line(string(m.Op) + " " + m.URN) }
