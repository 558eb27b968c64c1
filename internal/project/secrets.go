package project

import (
	"context"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
)

// The secrets providers, as deployments.SecretsProvider.Type has them.
const (
	SecretsService    = deployments.SecretsService
	SecretsPassphrase = deployments.SecretsPassphrase
	SecretsCloud      = deployments.SecretsCloud
)

// Sealer is the service's own secrets provider.
type Sealer interface {
	Encrypt(ctx context.Context, s deployments.StackName, plain []string) ([]string, error)
	Decrypt(ctx context.Context, s deployments.StackName, sealed []string) ([]string, error)
}

// Passphrase finds the passphrase: with confirm it is a new one, and a person is asked twice.
type Passphrase func(confirm bool) (string, error)

// Secrets gives access to a stack's secrets. The passphrase is asked for only when it is needed, and once; so is the
// key management service.
type Secrets struct {
	Stack      *Stack
	Name       deployments.StackName
	Service    Sealer
	Passphrase Passphrase
	Keys       Keys

	key []byte
}

// kind reads which provider the stack's file names.
func (s *Stack) kind() (string, error) {
	switch provider := s.file.SecretsProvider; {
	case provider == SecretsPassphrase, provider == "" && s.file.EncryptionSalt != "":
		return SecretsPassphrase, nil
	case provider == "", provider == "default", provider == "service":
		return SecretsService, nil
	case isKey(provider):
		return SecretsCloud, nil
	default:
		return "", deployments.Errorf(deployments.CodeInvalid,
			"%s names the secrets provider %q; deployctl knows default (the service's own), passphrase, and keys such as "+
				"awskms://alias/NAME", s.Path, provider)
	}
}

// UsePassphrase makes a new stack's secrets be encrypted with a passphrase.
func (s *Secrets) UsePassphrase() error {
	phrase, err := s.Passphrase(true)
	if err != nil {
		return err
	}
	salt := make([]byte, 8)
	if _, err := rand.Read(salt); err != nil {
		return err
	}
	if s.key, err = deriveKey(phrase, salt); err != nil {
		return err
	}
	check, err := config.NewSymmetricCrypter(s.key).EncryptValue(context.Background(), checkText)
	if err != nil {
		return err
	}
	s.Stack.beyond = true
	s.Stack.file.SecretsProvider, s.Stack.file.EncryptedKey = SecretsPassphrase, ""
	s.Stack.file.EncryptionSalt = "v1:" + base64.StdEncoding.EncodeToString(salt) + ":" + check
	return nil
}

// Provider says how the stack's secrets are encrypted; of a passphrase or a cloud's key, with the data key. A provider
// that the file names without a data key gets a new one, which is saved.
func (s *Secrets) Provider(ctx context.Context) (deployments.SecretsProvider, error) {
	p, err := s.Describe()
	if err != nil || !p.NeedsClient() {
		return p, err
	}
	if p.Salt == "" && p.EncryptedKey == "" {
		if err := s.Use(ctx, s.Stack.file.SecretsProvider); err != nil {
			return deployments.SecretsProvider{}, err
		}
		if err := s.Stack.Save(); err != nil {
			return deployments.SecretsProvider{}, err
		}
		if p, err = s.Describe(); err != nil {
			return deployments.SecretsProvider{}, err
		}
	}
	if s.key == nil {
		if s.key, err = s.unwrap(ctx, p); err != nil {
			return deployments.SecretsProvider{}, err
		}
	}
	p.Key = s.key
	return p, nil
}

// Use makes the stack's secrets be encrypted by a provider, with a new data key if it is not the service's: "default",
// "passphrase", or the URL of a key. What is encrypted already stays as it is; see Change.
func (s *Secrets) Use(ctx context.Context, provider string) error {
	switch {
	case provider == SecretsPassphrase:
		return s.UsePassphrase()
	case isKey(provider):
		return s.useKey(ctx, provider)
	}
	s.Stack.beyond = true
	s.key, s.Stack.file.SecretsProvider, s.Stack.file.EncryptionSalt, s.Stack.file.EncryptedKey = nil, "", "", ""
	return nil
}

