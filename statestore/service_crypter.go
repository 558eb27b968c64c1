package statestore

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
)

// serviceCrypter is the service's own secrets provider of a stack. Its ciphertexts are base64, as the stock CLI demands
// of every service, so that both tools read each other's states and configuration files. It also reads the ciphertexts
// of earlier releases, which have no base64 around them.
type serviceCrypter struct{ config.Crypter }

func (r *stackKeys) serviceCrypter() serviceCrypter {
	return serviceCrypter{config.NewSymmetricCrypter(r.secrets)}
}

// bare is the start of a ciphertext without base64, which has a ':' that base64 does not.
const bare = "v1:"

// EncryptValue encrypts one value.
func (c serviceCrypter) EncryptValue(ctx context.Context, plain string) (string, error) {
	sealed, err := c.Crypter.EncryptValue(ctx, plain)
	return base64.StdEncoding.EncodeToString([]byte(sealed)), err
}

// BatchEncrypt encrypts values.
func (c serviceCrypter) BatchEncrypt(ctx context.Context, plain []string) ([]string, error) {
	return config.DefaultBatchEncrypt(ctx, c, plain)
}

// DecryptValue decrypts one value.
func (c serviceCrypter) DecryptValue(ctx context.Context, sealed string) (string, error) {
	if !strings.HasPrefix(sealed, bare) {
		if decoded, err := base64.StdEncoding.DecodeString(sealed); err == nil {
			sealed = string(decoded)
		}
	}
	return c.Crypter.DecryptValue(ctx, sealed)
}

// BatchDecrypt decrypts values.
func (c serviceCrypter) BatchDecrypt(ctx context.Context, sealed []string) ([]string, error) {
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
