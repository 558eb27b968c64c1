package session

import (
	"context"
	"sync"
	"time"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/host/failure"
	"github.com/deployctl/deployctl/internal/values/redaction"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// redactor returns a redactor of the secrets in the configuration and in the bags of a call. The bags are decoded only
// when there is a text to redact.
func (s *Session) redactor(ctx context.Context, bags ...engine.Bag) failure.Redactor {
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
			return failure.Cut(ctx, s.inProject(r.Replace(text)), failure.MaxText)
		}
		return "the message of the provider is not shown: it may contain secrets, and these could not be read from the store"
	}
}

// secretTexts returns the texts that must not appear in output: the secrets of the configuration and of the profile,
// and their parts.
func (s *Session) secretTexts() []string {
	return append(s.config.SecretTexts(), s.profileTexts()...)
}

func (s *Session) profileTexts() (texts []string) {
	for _, value := range s.request.Profile.Secrets() {
		texts = append(texts, redaction.Leaves(value)...)
	}
	return append(texts, s.tokens.texts()...)
}

// secretsOfProfile returns what finds secrets of the profile in values; nil if there are none. A program marks the
// secrets that it takes from the configuration, but a variable of the environment cannot say that it is one.
func (s *Session) secretsOfProfile() func(text string) bool {
	p := s.request.Profile
	if len(p.Secrets()) == 0 && (p == nil || p.Clouds.Empty()) {
		return nil
	}
	s.hidden.Store(redaction.New(s.profileTexts()))
	return func(text string) bool { return s.hidden.Load().Replace(text) != text }
}
