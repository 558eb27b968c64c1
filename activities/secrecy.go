package activities

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/temporal"
)

// keepSecrets gives what was read of the world, with those values secret that hold secrets in what the program or the
// state says, at the same place: providers find the values and cannot know that. What is as it was keeps its secrets
// where they were. Else objects are gone into, and of a list, whose order may be another, everything is secret.
func keepSecrets(read, known resource.PropertyMap) resource.PropertyMap {
	result := plain(read)
	for key, v := range result {
		if before, ok := known[key]; ok && before.ContainsSecrets() {
			result[key] = asSecretAs(v, before)
		}
	}
	return result
}

func asSecretAs(v, before resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return v
	case !v.ContainsSecrets() && v.DeepEquals(revealed(before)):
		return plainValue(before)
	case v.IsObject() && before.IsObject():
		return resource.NewProperty(keepSecrets(v.ObjectValue(), before.ObjectValue()))
	}
	return resource.MakeSecret(v)
}

// revealed is a value with its secrets in clear.
func revealed(v resource.PropertyValue) resource.PropertyValue {
	switch {
	case v.IsSecret():
		return revealed(v.SecretValue().Element)
	case v.IsOutput():
		return revealed(plainValue(v))
	case v.IsObject():
		object := make(resource.PropertyMap, len(v.ObjectValue()))
		for key, element := range v.ObjectValue() {
			object[key] = revealed(element)
		}
		return resource.NewProperty(object)
	case v.IsArray():
		list := make([]resource.PropertyValue, len(v.ArrayValue()))
		for i, element := range v.ArrayValue() {
			list[i] = revealed(element)
		}
		return resource.NewProperty(list)
	}
	return v
}

// A curtain replaces the secrets in a text of a provider, before it leaves an activity: people read it, it is stored,
// and Temporal shows why an attempt failed.
type curtain func(text string) string

// curtain hides the configuration's secrets and those in the bags, which are what a call was made with. The bags are
// opened when there is something to hide.
func (s *session) curtain(ctx context.Context, bags ...engine.Bag) curtain {
	replacer := sync.OnceValue(func() *redaction.Redactor {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		secrets := s.secretTexts()
		for _, bag := range bags {
			values, err := s.values.Decode(ctx, bag)
			if err != nil {
				return nil
			}
			secrets = secretsIn(resource.NewProperty(values), false, secrets)
		}
		return redaction.New(secrets)
	})
	return func(text string) string {
		if text == "" {
			return "" // as nearly always
		}
		if r := replacer(); r != nil {
			return cut(ctx, r.Replace(redaction.Controls(text)), maxText)
		}
		return "what the provider said may hold secrets, and is not shown, because the store does not tell them"
	}
}

// secretsIn appends the texts of the secrets in a value; within says that the value is in one itself.
func secretsIn(v resource.PropertyValue, within bool, into []string) []string {
	switch {
	case v.IsSecret():
		return secretsIn(v.SecretValue().Element, true, into)
	case v.IsOutput():
		return secretsIn(v.OutputValue().Element, within || v.OutputValue().Secret, into)
	case v.IsObject():
		for _, element := range v.ObjectValue() {
			into = secretsIn(element, within, into)
		}
	case v.IsArray():
		for _, element := range v.ArrayValue() {
			into = secretsIn(element, within, into)
		}
	case within && v.IsString():
		into = append(into, redaction.Leaves(v.StringValue())...)
	case within && v.IsNumber():
		into = append(into, strconv.FormatFloat(v.NumberValue(), 'f', -1, 64))
	}
	return into
}

// bagsOf are the bags that a call about a resource is made with.
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

func (c curtain) failures(failures []engine.CheckFailure) {
	for i := range failures {
		failures[i].Reason = c(failures[i].Reason)
	}
}

func (c curtain) step(result *engine.StepFinished) {
	result.Error = c(result.Error)
	c.failures(result.Failures)
	for i, reason := range result.InitErrors {
		result.InitErrors[i] = c(reason)
	}
}

// failure is the error for Temporal; see there. What caused it is left out where it holds a secret.
func (c curtain) failure(err error) error {
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
