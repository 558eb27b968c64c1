// Package seal encrypts what the service writes down: Temporal payloads and objects in the store. Each purpose has its
// own keys, so that a sealed value of one purpose never opens as one of another; and each sealed value names the key
// that sealed it, so that keys can be replaced while the service runs.
package seal

import (
	"bytes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"sync"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/pack"
	"github.com/klauspost/compress/zstd"
)

// Purposes that other packages agree on. A stack's own purpose is "stack/" and its identity.
const (
	PurposePayload = "payload" // Temporal payloads
	PurposeStore   = "store"   // objects of the service as a whole
)

// The first byte of a sealed value says how to open it. A reader refuses bytes that it does not know.
const (
	versionPlain     byte = 1 // nonce, AES-256-GCM of the value, with a key made from the root
	versionZstd      byte = 2 // the same of the zstd-compressed value
	versionKeyed     byte = 3 // id of the sealing key, nonce, AES-256-GCM of the value
	versionKeyedZstd byte = 4 // the same of the zstd-compressed value
)

const (
	keySize   = 32
	nonceSize = 12
	idSize    = len(KeyID{})
	// maxPlain bounds what Open decompresses to, against a value made to exhaust memory.
	maxPlain = 1 << 30
	// minCompressed is the size below which compressing does not pay.
	minCompressed = 128
)

// Box seals and opens values of one purpose. It may be used concurrently.
//
// Nonces are random, so one key should seal fewer than 2^32 values.
type Box struct {
	ring    *Keyring
	purpose string
	mac     []byte

	mu    sync.RWMutex
	aeads map[KeyID]cipher.AEAD // by sealing key
	root  cipher.AEAD           // of values that name no key
}

// Shared by all boxes: they may be used concurrently.
var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)))
	decoder = pack.NewDecoder(maxPlain)
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// cipher returns the cipher of a sealing key.
func (b *Box) cipher(key named) cipher.AEAD {
	b.mu.RLock()
	aead, ok := b.aeads[key.id]
	b.mu.RUnlock()
	if ok {
		return aead
	}
	aead = newAEAD(derive(key.key, "deployctl/v1/"+b.purpose))
	b.mu.Lock()
	defer b.mu.Unlock()
	b.aeads[key.id] = aead
	return aead
}

// rootCipher returns the cipher of values that name no key.
func (b *Box) rootCipher() cipher.AEAD {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.root == nil {
		b.root = newAEAD(b.ring.Key(b.purpose))
	}
	return b.root
}

// header is what stands before a value that is sealed now: its version, the key's id and the nonce. overhead is what
// stands behind.
const (
	header   = 1 + idSize + nonceSize
	overhead = 16
)

// Seal compresses and encrypts plain. Context says what the value is (an object's name, say); it is not stored, and
// Open needs the same. Sealing twice gives different bytes.
func (b *Box) Seal(plain []byte, context string) []byte {
	// A file is large, so it is compressed and encrypted in place, in the one buffer that is returned.
	sealed := make([]byte, header, header+encoder.MaxEncodedSize(len(plain))+overhead)
	version := versionKeyed
	if len(plain) >= minCompressed {
		if packed := encoder.EncodeAll(plain, sealed); len(packed) < header+len(plain) {
			version, sealed = versionKeyedZstd, packed
		}
	}
	if version == versionKeyed {
		sealed = append(sealed[:header], plain...)
	}
	if sealed = b.encrypt(sealed, version, context); 2*len(sealed) < cap(sealed) {
		return bytes.Clone(sealed) // it may be kept for long, and its buffer is mostly empty
	}
	return sealed
}

// SealParts is Seal of a text in parts. A large one is compressed part by part, so that it is in memory only as it is,
// and as it is sealed.
func (b *Box) SealParts(context string, parts ...[]byte) []byte {
	size := pack.Size(parts)
	if size < pack.Large {
		return b.Seal(pack.Whole(parts), context)
	}
	sealed := pack.Zstd(parts, zstd.SpeedFastest, header, overhead)
	if len(sealed) < header+size {
		return b.encrypt(sealed, versionKeyedZstd, context)
	}
	sealed = sealed[:header] // which has become longer than the text
	for _, part := range parts {
		sealed = append(sealed, part...)
	}
	return b.encrypt(sealed, versionKeyed, context)
}

