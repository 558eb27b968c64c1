package statestore

import (
	"bytes"
	"context"

	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/sig"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

// encrypt returns what encrypts the secrets of a resource; nil if they are written in plaintext. A secret that the
// resource has in the base already keeps its ciphertext: of two checkpoints, only what changed differs.
func (d *draft) encrypt(ctx context.Context, u urn.URN) bags.Encrypt {
	if d.showSecrets {
		return nil
	}
	var known map[string]string
	return func(plain string) (string, error) {
		if known == nil {
			known = d.ciphertexts(ctx, u)
		}
		if ciphertext, ok := known[plain]; ok {
			return ciphertext, nil
		}
		return d.secrets.EncryptValue(ctx, plain)
	}
}

// ciphertexts returns the ciphertexts of a resource in the base, by their plaintext; none if they are of another
// secrets provider. What cannot be decrypted is left out: it is encrypted anew.
func (d *draft) ciphertexts(ctx context.Context, u urn.URN) map[string]string {
	known := map[string]string{}
	if !d.secrets.sameAs(d.base.file.Deployment.SecretsProviders) {
		return known
	}
	note := func(ciphertext string) (string, error) {
		plain, err := d.base.dec.DecryptValue(ctx, ciphertext)
		if err == nil {
			known[plain] = ciphertext
		}
		return plain, err
	}
	for _, i := range d.copiesOf(u) {
		for _, part := range engine.Parts {
			if raw := d.base.resources[i].raw(part); bytes.Contains(raw, []byte(sig.Secret)) {
				_, _ = bags.FromStored(raw, note)
			}
		}
	}
	return known
}

// copiesOf returns the indexes of a resource's copies in the base.
func (d *draft) copiesOf(u urn.URN) []int {
	if d.index == nil {
		d.index = make(map[urn.URN][]int, len(d.base.resources))
		for i := range d.base.resources {
			d.index[d.base.resources[i].URN] = append(d.index[d.base.resources[i].URN], i)
		}
	}
	return d.index[u]
}
