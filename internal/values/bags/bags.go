// Package bags turns sets of property values into the engine's bags and back, and into the form that checkpoints have.
//
// A set of values has three forms, all JSON with sorted keys and without spaces:
//
//   - plain: everything there is to know, secrets in clear: the field's wire form with unknowns, secrets, resource
//     references, output values, assets and byte strings kept. This is what a bag holds.
//   - stored: what a checkpoint holds (deployment format version 3): secrets are ciphertexts.
//   - compared: what a digest is taken of. It leaves out what the stored form loses and what says nothing about the
//     value: the dependencies of output values, a resource reference's name and type, and where an asset's content lies
//     once its hash is known. So a value has one digest before it was stored and after, and in whatever directory the
//     program's files were put.
//
// Inline bags are plain JSON: every Temporal payload is sealed as a whole (docs/adr/0001).
package bags

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
)

// InlineLimit is the size in bytes of the plain form up to which a bag travels inline.
const InlineLimit = 8 << 10

// BlobStore keeps what is too large to travel inline. Both may be called concurrently.
type BlobStore interface {
	// Put stores data, sealed, and returns the reference of the blob. Equal data gives equal references.
	Put(ctx context.Context, data []byte) (ref engine.Ref, err error)
	// Get gives what Put stored.
	Get(ctx context.Context, ref engine.Ref) ([]byte, error)
}

// Codec encodes and decodes the bags of one stack. It may be used concurrently; do not copy it.
type Codec struct {
	// Key is the stack's digest key. Digests made with different keys never compare equal.
	Key []byte
	// Blobs keeps large bags. Nil: every bag is inline.
	Blobs BlobStore
	// Resolve returns the values behind a reference to a state. The codec does not change or keep them.
	Resolve func(ctx context.Context, ref engine.Ref) (resource.PropertyMap, error)

	// Secret, if not nil, reports that a text has a secret in it which no value says is one: Encode makes it one.
	Secret func(text string) bool

	mu    sync.Mutex
	blobs map[engine.Ref]resource.PropertyMap // of the latest blobs, by reference
}

// cachedBlobs bounds the decoded blobs that a Codec holds on to.
const cachedBlobs = 64

// Encode gives the bag of a set of values; the zero Bag when it is empty.
func (c *Codec) Encode(ctx context.Context, values resource.PropertyMap) (engine.Bag, error) {
	return c.EncodeWithin(ctx, values, InlineLimit)
}

// EncodeWithin is Encode with another limit of what travels inline, in bytes.
func (c *Codec) EncodeWithin(ctx context.Context, values resource.PropertyMap, inline int) (engine.Bag, error) {
	if len(values) == 0 {
		return engine.Bag{}, nil
	}
	plain, digest, err := encode(c.Key, c.concealed(values))
	if err != nil {
		return engine.Bag{}, err
	}
	bag := engine.Bag{Digest: digest}
	if len(plain) <= inline || c.Blobs == nil {
		bag.Inline = plain
		return bag, nil
	}
	bag.Ref, err = c.Blobs.Put(ctx, plain)
	return bag, err
}

// Decode gives the values of a bag. They may be shared: do not change them.
func (c *Codec) Decode(ctx context.Context, bag engine.Bag) (resource.PropertyMap, error) {
	_, isBlob := bag.Ref.Blob()
	switch {
	case len(bag.Inline) > 0:
		return FromPlain(bag.Inline)
	case isBlob:
		return c.blob(ctx, bag.Ref)
	case bag.Ref != "" && c.Resolve != nil:
		return c.Resolve(ctx, bag.Ref)
	case bag.Ref == "" && bag.Empty():
		return resource.PropertyMap{}, nil
	}
	return nil, deployments.Errorf(deployments.CodeInternal, "a bag has no value: reference %q, digest %q", bag.Ref,
		bag.Digest)
}

func (c *Codec) blob(ctx context.Context, ref engine.Ref) (resource.PropertyMap, error) {
	c.mu.Lock()
	values, ok := c.blobs[ref]
	c.mu.Unlock()
	if ok {
		return values, nil
	}
	if c.Blobs == nil {
		return nil, deployments.Errorf(deployments.CodeInternal, "there is no store for the bag %s", ref)
	}
	plain, err := c.Blobs.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if values, err = FromPlain(plain); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blobs == nil || len(c.blobs) >= cachedBlobs {
		c.blobs = map[engine.Ref]resource.PropertyMap{}
	}
	c.blobs[ref] = values
	return values, nil
}

// Digest is the keyed digest of a set of values, over its compared form; empty when there are none.
func Digest(key []byte, values resource.PropertyMap) (string, error) {
	if len(values) == 0 {
		return "", nil
	}
	_, digest, err := encode(key, values)
	return digest, err
}

// encode gives the plain form and the digest of values.
func encode(key []byte, values resource.PropertyMap) ([]byte, string, error) {
	plain := writer{form: formPlain}
	if err := plain.object(values); err != nil {
		return nil, "", err
	}
	compared := plain.buf
	if plain.differs {
		w := writer{form: formCompared}
		if err := w.object(values); err != nil {
			return nil, "", err
		}
		compared = w.buf
	}
	return plain.buf, digest(key, compared), nil
}

func digest(key, compared []byte) string {
	h := hmac.New(sha256.New, key)
	h.Write(compared)
	return base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:16])
}
