package project

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
)

// Change encrypts the secrets of the stack's configuration with another provider, as Use names it. It returns both
// providers. Save stores the result.
func (s *Secrets) Change(ctx context.Context, provider string) (from, to deployments.SecretsProvider, err error) {
	if from, err = s.Provider(ctx); err != nil {
		return from, to, err
	}
	before, err := s.Crypter(ctx)
	if err != nil {
		return from, to, err
	}
	if err = s.Use(ctx, provider); err != nil {
		return from, to, err
	}
	if to, err = s.Provider(ctx); err != nil {
		return from, to, err
	}
	after, err := s.Crypter(ctx)
	if err != nil || !s.Stack.HasSecrets() {
		return from, to, err
	}
	s.Stack.beyond = true
	s.Stack.file.Config, err = s.Stack.file.Config.Copy(before, after)
	return from, to, err
}
