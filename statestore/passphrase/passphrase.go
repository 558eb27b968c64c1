// Package passphrase derives a stack's data key from a passphrase as the field's passphrase secrets provider does, so
// that stacks can move between both with their secrets. The client derives the key; the service never sees the
// passphrase.
package passphrase

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

const (
	iterations = 1_000_000
	saltSize   = 8
	// check is what a salt's last part decrypts to with the right passphrase.
	check = "pulumi"
)

// New makes a salt for a passphrase, to be kept as the stack's encryption salt: "v1:SALT:v1:NONCE:CIPHERTEXT".
func New(passphrase string) (salt string, key []byte, err error) {
	raw := make([]byte, saltSize)
	_, _ = rand.Read(raw) // never fails
	if key, err = derive(passphrase, raw); err != nil {
		return "", nil, err
	}
	sealed, err := config.NewSymmetricCrypter(key).EncryptValue(context.Background(), check)
	if err != nil {
		return "", nil, deployments.Errorf(deployments.CodeInternal, "make a salt: %w", err)
	}
	return "v1:" + base64.StdEncoding.EncodeToString(raw) + ":" + sealed, key, nil
}

// Key gives the data key of a stack. CodeInvalid: the passphrase is another one, or the salt is damaged. It takes about
// half a second, on purpose.
func Key(passphrase, salt string) ([]byte, error) {
	parts := strings.SplitN(salt, ":", 3)
	if len(parts) != 3 || parts[0] != "v1" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the stack's encryption salt is damaged: it does not "+
			"begin with v1:SALT:")
	}
	raw, err := base64.StdEncoding.DecodeString(parts[1])
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the stack's encryption salt is damaged: %w", err)
	}
	key, err := derive(passphrase, raw)
	if err != nil {
		return nil, err
	}
	if got, err := config.NewSymmetricCrypter(key).DecryptValue(context.Background(), parts[2]); err != nil ||
		got != check {
		return nil, deployments.Errorf(deployments.CodeInvalid,
			"the passphrase is not the one that the stack's secrets were encrypted with: check "+
				"PULUMI_CONFIG_PASSPHRASE")
	}
	return key, nil
}

func derive(passphrase string, salt []byte) ([]byte, error) {
	key, err := pbkdf2.Key(sha256.New, passphrase, salt, iterations, config.SymmetricCrypterKeyBytes)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "derive a key: %w", err)
	}
	return key, nil
}
