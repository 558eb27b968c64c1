package statestore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// The secrets providers.
const (
	secretsService    = deployments.SecretsService
	secretsPassphrase = deployments.SecretsPassphrase
)

// secrets encrypts and decrypts the secrets in one stack's checkpoints.
type secrets struct {
	config.Crypter
	section apitype.SecretsProvidersV1
}

// sameAs reports whether ciphertexts of both can be in one checkpoint.
func (s secrets) sameAs(section *apitype.SecretsProvidersV1) bool {
	if section == nil || section.Type != s.section.Type {
		return false
	}
	return s.section.Type == secretsService || salt(section) == salt(&s.section)
}

// passphraseState is the state of Pulumi's passphrase provider.
type passphraseState struct {
	Salt string `json:"salt"`
}

// serviceState is the state of the service's own provider: the identity of the stack whose key is used.
type serviceState struct {
	Stack string `json:"stack,omitempty"`
}

// provider returns the secrets provider that a request asks for.
func (r *stackKeys) provider(p deployments.SecretsProvider) (secrets, error) {
	switch p.Type {
	case "", secretsService:
		state, err := json.Marshal(serviceState{r.id})
		return secrets{r.serviceCrypter(), apitype.SecretsProvidersV1{Type: secretsService,
			State: state}}, err
	case secretsPassphrase:
		if len(p.Key) != config.SymmetricCrypterKeyBytes {
			return secrets{}, errNoPassphrase
		}
		state, err := json.Marshal(passphraseState{p.Salt})
		return secrets{config.NewSymmetricCrypter(p.Key), apitype.SecretsProvidersV1{Type: secretsPassphrase,
			State: state}}, err
	}
	return secrets{}, deployments.Errorf(deployments.CodeInvalid,
		"the secrets provider %q is not known: use %q or %q", p.Type, secretsService, secretsPassphrase)
}

var errNoPassphrase = deployments.Errorf(deployments.CodeInvalid,
	"the stack's secrets are encrypted with a passphrase, and the request has no key: set PULUMI_CONFIG_PASSPHRASE")

// reader returns a decrypter for a stored deployment, whose provider may differ from the request's. It fails only when
// there is a secret to decrypt.
func (r *stackKeys) reader(section *apitype.SecretsProvidersV1, p deployments.SecretsProvider) config.Decrypter {
	switch {
	case section == nil:
		return failingDecrypter{errors.New("the state has ciphertexts, and does not say of which secrets provider")}
	case section.Type == secretsService:
		var state serviceState
		_ = json.Unmarshal(section.State, &state) // other services have other states
		if state.Stack != "" && state.Stack != r.id {
			return failingDecrypter{errors.New("the secrets belong to another stack: export it with --show-secrets")}
		}
		return r.serviceCrypter()
	case section.Type == secretsPassphrase && len(p.Key) != config.SymmetricCrypterKeyBytes:
		return failingDecrypter{errNoPassphrase}
	case section.Type == secretsPassphrase && salt(section) != p.Salt:
		return failingDecrypter{errors.New("the state's secrets were encrypted with another passphrase or salt than the " +
			"stack's configuration names")}
	case section.Type == secretsPassphrase:
		return config.NewSymmetricCrypter(p.Key)
	}
	return failingDecrypter{errors.New("the state's secrets are encrypted by the provider " + section.Type +
		", which is not supported: export it with --show-secrets")}
}

func salt(section *apitype.SecretsProvidersV1) string {
	var state passphraseState
	_ = json.Unmarshal(section.State, &state) // a state without salt equals no other
	return state.Salt
}

// failingDecrypter decrypts nothing.
type failingDecrypter struct{ err error }

func (r failingDecrypter) DecryptValue(context.Context, string) (string, error) { return "", r.err }
func (r failingDecrypter) BatchDecrypt(context.Context, []string) ([]string, error) {
	return nil, r.err
}

// Encrypt encrypts configuration values with the service's own key for the stack.
func (s *Store) Encrypt(ctx context.Context, name deployments.StackName, plain []string) ([]string, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, err
	}
	return r.serviceCrypter().BatchEncrypt(ctx, plain)
}

// Decrypt returns the plaintext of texts that Encrypt encrypted for the same stack; CodeInvalid for other texts.
func (s *Store) Decrypt(ctx context.Context, name deployments.StackName, sealed []string) ([]string, error) {
	r, err := s.stackKeysOf(ctx, name)
	if err != nil {
		return nil, err
	}
	plain, err := r.serviceCrypter().BatchDecrypt(ctx, sealed)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"a secret value cannot be decrypted: it was not encrypted for the stack %s of this service; set it again",
			name)
	}
	return plain, nil
}
