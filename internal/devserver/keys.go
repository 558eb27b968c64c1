package devserver

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"io"
)

// Keys are the secrets of one home, made at its first start and never again. They are as good as the state they
// protect: a lost master key is lost state.
type Keys struct {
	S3AccessKey string `json:"s3AccessKey"`
	S3SecretKey string `json:"s3SecretKey"`
	// Master is the service's master key, 32 bytes: payloads and stack secrets are sealed with keys derived from it.
	Master []byte `json:"master"`
}

// OfPrograms returns the keys by which programs use the S3 server. They open every bucket but the service's own, and do
// not tell the service's keys.
func (k Keys) OfPrograms() (accessKey, secretKey string) {
	derived := func(purpose string) string {
		sum := hmac.New(sha256.New, []byte(k.S3SecretKey))
		_, _ = io.WriteString(sum, purpose) // never fails
		return letters(sum.Sum(nil))
	}
	return "PROGRAMS" + derived("access key of programs")[:13], derived("secret key of programs")
}

// ReadKeys returns the keys of a home that has been started before.
func ReadKeys(path string) (Keys, error) {
	h, err := findHome(path)
	if err != nil {
		return Keys{}, err
	}
	var k Keys
	found, err := readJSON(h.keys(), &k)
	if err == nil && !found {
		err = fmt.Errorf("the service in %s was never started: no %s", h, h.keys())
	}
	return k, err
}

// ensureKeys reads the keys of h, or makes them in a new home. The caller holds lockHome.
func ensureKeys(h home) (Keys, error) {
	var k Keys
	found, err := readJSON(h.keys(), &k)
	if err != nil {
		return k, err
	}
	if found {
		if len(k.Master) != 32 || k.S3AccessKey == "" || k.S3SecretKey == "" {
			return k, fmt.Errorf("%s is not whole: put it back from a copy, or start over with `deployctl dev reset`",
				h.keys())
		}
		return k, nil
	}
	if exists(h.database()) {
		return k, fmt.Errorf("%s is gone, and the state beside it cannot be read without it: put it back from a copy, "+
			"or start over with `deployctl dev reset`", h.keys())
	}
	k = Keys{S3AccessKey: "DEPLOYCTL" + token(8), S3SecretKey: token(32), Master: make([]byte, 32)}
	_, _ = rand.Read(k.Master) // never fails
	return k, writeJSON(h.keys(), k)
}

// token is n random bytes in letters and digits.
func token(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return letters(b)
}

// letters is bytes in letters and digits.
func letters(b []byte) string {
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(b)
}
