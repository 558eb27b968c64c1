package statestore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/internal/values/rawjson"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/config"
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
		for _, part := range snapshot.Parts {
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

// encrypting encrypts the secrets of texts.
type encrypting struct{ config.Encrypter }

// mostDepth bounds how often a part of a text is read. What lies deeper is encrypted as a whole.
const mostDepth = 100

// append appends a valid text with ciphertexts in the place of its secrets, and of output values that are secret.
func (s encrypting) append(ctx context.Context, out, text []byte, depth int) (_ []byte, err error) {
	switch {
	case depth == 0:
		return s.ciphertext(ctx, out, text)
	case rawjson.IsObject(text):
		if isSecret(text) {
			return s.ciphertext(ctx, out, rawjson.Member(text, "value"))
		}
		out = append(out, '{')
		for name, value := range rawjson.Members(text) {
			quoted, err := json.Marshal(name)
			if err != nil {
				return nil, err
			}
			out = append(append(separate(out, '{'), quoted...), ':')
			if out, err = s.append(ctx, out, value, depth-1); err != nil {
				return nil, err
			}
		}
		return append(out, '}'), nil
	case rawjson.IsArray(text):
		out = append(out, '[')
		for value := range rawjson.Elements(text) {
			if out, err = s.append(ctx, separate(out, '['), value, depth-1); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
	return append(out, bytes.TrimSpace(text)...), nil
}

// ciphertext appends the stored form of a secret.
func (s encrypting) ciphertext(ctx context.Context, out, plain []byte) ([]byte, error) {
	ciphertext, err := s.EncryptValue(ctx, string(plain))
	return fmt.Appendf(out, `{"%s":"%s","ciphertext":%q}`, resource.SigKey, resource.SecretSig, ciphertext), err
}

// separate adds a comma unless an object or array has just begun.
func separate(out []byte, begin byte) []byte {
	if out[len(out)-1] == begin {
		return out
	}
	return append(out, ',')
}

// isSecret reports whether an object is the plain form of a secret.
func isSecret(object []byte) (secret bool) {
	for name, value := range rawjson.Members(object) {
		var text string
		switch name {
		case resource.SigKey:
			secret = secret || json.Unmarshal(value, &text) == nil && text == resource.SecretSig
		case "secret": // of an output value
			secret = secret || string(value) == "true" && rawjson.Member(object, resource.SigKey) != nil
		}
	}
	return secret
}
