//go:build !plaintext

package seal

import (
	"crypto/aes"
	"crypto/cipher"
)

// newAEAD gives the cipher of a 32-byte key.
func newAEAD(key []byte) cipher.AEAD {
	block, err := aes.NewCipher(key)
	if err != nil {
		panic(err) // only of a wrong size
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		panic(err)
	}
	return aead
}
