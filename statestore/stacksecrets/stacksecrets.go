// Package stacksecrets encrypts secrets with the service's own key of a stack: those in its states, and configuration
// values. It stores nothing.
package stacksecrets

import (
	"bytes"
	"context"
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// Store encrypts and decrypts configuration values of stacks.
type Store struct {
	key func(context.Context, deployments.StackName) ([]byte, error)
}

// Of returns the store of stacks whose keys are returned by a function; CodeNotFound when there is no such stack.
func Of(key func(context.Context, deployments.StackName) ([]byte, error)) *Store { return &Store{key} }

// Encrypt encrypts configuration values with the service's own key for the stack.
func (s *Store) Encrypt(ctx context.Context, name deployments.StackName, plain []string) ([]string, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, err
	}
	return New(key).BatchEncrypt(ctx, plain)
}

// Decrypt returns the plaintext of texts that Encrypt encrypted for the same stack; CodeInvalid for other texts.
func (s *Store) Decrypt(ctx context.Context, name deployments.StackName, sealed []string) ([]string, error) {
	key, err := s.key(ctx, name)
	if err != nil {
		return nil, err
	}
	plain, err := New(key).BatchDecrypt(ctx, sealed)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"a secret value cannot be decrypted: it was not encrypted for the stack %s of this service; set it again",
			name)
	}
	return plain, nil
}

// Crypter is the service's own secrets provider of a stack. Its ciphertexts are base64, as the stock CLI demands
// of every service, so that both tools read each other's states and configuration files. It also reads the ciphertexts
// of earlier releases, which have no base64 around them.
type Crypter struct{ config.Crypter }

// New returns the provider of a stack by the key of its secrets, of 32 bytes.
func New(key []byte) Crypter { return Crypter{config.NewSymmetricCrypter(key)} }

// bare is the start of a ciphertext without base64, which has a ':' that base64 does not.
const bare = "v1:"

// EncryptValue encrypts one value.
func (c Crypter) EncryptValue(ctx context.Context, plain string) (string, error) {
	sealed, err := c.Crypter.EncryptValue(ctx, plain)
	return base64.StdEncoding.EncodeToString([]byte(sealed)), err
}

// BatchEncrypt encrypts values.
func (c Crypter) BatchEncrypt(ctx context.Context, plain []string) ([]string, error) {
	return config.DefaultBatchEncrypt(ctx, c, plain)
}

// DecryptValue decrypts one value.
func (c Crypter) DecryptValue(ctx context.Context, sealed string) (string, error) {
	if !strings.HasPrefix(sealed, bare) {
		if decoded, err := base64.StdEncoding.DecodeString(sealed); err == nil {
			sealed = string(decoded)
		}
	}
	return c.Crypter.DecryptValue(ctx, sealed)
}

// BatchDecrypt decrypts values.
func (c Crypter) BatchDecrypt(ctx context.Context, sealed []string) ([]string, error) {
	return config.DefaultBatchDecrypt(ctx, c, sealed)
}

// bareSecret matches a secret with a ciphertext of an earlier release, as this package writes it.
var bareSecret = regexp.MustCompile(`("` + sig.Key + `":"` + sig.Secret + `","ciphertext":")(v1:[A-Za-z0-9+/=:]+)"`)

// WithBase64 returns the JSON of a deployment in which every ciphertext of the service's provider is base64.
func WithBase64(deployment []byte) []byte {
	if !bytes.Contains(deployment, []byte(`"ciphertext":"`+bare)) {
		return deployment
	}
	return bareSecret.ReplaceAllFunc(deployment, func(secret []byte) []byte {
		parts := bareSecret.FindSubmatch(secret)
		return []byte(string(parts[1]) + base64.StdEncoding.EncodeToString(parts[2]) + `"`)
	})
}
