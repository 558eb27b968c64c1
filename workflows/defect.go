package workflows

import (
	"fmt"
	"runtime/debug"
	"strings"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// notOurs is in the text of the panics by which the SDK says that a history does not fit the code. Another build may
// fit, so the workflow waits for one.
const notOurs = "TMPRL"

// defective makes a panic of a workflow its error: without that, its task would be tried again for ever. The update
// then ends as not settled, and its stack recovers it from its history. Defer it.
func defective(ctx workflow.Context, err *error) {
	value := recover()
	if value == nil {
		return
	}
	text := fmt.Sprint(value)
	if strings.Contains(text, notOurs) {
		panic(value)
	}
	workflow.GetLogger(ctx).Error("panic in a workflow", "panic", clip(text, messageBytes), "stack",
		string(debug.Stack()))
	*err = errDefect
}

var errDefect = temporal.NewNonRetryableApplicationError("deployctl failed internally; the log of the worker has the "+
	"stack trace",
	string(deployments.CodeInternal), nil)
