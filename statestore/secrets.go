package statestore

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/stacksecrets"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// The secrets providers.
const (
	secretsService    = deployments.SecretsService
	secretsPassphrase = deployments.SecretsPassphrase
	secretsCloud      = deployments.SecretsCloud

	secretsLeftOut = "left out" // see WithoutSecrets
)

// WithoutSecrets reads a checkpoint for whoever has no key of the stack's secrets: each of them is a secret null,
// unless it is under the service's own key.
var WithoutSecrets = deployments.SecretsProvider{Type: secretsLeftOut}

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
	return s.section.Type == secretsService || dataKey(section) == dataKey(&s.section)
}

// passphraseState is the state of Pulumi's passphrase provider.
type passphraseState struct {
	Salt string `json:"salt"`
}

// cloudState is the state of Pulumi's provider for keys of key management services.
type cloudState struct {
	URL          string `json:"url"`
	EncryptedKey string `json:"encryptedkey"` // base64
}

// serviceState is the state of the service's own provider: the identity of the stack whose key is used.
type serviceState struct {
	Stack string `json:"stack,omitempty"`
}

// provider returns the secrets provider that a request asks for.
func (r *stackKeys) provider(p deployments.SecretsProvider) (secrets, error) {
	switch p.Type {
	case "", secretsService:
		state, err := json.Marshal(serviceState{r.ID})
		return secrets{stacksecrets.New(r.secrets), apitype.SecretsProvidersV1{Type: secretsService,
			State: state}}, err
	case secretsPassphrase:
		return clientSecrets(p, passphraseState{p.Salt})
	case secretsCloud:
		return clientSecrets(p, cloudState{p.URL, p.EncryptedKey})
	}
	return secrets{}, deployments.Errorf(deployments.CodeInvalid,
		"the secrets provider %q is not known: use %q, %q or %q", p.Type, secretsService, secretsPassphrase, secretsCloud)
}

// clientSecrets returns a provider whose data key the client has unwrapped, with its state.
func clientSecrets(p deployments.SecretsProvider, state any) (secrets, error) {
	if len(p.Key) != config.SymmetricCrypterKeyBytes {
		return secrets{}, noKey(p.Type)
	}
	text, err := json.Marshal(state)
	return secrets{config.NewSymmetricCrypter(p.Key), apitype.SecretsProvidersV1{Type: p.Type, State: text}}, err
}

// keyError is about secrets that are under a key which the request does not have. Nothing is damaged.
type keyError struct{ error }

func (e keyError) Unwrap() error { return e.error }

// NeedsKey reports whether an error says that secrets are under a key which the request does not have.
func NeedsKey(err error) bool {
	var e keyError
	return errors.As(err, &e)
}

func needsKey(format string, args ...any) error {
	return keyError{deployments.Errorf(deployments.CodeInvalid, format, args...)}
}

// noKey says that a request lacks the data key of a secrets provider.
func noKey(provider string) error {
	if provider == secretsCloud {
		return needsKey("the stack's secrets are encrypted with a key of a key management service, and the request does " +
			"not have it: run the command in the project's directory, where secretsprovider and encryptedkey of the " +
			"stack's configuration file name it")
	}
	return needsKey("the stack's secrets are encrypted with a passphrase, and the request has no key: set " +
		"PULUMI_CONFIG_PASSPHRASE")
}

// reader returns a decrypter for a stored deployment, whose provider may differ from the request's. It fails only when
// there is a secret to decrypt.
func (r *stackKeys) reader(section *apitype.SecretsProvidersV1, p deployments.SecretsProvider) config.Decrypter {
	if p.Type == secretsLeftOut {
		own := r.reader(section, deployments.SecretsProvider{})
		if _, fails := own.(failingDecrypter); fails {
			return leavingOut{}
		}
		return own
	}
	switch {
	case section == nil:
		return failingDecrypter{errors.New("the state has ciphertexts, and does not say of which secrets provider")}
	case section.Type == secretsService:
		var state serviceState
		_ = json.Unmarshal(section.State, &state) // other services have other states
		if state.Stack != "" && state.Stack != r.ID {
			return failingDecrypter{needsKey("the secrets belong to another stack: export it with --show-secrets")}
		}
		return stacksecrets.New(r.secrets)
	case section.Type == secretsPassphrase, section.Type == secretsCloud:
		return clientReader(section, p)
	}
	return failingDecrypter{needsKey("the state's secrets are encrypted by the provider %s, which is not supported: "+
		"export it with --show-secrets", section.Type)}
}

// clientReader returns a decrypter for a provider whose data key the client must have unwrapped.
func clientReader(section *apitype.SecretsProvidersV1, p deployments.SecretsProvider) config.Decrypter {
	named := p.Salt
	if section.Type == secretsCloud {
		named = p.EncryptedKey
	}
	switch {
	case p.Type != section.Type || len(p.Key) != config.SymmetricCrypterKeyBytes:
		return failingDecrypter{noKey(section.Type)}
	case dataKey(section) != named && section.Type == secretsCloud:
		return failingDecrypter{needsKey("the state's secrets were encrypted with another key than encryptedkey in " +
			"the stack's configuration names")}
	case dataKey(section) != named:
		return failingDecrypter{needsKey("the state's secrets were encrypted with another passphrase or salt than the " +
			"stack's configuration names")}
	}
	return config.NewSymmetricCrypter(p.Key)
}

// dataKey returns what identifies the data key of a provider that is not the service's: the salt, or the encrypted key.
func dataKey(section *apitype.SecretsProvidersV1) string {
	if section.Type == secretsCloud {
		var state cloudState
		_ = json.Unmarshal(section.State, &state) // a state without a key equals no other
		return state.EncryptedKey
	}
	var state passphraseState
	_ = json.Unmarshal(section.State, &state)
	return state.Salt
}

// failingDecrypter decrypts nothing.
type failingDecrypter struct{ err error }

func (r failingDecrypter) DecryptValue(context.Context, string) (string, error) { return "", r.err }
func (r failingDecrypter) BatchDecrypt(context.Context, []string) ([]string, error) {
	return nil, r.err
}

// leavingOut takes each secret for null.
type leavingOut struct{}

func (leavingOut) DecryptValue(context.Context, string) (string, error) { return "null", nil }
func (leavingOut) BatchDecrypt(_ context.Context, sealed []string) ([]string, error) {
	plain := make([]string, len(sealed))
	for i := range plain {
		plain[i] = "null"
	}
	return plain, nil
}

// clientState is the state of the service's provider as the stock CLI writes it: the stack by its name.
type clientState struct {
	URL     string `json:"url,omitempty"`
	Owner   string `json:"owner"`
	Project string `json:"project"`
	Stack   string `json:"stack"`
}

// ownSection returns a deployment's secrets provider as this store writes it: what a client says by the stack's name,
// it says by the stack's identity, which a rename keeps. A provider of another stack stays, and decrypts nothing.
func ownSection(
	section *apitype.SecretsProvidersV1, name deployments.StackName, id string,
) (*apitype.SecretsProvidersV1, error) {
	if section == nil || section.Type != secretsService {
		return section, nil
	}
	var said clientState
	if err := json.Unmarshal(section.State, &said); err != nil || said.Owner == "" {
		return section, nil //nolint:nilerr // it is no client's
	}
	if (deployments.StackName{Organization: said.Owner, Project: said.Project, Stack: said.Stack}) != name {
		return section, nil
	}
	state, err := json.Marshal(serviceState{id})
	return &apitype.SecretsProvidersV1{Type: secretsService, State: state}, err
}
