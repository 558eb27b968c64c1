package project

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// keyTimeout bounds a call to a key management service: the user waits for it.
const keyTimeout = 30 * time.Second

// Key is a key of a key management service.
type Key interface {
	Wrap(ctx context.Context, plain []byte) ([]byte, error)
	Unwrap(ctx context.Context, wrapped []byte) ([]byte, error)
}

// Keys finds a key by its URL, with the user's own credentials. It is called on the user's machine only: the service
// gets the data key, and never calls the key management service.
type Keys func(ctx context.Context, url string) (Key, error)

// keySchemes are those of the key management services that a stack may use.
var keySchemes = []string{"awskms", "azurekeyvault", "gcpkms", "hashivault"}

// ParseProvider reads the name of a secrets provider as users write it: default, passphrase, or the URL of a key.
func ParseProvider(text string) (string, error) {
	if text != "default" && text != SecretsPassphrase && !isKey(text) {
		return "", deployments.Errorf(deployments.CodeInvalid, "%q is not a secrets provider: write default (the service's "+
			"own), passphrase, or the URL of a key, such as awskms://alias/NAME?region=REGION, "+
			"azurekeyvault://VAULT.vault.azure.net/keys/NAME, "+
			"gcpkms://projects/P/locations/L/keyRings/R/cryptoKeys/NAME or hashivault://NAME", text)
	}
	return text, nil
}

// isKey reports whether a text is the URL of a key.
func isKey(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && slices.Contains(keySchemes, scheme)
}

// useKey makes the stack's secrets be encrypted with a new data key, which a key management service wraps.
func (s *Secrets) useKey(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	key, err := s.open(ctx, url)
	if err != nil {
		return err
	}
	plain := make([]byte, config.SymmetricCrypterKeyBytes)
	if _, err := rand.Read(plain); err != nil {
		return err
	}
	wrapped, err := key.Wrap(ctx, plain)
	if err != nil {
		return deployments.Errorf(deployments.CodeInvalid, "the key %s cannot encrypt the stack's data key; check your "+
			"credentials and rights: %w", url, err)
	}
	s.key = plain
	s.Stack.beyond = true
	s.Stack.file.SecretsProvider, s.Stack.file.EncryptionSalt = url, ""
	s.Stack.file.EncryptedKey = base64.StdEncoding.EncodeToString(wrapped)
	return nil
}

// unwrapKey has a key management service decrypt the stack's data key.
func (s *Secrets) unwrapKey(ctx context.Context, p deployments.SecretsProvider) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, keyTimeout)
	defer cancel()
	wrapped, err := base64.StdEncoding.DecodeString(p.EncryptedKey)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "encryptedkey in %s is damaged; restore the file: %w",
			s.Stack.Path, err)
	}
	key, err := s.open(ctx, p.URL)
	if err != nil {
		return nil, err
	}
	plain, err := key.Unwrap(ctx, wrapped)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the key %s cannot decrypt the stack's data key; check "+
			"your credentials and rights, and secretsprovider and encryptedkey in %s: %w", p.URL, s.Stack.Path, err)
	}
	if len(plain) != config.SymmetricCrypterKeyBytes {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the data key in %s has %d bytes, not %d; restore the file",
			s.Stack.Path, len(plain), config.SymmetricCrypterKeyBytes)
	}
	return plain, nil
}

func (s *Secrets) open(ctx context.Context, url string) (Key, error) {
	if s.Keys == nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "keys of key management services cannot be used here")
	}
	key, err := s.Keys(ctx, url)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "cannot use the key that encrypts the stack's secrets: "+
			"%w", err)
	}
	return key, nil
}
