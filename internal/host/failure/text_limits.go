package failure

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/deployctl/deployctl/engine"
	"go.temporal.io/sdk/activity"
)

const (
	// MaxFailure bounds the message of an activity's failure; the Temporal server limits the size of failures.
	MaxFailure = 4 << 10
	// MaxText bounds one text of a provider, and maxTexts the number of texts of one kind in a step: a result passes
	// through Temporal, which limits it to 2 MiB, and becomes events, which pass through gRPC.
	MaxText, maxTexts = 32 << 10, 50
	// maxLogged bounds the part of a longer text that is logged.
	maxLogged = 1 << 20
)

// Cut shortens a text to about limit bytes and notes it in the text. The worker's log has up to maxLogged bytes of it.
func Cut(ctx context.Context, text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("A text is too long to be shown as a whole.", "bytes", len(text), "text",
			Head(text, maxLogged))
	}
	return Head(text, limit) + fmt.Sprintf(" … (cut: %d of %d bytes are shown; the worker's log has more)", limit,
		len(text))
}

// Head returns the beginning of a text, cut between characters.
func Head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// cutStep shortens all texts of a step's provider.
func cutStep(ctx context.Context, result *engine.StepFinished) {
	result.Error = Cut(ctx, result.Error, MaxText)
	result.Failures = cutFailures(ctx, result.Failures, len(result.InitErrors))
	limit := max(MaxFailure, MaxText/max(1, len(result.Failures)+len(result.InitErrors)))
	if n := len(result.InitErrors); n > maxTexts {
		result.InitErrors = append(result.InitErrors[:maxTexts:maxTexts], fmt.Sprintf("and %d more", n-maxTexts))
	}
	for i := range result.InitErrors {
		result.InitErrors[i] = Cut(ctx, result.InitErrors[i], limit)
	}
	if result.Awaited != nil {
		result.Awaited.For = Cut(ctx, result.Awaited.For, MaxFailure)
	}
}

// cutFailures shortens the failures of a check, beside which there are other texts.
func cutFailures(ctx context.Context, failures []engine.CheckFailure, others int) []engine.CheckFailure {
	if n := len(failures); n > maxTexts {
		failures = append(failures[:maxTexts:maxTexts], engine.CheckFailure{Reason: fmt.Sprintf("and %d more", n-maxTexts)})
	}
	limit := max(MaxFailure, MaxText/max(1, len(failures)+others))
	for i := range failures {
		failures[i].Property = Cut(ctx, failures[i].Property, limit)
		failures[i].Reason = Cut(ctx, failures[i].Reason, limit)
	}
	return failures
}

// cutPlan shortens the texts of a provider in a plan.
func cutPlan(ctx context.Context, planned *engine.Planned) {
	planned.Error = Cut(ctx, planned.Error, MaxText)
	planned.Failures = cutFailures(ctx, planned.Failures, 0)
}
