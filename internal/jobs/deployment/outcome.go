package deployment

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/jobs"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// writeEnd writes what the updates of a deployment have done to its log, and how it ended.
func (a *Activities) writeEnd(ctx context.Context, at jobs.LogPart, in deployments.EndDeploymentInput) error {
	w := endWriter{store: a.Store, at: at}
	for _, u := range in.Updates {
		if err := a.writeEvents(ctx, &w, u); err != nil {
			return err
		}
	}
	if w.lines >= mostLines {
		if err := w.line(ctx, "The rest of the output is left out."); err != nil {
			return err
		}
	}
	end := "The deployment has " + string(in.Status) + "."
	if in.Status == deployments.DeploymentSkipped {
		end = "The deployment is skipped."
	}
	if in.Error != "" {
		end = strings.TrimSuffix(end, ".") + ": " + in.Error
	}
	if err := w.line(ctx, end); err != nil {
		return err
	}
	return w.flush(ctx)
}

// endWriter writes lines to the log of a deployment.
type endWriter struct {
	store   *statestore.Store
	at      jobs.LogPart // of the next part
	pending []apitype.DeploymentLogLine
	lines   int
}

func (w *endWriter) line(ctx context.Context, text string) error {
	w.lines++
	w.pending = append(w.pending, apitype.DeploymentLogLine{Timestamp: time.Now().UTC(), Line: shortened(text) + "\n"})
	if len(w.pending) < flushLines {
		return nil
	}
	return w.flush(ctx)
}

func (w *endWriter) flush(ctx context.Context) error {
	if len(w.pending) == 0 {
		return nil
	}
	err := w.store.Jobs.PutDeploymentLog(ctx, w.at, w.pending)
	w.at.Number, w.pending = w.at.Number+1, nil
	return err
}

// writeEvents writes what the events of an update say, which has ended, as far as the log has room for it.
func (a *Activities) writeEvents(ctx context.Context, w *endWriter, u deployments.UpdateName) error {
	var before deployments.EventPosition
	for w.lines < mostLines {
		events, at, err := a.Service.EventsAfter(ctx, u, before)
		if err != nil || at.Equal(before) {
			return err
		}
		for _, e := range events {
			for _, text := range linesOf(e) {
				if w.lines == mostLines {
					return nil
				}
				if err := w.line(ctx, text); err != nil {
					return err
				}
			}
		}
		before = at
	}
	return nil
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
