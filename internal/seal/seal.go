// Package seal encrypts what the service writes down: Temporal payloads and objects in the store. One master key gives a
// key per purpose, so that a sealed value of one purpose never opens as one of another.
package seal

import (
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"

	"github.com/deployctl/deployctl/deployments"
	"github.com/klauspost/compress/zstd"
)

// Purposes that other packages agree on. A stack's own purpose is "stack/" and its identity.
const (
	PurposePayload = "payload" // Temporal payloads
	PurposeStore   = "store"   // objects of the service as a whole
)

// The first byte of a sealed value says how to open it. A reader refuses bytes that it does not know.
const (
	versionPlain byte = 1 // nonce, AES-256-GCM of the value
	versionZstd  byte = 2 // nonce, AES-256-GCM of the zstd-compressed value
)

const (
	keySize   = 32
	nonceSize = 12
	// maxPlain bounds what Open decompresses to, against a value made to exhaust memory.
	maxPlain = 1 << 30
	// minCompressed is the size below which compressing does not pay.
	minCompressed = 128
)

// Keyring derives the keys of all purposes from one master key.
type Keyring struct{ master []byte }

// NewKeyring takes the service's master key, 32 bytes.
func NewKeyring(master []byte) (*Keyring, error) {
	if len(master) != keySize {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the service's master key is %d bytes long; it must be %d", len(master), keySize)
	}
	return &Keyring{master: append([]byte(nil), master...)}, nil
}

// Key derives the 32-byte key of a purpose by HKDF-SHA256: the same for the same master key and purpose, always.
func (k *Keyring) Key(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, k.master, nil, "deployctl/v1/"+purpose, keySize)
	if err != nil {
		panic(err) // only of a wrong size, which is a constant
	}
	return key
}

// Box gives the box of a purpose.
func (k *Keyring) Box(purpose string) *Box { return NewBox(k.Key(purpose)) }

// Box seals and opens values with one key. It may be used concurrently.
//
// Nonces are random, so one key should seal fewer than 2^32 values.
type Box struct {
	aead cipher.AEAD
	mac  []byte
}

// NewBox makes the box of a 32-byte key.
func NewBox(key []byte) *Box {
	mac, err := hkdf.Key(sha256.New, key, nil, "digest", keySize)
	if err != nil {
		panic(err)
	}
	return &Box{aead: newAEAD(key), mac: mac}
}

// Shared by all boxes: EncodeAll and DecodeAll may be called concurrently.
var (
	encoder = must(zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)))
	decoder = must(zstd.NewReader(nil, zstd.WithDecoderMaxMemory(maxPlain), zstd.WithDecoderConcurrency(0)))
)

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// Seal compresses and encrypts plain. Context says what the value is (an object's name, say); it is not stored, and Open
// needs the same. Sealing twice gives different bytes.
func (b *Box) Seal(plain []byte, context string) []byte {
	version, body := versionPlain, plain
	if len(plain) >= minCompressed {
		if packed := encoder.EncodeAll(plain, make([]byte, 0, len(plain)/2+64)); len(packed) < len(plain) {
			version, body = versionZstd, packed
		}
	}
	sealed := make([]byte, 1+nonceSize, 1+nonceSize+len(body)+b.aead.Overhead())
	sealed[0] = version
	_, _ = rand.Read(sealed[1:]) // never fails
	return b.aead.Seal(sealed, sealed[1:], body, additional(version, context))
}

// Open gives what was sealed with the same key and context; else an error with CodeFormat.
func (b *Box) Open(sealed []byte, context string) ([]byte, error) {
	if len(sealed) < 1+nonceSize+b.aead.Overhead() {
		return nil, deployments.Errorf(deployments.CodeFormat, "%s is not a sealed value", about(context))
	}
	version := sealed[0]
	if version != versionPlain && version != versionZstd {
		return nil, deployments.Errorf(deployments.CodeFormat,
			"%s is not a sealed value, or was sealed by a newer deployctl (format %d)", about(context), version)
	}
	body, err := b.aead.Open(nil, sealed[1:1+nonceSize], sealed[1+nonceSize:], additional(version, context))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat,
			"%s was not sealed with this service's key, or is damaged", about(context))
	}
	if version == versionPlain {
		return body, nil
	}
	plain, err := decoder.DecodeAll(body, nil)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeFormat, "%s cannot be decompressed: %w", about(context), err)
	}
	return plain, nil
}

// Digest is a keyed digest of data, 32 bytes: equal data gives equal digests under one key, and nobody without the key
// can try guesses.
func (b *Box) Digest(data []byte) []byte {
	h := hmac.New(sha256.New, b.mac)
	h.Write(data)
	return h.Sum(nil)
}

func additional(version byte, context string) []byte {
	return append([]byte{version}, context...)
}

func about(context string) string {
	if context == "" {
		return "the value"
	}
	return context
}
