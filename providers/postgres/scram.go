package postgres

import (
	"crypto/hmac"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"fmt"
	"strconv"
	"strings"
)

const (
	scramIterations = 4096 // PostgreSQL's own number
	scramSalt       = 16
)

// verifier is what a server stores of a password, by RFC 5802 and RFC 7677: with it a password can be checked, and
// nobody can log in. The password is printable ASCII, which SASLprep leaves as it is.
func verifier(password string, salt []byte, iterations int) (string, error) {
	salted, err := pbkdf2.Key(sha256.New, password, salt, iterations, sha256.Size)
	if err != nil {
		return "", err
	}
	stored := sha256.Sum256(mac(salted, "Client Key"))
	encode := base64.StdEncoding.EncodeToString
	return fmt.Sprintf("SCRAM-SHA-256$%d:%s$%s:%s", iterations, encode(salt), encode(stored[:]),
		encode(mac(salted, "Server Key"))), nil
}

func mac(key []byte, text string) []byte {
	h := hmac.New(sha256.New, key)
	_, _ = h.Write([]byte(text)) // it never fails
	return h.Sum(nil)
}

// newVerifier is a verifier with a salt of its own.
func newVerifier(password string) (string, error) {
	salt := make([]byte, scramSalt)
	_, _ = rand.Read(salt) // it never fails
	return verifier(password, salt, scramIterations)
}

// verifies says whether a stored verifier is one of the password. One of another kind, such as MD5, is not.
func verifies(stored, password string) bool {
	rest, ok := strings.CutPrefix(stored, "SCRAM-SHA-256$")
	count, rest, _ := strings.Cut(rest, ":")
	encoded, _, _ := strings.Cut(rest, "$")
	iterations, err := strconv.Atoi(count)
	salt, saltErr := base64.StdEncoding.DecodeString(encoded)
	const most = 10_000_000 // a server of somebody else's may say anything
	if !ok || err != nil || saltErr != nil || iterations < 1 || iterations > most {
		return false
	}
	own, err := verifier(password, salt, iterations)
	return err == nil && subtle.ConstantTimeCompare([]byte(own), []byte(stored)) == 1
}
