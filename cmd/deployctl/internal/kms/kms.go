// Package kms wraps the service's keys, and data keys of stacks, with a key management service: AWS KMS, Google Cloud
// KMS, Azure Key Vault, Vault's transit engine, or a local key for tests. Its drivers are large, so only cmd imports
// it.
package kms

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"

	"gocloud.dev/secrets"
	_ "gocloud.dev/secrets/awskms"        // awskms://
	_ "gocloud.dev/secrets/azurekeyvault" // azurekeyvault://
	_ "gocloud.dev/secrets/gcpkms"        // gcpkms://
	_ "gocloud.dev/secrets/hashivault"    // hashivault://
	_ "gocloud.dev/secrets/localsecrets"  // base64key://

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/seal"
)

// keeper is a key of a key management service.
type keeper struct {
	id     string
	secret *secrets.Keeper
}

var _ seal.Keeper = (*keeper)(nil)

// Open returns the keeper that a URL names, such as awskms:///ARN?region=R, gcpkms://projects/…,
// azurekeyvault://VAULT/keys/KEY or hashivault://KEY. The service's credentials are found where its SDK looks for them.
// CodeInvalid: there can be no such keeper.
func Open(ctx context.Context, text string) (seal.Keeper, error) {
	u, err := url.Parse(text)
	if err != nil || u.Scheme == "" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "a key is named by a URL such as "+
			"awskms:///ARN?region=REGION")
	}
	k, err := secrets.OpenKeeper(ctx, text)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "there is no such %s key: %w", u.Scheme, err)
	}
	sum := sha256.Sum256([]byte(text)) // a local key's URL is the key
	return &keeper{u.Scheme + " " + hex.EncodeToString(sum[:4]), k}, nil
}

// ID implements seal.Keeper.
func (k *keeper) ID() string { return k.id }

// Wrap implements seal.Keeper.
func (k *keeper) Wrap(ctx context.Context, plain []byte) ([]byte, error) {
	return k.secret.Encrypt(ctx, plain)
}

// Unwrap implements seal.Keeper.
func (k *keeper) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	return k.secret.Decrypt(ctx, wrapped)
}
