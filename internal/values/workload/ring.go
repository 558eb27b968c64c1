package workload

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Times of keys.
const (
	// Age is how old the newest key becomes before there is a next one.
	Age = 30 * 24 * time.Hour
	// Ahead is how long a key is published before it signs: clouds keep what they have read for a day, at most.
	Ahead = 2 * 24 * time.Hour
	// After is how long a key is published after its successor began to sign: longer than a token counts, and than
	// clocks differ.
	After = 24 * time.Hour
)

// bits is the size of a key. All clouds take RS256 of it.
const bits = 2048

// Key signs tokens.
type Key struct {
	ID      string // its thumbprint
	Made    time.Time
	Private *rsa.PrivateKey
}

// StoredKey is a Key as it is stored.
type StoredKey struct {
	Made    time.Time `json:"made"`
	Private []byte    `json:"private"` // PKCS #8
}

// Ring has the keys of an issuer as they are stored, the oldest first.
type Ring struct {
	Keys []StoredKey `json:"keys"`
}

// Outdated reports whether the ring needs a new key at a time, or has one that it does not need any more.
func (r Ring) Outdated(now time.Time) bool { return r.lacks(now) || r.over(now) > 0 }

func (r Ring) lacks(now time.Time) bool {
	return len(r.Keys) == 0 || now.Sub(r.Keys[len(r.Keys)-1].Made) >= Age
}

// over is how many of the oldest keys have signed no token that still counts.
func (r Ring) over(now time.Time) int {
	n := 0
	for n+1 < len(r.Keys) && !now.Before(r.Keys[n+1].Made.Add(Ahead+After)) {
		n++
	}
	return n
}

// Renewed returns the ring as it is to be from a time on. Which key signs does not change by it at once.
func (r Ring) Renewed(now time.Time) (Ring, error) {
	next := Ring{Keys: append([]StoredKey{}, r.Keys[r.over(now):]...)}
	if !r.lacks(now) {
		return next, nil
	}
	private, err := rsa.GenerateKey(rand.Reader, bits)
	if err != nil {
		return r, err
	}
	text, err := x509.MarshalPKCS8PrivateKey(private)
	next.Keys = append(next.Keys, StoredKey{Made: now, Private: text})
	return next, err
}

// errNoKey: the text of the error names nothing of a key.
var errNoKey = errors.New("a key of the issuer cannot be read")

// Open reads the keys.
func (r Ring) Open() (Keys, error) {
	var keys Keys
	for _, stored := range r.Keys {
		parsed, err := x509.ParsePKCS8PrivateKey(stored.Private)
		private, ok := parsed.(*rsa.PrivateKey)
		if err != nil || !ok {
			return nil, errNoKey
		}
		print, err := (&jose.JSONWebKey{Key: private.Public()}).Thumbprint(crypto.SHA256)
		if err != nil {
			return nil, errNoKey
		}
		keys = append(keys, Key{ID: base64.RawURLEncoding.EncodeToString(print), Made: stored.Made, Private: private})
	}
	return keys, nil
}

// Keys are those that are published, the oldest first.
type Keys []Key

// Signing returns the key that signs at a time: the newest that was published for long enough. The first one of an
// issuer, which nobody can have read the keys of before, signs at once.
func (k Keys) Signing(now time.Time) (Key, error) {
	if len(k) == 0 {
		return Key{}, errNoKey
	}
	signs := k[0]
	for _, key := range k[1:] {
		if !now.Before(key.Made.Add(Ahead)) {
			signs = key
		}
	}
	return signs, nil
}