// unwrap finds the data key of a provider that needs the client.
func (s *Secrets) unwrap(ctx context.Context, p deployments.SecretsProvider) ([]byte, error) {
	if p.Type == SecretsCloud {
		return s.unwrapKey(ctx, p)
	}
	phrase, err := s.Passphrase(false)
	if err != nil {
		return nil, err
	}
	return passphraseKey(phrase, p.Salt)
}

// Crypter encrypts and decrypts the stack's configuration values.
func (s *Secrets) Crypter(ctx context.Context) (config.Crypter, error) {
	provider, err := s.Provider(ctx)
	if err != nil {
		return nil, err
	}
	if provider.NeedsClient() {
		return config.NewSymmetricCrypter(provider.Key), nil
	}
	return sealed{s.Service, s.Name}, nil
}

// checkText is what the salt's check part decrypts to with the right passphrase. Source: the stack file format.
const checkText = "pulumi"

const iterations = 1_000_000

func deriveKey(phrase string, salt []byte) ([]byte, error) {
	return pbkdf2.Key(sha256.New, phrase, salt, iterations, config.SymmetricCrypterKeyBytes)
}

// passphraseKey derives the key from a passphrase and a stack's salt, "v1:SALT:CHECK", and checks that it is the right
// one.
func passphraseKey(phrase, encryptionSalt string) ([]byte, error) {
	parts := strings.SplitN(encryptionSalt, ":", 3)
	if len(parts) != 3 || parts[0] != "v1" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the stack's encryptionsalt is damaged; restore its "+
			"configuration file")
	}
	salt, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the stack's encryptionsalt is damaged; restore its "+
			"configuration file")
	}
	key, err := deriveKey(phrase, salt)
	if err != nil {
		return nil, err
	}
	if text, err := config.NewSymmetricCrypter(key).DecryptValue(context.Background(), parts[2]); err != nil ||
		text != checkText {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"the passphrase is not this stack's; set PULUMI_CONFIG_PASSPHRASE or PULUMI_CONFIG_PASSPHRASE_FILE to "+
				"the right one")
	}
	return key, nil
}

// sealed is the service's own provider as a config.Crypter.
type sealed struct {
	service Sealer
	stack   deployments.StackName
}

func (s sealed) EncryptValue(ctx context.Context, plain string) (string, error) {
	return single(s.BatchEncrypt(ctx, []string{plain}))
}

func (s sealed) DecryptValue(ctx context.Context, text string) (string, error) {
	return single(s.BatchDecrypt(ctx, []string{text}))
}

func (s sealed) BatchEncrypt(ctx context.Context, plain []string) ([]string, error) {
	return s.service.Encrypt(ctx, s.stack, plain)
}

func (s sealed) BatchDecrypt(ctx context.Context, texts []string) ([]string, error) {
	return s.service.Decrypt(ctx, s.stack, texts)
}

// single takes the one answer to one question.
func single(texts []string, err error) (string, error) {
	if err != nil {
		return "", err
	}
	if len(texts) != 1 {
		return "", deployments.Errorf(deployments.CodeInternal, "the service answered %d texts to one", len(texts))
	}
	return texts[0], nil
}

// Describe says how the stack's secrets are encrypted, without unwrapping any key.
func (s *Secrets) Describe() (deployments.SecretsProvider, error) {
	file := s.Stack.file
	kind, err := s.Stack.kind()
	switch kind {
	case SecretsPassphrase:
		return deployments.SecretsProvider{Type: kind, Salt: file.EncryptionSalt}, err
	case SecretsCloud:
		return deployments.SecretsProvider{Type: kind, URL: file.SecretsProvider, EncryptedKey: file.EncryptedKey}, err
	}
	return deployments.SecretsProvider{Type: kind}, err
}
