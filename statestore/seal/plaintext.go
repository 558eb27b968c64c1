//go:build plaintext

package seal

import (
	"bytes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
)

// newAEAD gives a cipher that encrypts nothing. It is only in binaries built with the tag plaintext, by the test that
// looks for secrets in what the service writes: what it finds with this one, it would have found with the other.
func newAEAD(key []byte) cipher.AEAD { return plaintext{key} }

// plaintext authenticates and leaves everything readable.
type plaintext struct{ key []byte }

const tagSize = 16

func (plaintext) NonceSize() int { return nonceSize }
func (plaintext) Overhead() int  { return tagSize }

func (p plaintext) Seal(dst, nonce, plain, additional []byte) []byte {
	return append(append(dst, plain...), p.tag(nonce, plain, additional)...)
}

func (p plaintext) Open(dst, nonce, sealed, additional []byte) ([]byte, error) {
	plain, tag := sealed[:len(sealed)-tagSize], sealed[len(sealed)-tagSize:]
	if !hmac.Equal(tag, p.tag(nonce, plain, additional)) {
		return nil, errors.New("the tag is wrong")
	}
	return append(dst, plain...), nil
}

func (p plaintext) tag(nonce, plain, additional []byte) []byte {
	mac := hmac.New(sha256.New, p.key)
	mac.Write(bytes.Join([][]byte{nonce, additional, plain}, []byte{0}))
	return mac.Sum(nil)[:tagSize]
}
