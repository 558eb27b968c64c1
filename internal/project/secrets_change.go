package project

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
)

// Change encrypts the secrets of the stack's configuration with another provider: kind is SecretsService or
// SecretsPassphrase, which gets a new salt. It returns both providers. Save stores the result.
func (s *Secrets) Change(ctx context.Context, kind string) (from, to deployments.SecretsProvider, err error) {
	if from, err = s.Provider(); err != nil {
		return from, to, err
	}
	before, err := s.Crypter(ctx)
	if err != nil {
		return from, to, err
	}
	if kind == SecretsPassphrase {
		err = s.UsePassphrase()
	} else {
		s.key, s.Stack.file.SecretsProvider, s.Stack.file.EncryptionSalt, s.Stack.file.EncryptedKey = nil, "", "", ""
	}
	if err != nil {
		return from, to, err
	}
	if to, err = s.Provider(); err != nil {
		return from, to, err
	}
	after, err := s.Crypter(ctx)
	if err != nil || !s.Stack.HasSecrets() {
		return from, to, err
	}
	s.Stack.file.Config, err = s.Stack.file.Config.Copy(before, after)
	return from, to, err
}