// encrypt encrypts what stands behind the place of a header, where it is.
func (b *Box) encrypt(sealed []byte, version byte, context string) []byte {
	key := b.ring.current()
	sealed[0] = version
	copy(sealed[1:], key.id[:])
	_, _ = rand.Read(sealed[1+idSize : header]) // never fails
	return b.cipher(key).Seal(sealed[:header], sealed[1+idSize:header], sealed[header:],
		additional(sealed[:1+idSize], context))
}

// SealOwned is Seal for a large value that the caller gives up: what has room for it behind its end is encrypted where
// it is, without being compressed, so that it is in memory once.
func (b *Box) SealOwned(plain []byte, context string) []byte {
	n := len(plain)
	if cap(plain) < header+n+overhead {
		return b.Seal(plain, context)
	}
	sealed := plain[:header+n]
	copy(sealed[header:], plain)
	return b.encrypt(sealed, versionKeyed, context)
}

// ErrUnknownKey is in the chain of an error about a value whose key the ring does not have.
var ErrUnknownKey = errors.New("the key is not known")

// Open gives what was sealed with the same key and context; else an error with CodeFormat, which begins with the
// context.
func (b *Box) Open(sealed []byte, context string) ([]byte, error) {
	return b.OpenWithin(sealed, context, func(int64) error { return nil })
}

// OpenWithin is Open that asks for room before it makes a value of a size in bytes.
func (b *Box) OpenWithin(sealed []byte, context string, room func(size int64) error) ([]byte, error) {
	if len(sealed) == 0 {
		return nil, deployments.Errorf(deployments.CodeFormat, "%s is not a sealed value", about(context))
	}
	version, header, aead := sealed[0], 1, cipher.AEAD(nil)
	switch version {
	case versionPlain, versionZstd:
		aead = b.rootCipher()
	case versionKeyed, versionKeyedZstd:
		id, ok := KeyOf(sealed)
		if !ok {
			break
		}
		key, found := b.ring.find(id)
		if !found {
			return nil, &deployments.Error{Code: deployments.CodeFormat, Err: ErrUnknownKey, Message: fmt.Sprintf(
				"%s was sealed with the key %s, which this process does not have", about(context), id)}
		}
		header, aead = 1+idSize, b.cipher(key)
	default:
		return nil, deployments.Errorf(deployments.CodeFormat,
			"%s is not a sealed value, or was sealed by a newer deployctl (format %d)", about(context), version)
	}
	if aead == nil || len(sealed) < header+nonceSize+aead.Overhead() {
		return nil, deployments.Errorf(deployments.CodeFormat, "%s is not a sealed value", about(context))
	}
	plainly := version == versionPlain || version == versionKeyed
	if plainly {
		if err := room(int64(len(sealed) - header - nonceSize - aead.Overhead())); err != nil {
			return nil, err
		}
	}
	body, err := aead.Open(nil, sealed[header:header+nonceSize], sealed[header+nonceSize:],
		additional(sealed[:header], context))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat,
			"%s was not sealed with this service's key, or is damaged", about(context))
	}
	if plainly {
		return body, nil
	}
	var frame zstd.Header
	if frame.Decode(body) == nil && frame.HasFCS {
		if err := room(int64(min(frame.FrameContentSize, maxPlain))); err != nil {
			return nil, err
		}
	}
	plain, err := decoder.Decode(body)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "%s cannot be decompressed: %w", about(context), err)
	}
	return plain, nil
}

// KeyOf returns the id of the key that a value was sealed with; false if the value names none.
func KeyOf(sealed []byte) (id KeyID, ok bool) {
	if len(sealed) < 1+idSize || sealed[0] != versionKeyed && sealed[0] != versionKeyedZstd {
		return id, false
	}
	return KeyID(sealed[1 : 1+idSize]), true
}

// Digest is a keyed digest of data, 32 bytes: equal data gives equal digests under one key, and nobody without the key
// can try guesses. It stays the same when sealing keys are replaced.
func (b *Box) Digest(data []byte) []byte {
	h := hmac.New(sha256.New, b.mac)
	h.Write(data)
	return h.Sum(nil)
}

// additional binds a value to its header and its context.
func additional(header []byte, context string) []byte {
	return append(append(make([]byte, 0, len(header)+len(context)), header...), context...)
}

func about(context string) string {
	if context == "" {
		return "the value"
	}
	return context
}
