package failure

import (
	"context"
	"errors"

	"github.com/deployctl/deployctl/engine"
	"go.temporal.io/sdk/temporal"
)

// Redactor replaces the secrets in a text of a provider, and the paths of the worker, before it leaves an activity:
// users read the text, the store keeps it, and Temporal shows it as the failure of an attempt.
type Redactor func(text string) string

func (c Redactor) failures(failures []engine.CheckFailure) {
	for i := range failures {
		failures[i].Reason = c(failures[i].Reason)
	}
}

func (c Redactor) found(f *engine.Found) {
	if f == nil {
		return
	}
	if f.Owner = c(f.Owner); !c.shows(f.ID) {
		f.Shown = c(f.ID)
	}
}

// Step makes the texts in the result of a step fit to leave its activity: without secrets, and of a bounded length.
func (c Redactor) Step(ctx context.Context, result *engine.StepFinished) {
	result.Error = c(result.Error)
	if e := result.Evidence; e != nil {
		result.Evidence = &engine.Evidence{Class: e.Class, By: c(e.By), Look: e.Look, Looked: c(e.Looked)}
	}
	c.found(result.Found)
	if w := result.Awaited; w != nil {
		result.Awaited = &engine.Awaited{For: c(w.For), After: w.After}
	}
	c.failures(result.Failures)
	for i, reason := range result.InitErrors {
		result.InitErrors[i] = c(reason)
	}
	c.views(result.Views)
	cutStep(ctx, result)
}

// Plan is Step for a plan.
func (c Redactor) Plan(ctx context.Context, planned *engine.Planned) {
	planned.Error = c(planned.Error)
	c.found(planned.Found)
	c.failures(planned.Failures)
	c.views(planned.Views)
	c.Analysis(planned.Analysis)
	cutPlan(ctx, planned)
}

func (c Redactor) views(steps []engine.ViewStep) {
	for i := range steps {
		steps[i].Error = c(steps[i].Error)
	}
}

// Failure translates an error for Temporal, as Of does. If its text has a secret, the text is
// redacted and the cause left out. What workflows decide by stays as it is: the type, the details, and whether and when
// Temporal retries.
func (c Redactor) Failure(err error) error {
	err = Of(err)
	var application *temporal.ApplicationError
	if !errors.As(err, &application) || c.shows(application.Message()) && c.shows(causeText(application)) {
		return err
	}
	options := temporal.ApplicationErrorOptions{
		NonRetryable: application.NonRetryable(), NextRetryDelay: application.NextRetryDelay(),
		Category: application.Category(),
	}
	var detail any
	if application.Details(&detail) == nil {
		options.Details = []any{detail}
	}
	return temporal.NewApplicationErrorWithOptions(c(application.Message()), application.Type(), options)
}

// shows reports whether nothing in a text is to be redacted.
func (c Redactor) shows(text string) bool { return c(text) == text }

func causeText(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return ""
}

// Analysis redacts what policies say.
func (c Redactor) Analysis(a *engine.Analysis) {
	if a == nil {
		return
	}
	for i := range a.Violations {
		a.Violations[i].Message = c(a.Violations[i].Message)
	}
}

// BagsOf returns the bags that a call about a resource uses.
func BagsOf(p *engine.Provider, states ...*engine.State) []engine.Bag {
	var bags []engine.Bag
	if p != nil {
		bags = append(bags, p.Inputs)
	}
	for _, s := range states {
		if s != nil {
			bags = append(bags, s.Inputs, s.Outputs)
		}
	}
	return bags
}
