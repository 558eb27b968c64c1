package activities

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/deployctl/deployctl/engine"
	"go.temporal.io/sdk/activity"
)

const (
	// maxFailure bounds the message of an activity's failure; the Temporal server limits the size of failures.
	maxFailure = 4 << 10
	// maxText bounds one text of a provider, and maxTexts the number of texts of one kind in a step: a result passes
	// through Temporal, which limits it to 2 MiB, and becomes events, which pass through gRPC.
	maxText, maxTexts = 32 << 10, 50
	// maxLogged bounds the part of a longer text that is logged.
	maxLogged = 1 << 20
)

// cut shortens a text to about limit bytes and notes it in the text. The worker's log has up to maxLogged bytes of it.
func cut(ctx context.Context, text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	if activity.IsActivity(ctx) {
		activity.GetLogger(ctx).Warn("A text is too long to be shown as a whole.", "bytes", len(text), "text",
			head(text, maxLogged))
	}
	return head(text, limit) + fmt.Sprintf(" … (cut: %d of %d bytes are shown; the worker's log has more)", limit,
		len(text))
}

// head returns the beginning of a text, cut between characters.
func head(text string, limit int) string {
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
	result.Error = cut(ctx, result.Error, maxText)
	result.Failures = cutFailures(ctx, result.Failures, len(result.InitErrors))
	limit := max(maxFailure, maxText/max(1, len(result.Failures)+len(result.InitErrors)))
	if n := len(result.InitErrors); n > maxTexts {
		result.InitErrors = append(result.InitErrors[:maxTexts:maxTexts], fmt.Sprintf("and %d more", n-maxTexts))
	}
	for i := range result.InitErrors {
		result.InitErrors[i] = cut(ctx, result.InitErrors[i], limit)
	}
	if result.Awaited != nil {
		result.Awaited.For = cut(ctx, result.Awaited.For, maxFailure)
	}
}

// cutFailures shortens the failures of a check, beside which there are other texts.
func cutFailures(ctx context.Context, failures []engine.CheckFailure, others int) []engine.CheckFailure {
	if n := len(failures); n > maxTexts {
		failures = append(failures[:maxTexts:maxTexts], engine.CheckFailure{Reason: fmt.Sprintf("and %d more", n-maxTexts)})
	}
	limit := max(maxFailure, maxText/max(1, len(failures)+others))
	for i := range failures {
		failures[i].Property = cut(ctx, failures[i].Property, limit)
		failures[i].Reason = cut(ctx, failures[i].Reason, limit)
	}
	return failures
}

// cutPlan shortens the texts of a provider in a plan.
func cutPlan(ctx context.Context, planned *engine.Planned) {
	planned.Error = cut(ctx, planned.Error, maxText)
	planned.Failures = cutFailures(ctx, planned.Failures, 0)
}
