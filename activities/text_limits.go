package activities

import (
	"context"
	"fmt"
	"unicode/utf8"

	"github.com/deployctl/deployctl/engine"
	"go.temporal.io/sdk/activity"
)

const (
	// maxFailure bounds the message of an activity's failure, of which the server keeps little.
	maxFailure = 4 << 10
	// maxText bounds what a provider says in one text, and maxTexts how many of one kind a step has: a result travels
	// through Temporal, which takes 2 MiB, and becomes events, which travel through gRPC.
	maxText, maxTexts = 32 << 10, 50
	// maxLogged bounds what of a longer text is logged.
	maxLogged = 1 << 20
)

// cut shortens a text to about limit bytes and says so. The whole is in the worker's log.
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

// head is the beginning of a text, of whole characters.
func head(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit]
}

// cutStep shortens everything that a step's provider says in words.
func cutStep(ctx context.Context, result *engine.StepFinished) {
	result.Error = cut(ctx, result.Error, maxText)
	if n := len(result.Failures); n > maxTexts {
		result.Failures = append(result.Failures[:maxTexts:maxTexts],
			engine.CheckFailure{Reason: fmt.Sprintf("and %d more", n-maxTexts)})
	}
	limit := max(maxFailure, maxText/max(1, len(result.Failures)+len(result.InitErrors)))
	for i := range result.Failures {
		result.Failures[i].Reason = cut(ctx, result.Failures[i].Reason, limit)
	}
	if n := len(result.InitErrors); n > maxTexts {
		result.InitErrors = append(result.InitErrors[:maxTexts:maxTexts], fmt.Sprintf("and %d more", n-maxTexts))
	}
	for i := range result.InitErrors {
		result.InitErrors[i] = cut(ctx, result.InitErrors[i], limit)
	}
}
