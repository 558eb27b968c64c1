package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
)

// redactor replaces the secrets in a text of a provider, and the paths of the worker, before it leaves an activity:
// users read the text, the store keeps it, and Temporal shows it as the failure of an attempt.
type redactor func(text string) string

// redactor returns a redactor of the secrets in the configuration and in the bags of a call. The bags are decoded only
// when there is a text to redact.
func (s *session) redactor(ctx context.Context, bags ...engine.Bag) redactor {
	replacer := sync.OnceValue(func() *redaction.Redactor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		secrets := s.secretTexts()
		for _, bag := range bags {
			values, err := s.values.Decode(ctx, bag)
			if err != nil {
				return nil
			}
			secrets = append(secrets, redaction.SecretTexts(resource.NewProperty(values))...)
		}
		return redaction.New(secrets)
	})
	return func(text string) string {
		if text == "" {
			return "" // the usual case, without decoding
		}
		if text = redaction.Controls(text); text == "" {
			return "the message of the provider has no readable text" // without a text it would not count as an error
		}
		if r := replacer(); r != nil {
			return cut(ctx, s.inProject(r.Replace(text)), maxText)
		}
		return "the message of the provider is not shown: it may contain secrets, and these could not be read from the store"
	}
}

// bagsOf returns the bags that a call about a resource uses.
func bagsOf(p *engine.Provider, states ...*engine.State) []engine.Bag {
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

func (c redactor) failures(failures []engine.CheckFailure) {
	for i := range failures {
		failures[i].Reason = c(failures[i].Reason)
	}
}

func (c redactor) found(f *engine.Found) {
	if f == nil {
		return
	}
	if f.Owner = c(f.Owner); !c.shows(f.ID) {
		f.Shown = c(f.ID)
	}
}

func (c redactor) step(result *engine.StepFinished) {
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
}

func (c redactor) views(steps []engine.ViewStep) {
	for i := range steps {
		steps[i].Error = c(steps[i].Error)
	}
}

// failure translates an error for Temporal, as the function failure does. If its text has a secret, the text is
// redacted and the cause left out. What workflows decide by stays as it is: the type, the details, and whether and when
// Temporal retries.
func (c redactor) failure(err error) error {
	err = failure(err)
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
func (c redactor) shows(text string) bool { return c(text) == text }

func causeText(err error) string {
	if cause := errors.Unwrap(err); cause != nil {
		return cause.Error()
	}
	return ""
}
