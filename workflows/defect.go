package workflows

import (
	"fmt"
	"runtime/debug"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// nondeterminism is part of the text of every panic by which the SDK reports that a history does not fit the code.
// Another build may fit, so the workflow waits for one.
const nondeterminism = "TMPRL"

// panicToError turns a panic of an Update or a Run into its error; without it the workflow task would be retried
// forever. The update then ends without a commit, and its stack recovers it from its history. A history that does not
// fit the code panics again: its workflow waits for another build. Call it with defer.
func panicToError(ctx workflow.Context, err *error) {
	value := recover()
	if value == nil {
		return
	}
	text := fmt.Sprint(value)
	if strings.Contains(text, nondeterminism) {
		panic(value)
	}
	workflow.GetLogger(ctx).Error("panic in a workflow", "panic", clip(text, messageBytes), "stack",
		string(debug.Stack()))
	*err = errDefect
}

var errDefect = temporal.NewNonRetryableApplicationError("deployctl failed internally; the log of the worker has the "+
	"stack trace",
	string(deployments.CodeInternal), nil)
