package failure

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"go.temporal.io/sdk/temporal"
)

func TestRedactionKeepsWhatAWorkflowDecidesBy(t *testing.T) {
	result := deployments.StepOutput{StepFinished: engine.StepFinished{Op: 7, Outcome: engine.OutcomePartial, ID: "n"}}
	for _, secret := range []string{"false", "true", "secret", "type", "Step", "Failed", "Details", "hush"} {
		var hide Redactor = redaction.New([]string{secret}).Replace
		for _, retried := range []bool{false, true} {
			err := hide.Failure(temporal.NewApplicationErrorWithOptions("hush: the secret type is false",
				deployments.ErrorStepFailed, temporal.ApplicationErrorOptions{
					NonRetryable: !retried, NextRetryDelay: time.Minute, Details: []any{result},
					Cause: errors.New("hush"),
				}))
			var application *temporal.ApplicationError
			var kept deployments.StepOutput
			if !errors.As(err, &application) || application.Type() != deployments.ErrorStepFailed ||
				application.NonRetryable() == retried || application.NextRetryDelay() != time.Minute ||
				application.Details(&kept) != nil || kept.Op != 7 || kept.ID != "n" {
				t.Errorf("%s: %#v", secret, err)
			}
			if secret == "hush" && strings.Contains(err.Error(), "hush") {
				t.Error(err)
			}
		}
	}
}
