package activities

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
)

// redactor replaces the secrets in a text of a provider before it leaves an activity: users read the text, the store
// keeps it, and Temporal shows it as the failure of an attempt.
type redactor func(text string) string

// redactor returns a redactor of the secrets in the configuration and in the bags of a call. The bags are decoded only
// when there is a text to redact.
func (s *session) redactor(ctx context.Context, bags ...engine.Bag) redactor {
	replacer := sync.OnceValue(func() *redaction.Redactor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		secrets := s.config.SecretTexts()
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
		if r := replacer(); r != nil {
			return cut(ctx, r.Replace(redaction.Controls(text)), maxText)
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

func (c redactor) step(result *engine.StepFinished) {
	result.Error = c(result.Error)
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
// redacted and the cause left out.
func (c redactor) failure(err error) error {
	err = failure(err)
	var application *temporal.ApplicationError
	if !errors.As(err, &application) || c(application.Error()) == application.Error() {
		return err
	}
	return temporal.NewApplicationErrorWithOptions(c(application.Message()), application.Type(),
		temporal.ApplicationErrorOptions{
			NonRetryable: application.NonRetryable(), NextRetryDelay: application.NextRetryDelay(),
		})
}
