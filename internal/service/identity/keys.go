package identity

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync/atomic"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/go-jose/go-jose/v4"
)

// The keys of an issuer are what a stranger says, and anybody may write a token of which they are tried. So they are
// few, only what verifies is kept of them, and a token says which of several it is signed with.
const (
	// mostKeys limits the keys of an issuer, and mostOfID those with the same id, all of which are tried.
	mostKeys, mostOfID = 32, 4
	// maxNumber and maxID limit the texts of a key: numbers of 8192 bits in base64, and its id.
	maxNumber, maxID = 1366, 256
)

// keySet is the keys of an issuer. They are asked for when a token is signed with one that is not known.
type keySet struct {
	oidc.KeySet
	several *atomic.Bool // there is more than one key
}

// keysAt returns the keys at an address that an issuer names. It is asked by the fetcher of the issuer; but at another
// host it must be at a public address: otherwise everybody who names an issuer could have a private server asked.
func (v *Verifier) keysAt(address string, from *url.URL, by *fetcher) (*keySet, error) {
	at, err := url.Parse(address)
	if err != nil {
		return nil, errors.New("the address of its keys is no URL")
	}
	guard := *v.guard
	if at.Host != from.Host && !guard.Private {
		guard.Hosts, guard.Prefixes = nil, nil
		by = &fetcher{next: guard.Client().Transport, now: by.now, limit: by.limit}
	}
	if err := guard.Allows(at); err != nil {
		return nil, err
	}
	keys := &keyFetcher{fetcher: by}
	set := oidc.NewRemoteKeySet(oidc.ClientContext(context.Background(), client(keys)), address)
	return &keySet{set, &keys.several}, nil
}

// VerifySignature verifies a token. Of several keys it must say by which: without that, all would be tried.
func (s *keySet) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	if s.several.Load() && keyID(token) == "" {
		return nil, errors.New("it does not say with which of the issuer's keys it is signed")
	}
	return s.KeySet.VerifySignature(ctx, token)
}

// keyID returns the id of the key that a token names, as the one who verifies it reads it; "" if it names none.
func keyID(token string) string {
	signed, err := jose.ParseSignedCompact(token, signatures)
	if err != nil {
		return ""
	}
	return signed.Signatures[0].Header.KeyID
}

// signatures are the algorithms that are accepted.
var signatures = func() (all []jose.SignatureAlgorithm) {
	for _, a := range algorithms {
		all = append(all, jose.SignatureAlgorithm(a))
	}
	return all
}()

// keyFetcher asks for the keys of an issuer, and answers with those that can verify a token.
type keyFetcher struct {
	*fetcher
	several atomic.Bool
}

// key is what is kept of a key (RFC 7517).
type key struct {
	Type      string `json:"kty"`
	Use       string `json:"use,omitempty"`
	ID        string `json:"kid,omitempty"`
	Algorithm string `json:"alg,omitempty"`
	Curve     string `json:"crv,omitempty"`
	X         string `json:"x,omitempty"`
	Y         string `json:"y,omitempty"`
	Modulus   string `json:"n,omitempty"`
	Exponent  string `json:"e,omitempty"`
}

// verifies reports whether a key may verify tokens.
func (k key) verifies() bool {
	return slices.Contains([]string{"RSA", "EC", "OKP"}, k.Type) && k.Use != "enc" && len(k.ID) <= maxID &&
		max(len(k.X), len(k.Y), len(k.Modulus), len(k.Exponent)) <= maxNumber
}

// RoundTrip asks for the keys.
func (f *keyFetcher) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := f.fetcher.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	var set struct {
		Keys []key `json:"keys"`
	}
	err = json.NewDecoder(answer.Body).Decode(&set)
	_ = answer.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("its keys are no JSON Web Key Set of at most %d bytes", maxAnswer)
	}
	set.Keys = slices.DeleteFunc(set.Keys, func(k key) bool { return !k.verifies() })
	same := map[string]int{}
	for _, k := range set.Keys {
		same[k.ID]++
		if len(set.Keys) > mostKeys || same[k.ID] > mostOfID {
			return nil, fmt.Errorf("it has too many keys: at most %d, and %d of the same id, are used", mostKeys, mostOfID)
		}
	}
	f.several.Store(len(set.Keys) > 1)
	text, err := json.Marshal(set)
	if err != nil {
		return nil, err
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
	return answer, nil
}
