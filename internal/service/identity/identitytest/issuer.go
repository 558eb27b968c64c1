// Package identitytest is an issuer of identity tokens for tests, which vouches for jobs as GitHub Actions does.
package identitytest

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"maps"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// Issuer is an identity provider.
type Issuer struct {
	*httptest.Server
	t testing.TB

	mu    sync.Mutex
	keys  []jose.JSONWebKey // public ones, as it serves them
	asked int
	says  map[string]any              // in its discovery document, beside what every issuer says
	pages map[string]http.HandlerFunc // by their paths, beside those of every issuer
}

// Key is a key of an issuer.
type Key struct {
	ID        string
	Algorithm jose.SignatureAlgorithm
	Private   crypto.Signer
}

// New starts an issuer on loopback, without TLS. It publishes no key yet.
func New(t testing.TB) *Issuer {
	t.Helper()
	i := &Issuer{t: t, says: map[string]any{}, pages: map[string]http.HandlerFunc{}}
	i.Server = httptest.NewServer(http.HandlerFunc(i.serve))
	t.Cleanup(i.Close)
	return i
}

func (i *Issuer) serve(w http.ResponseWriter, r *http.Request) {
	if page := i.page(r.URL.Path); page != nil {
		page(w, r)
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked++
	switch r.URL.Path {
	case "/.well-known/openid-configuration":
		said := map[string]any{"issuer": i.URL, "jwks_uri": i.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256", "HS256", "none"}}
		maps.Copy(said, i.says)
		answer(w, http.StatusOK, said)
	case "/keys":
		answer(w, http.StatusOK, jose.JSONWebKeySet{Keys: i.keys})
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) page(path string) http.HandlerFunc {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.pages[path]
}

// Says has the issuer say something else in its discovery document.
func (i *Issuer) Says(what string, value any) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.says[what] = value
}

func (i *Issuer) said(what string) any {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.says[what]
}

// Serve has the issuer answer at a path as it does not by itself.
func (i *Issuer) Serve(path string, page http.HandlerFunc) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pages[path] = page
}

func answer(w http.ResponseWriter, status int, what any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(what) // its reader has gone
}

// Asked returns how many requests there were.
func (i *Issuer) Asked() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.asked
}

// RSA makes a key for RS256.
func RSA(t testing.TB, id string) Key {
	t.Helper()
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, jose.RS256, private}
}

// EC makes a key for ES256.
func EC(t testing.TB, id string) Key {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return Key{id, jose.ES256, private}
}

// Publish replaces the keys that the issuer publishes.
func (i *Issuer) Publish(keys ...Key) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys = nil
	for _, k := range keys {
		i.keys = append(i.keys, jose.JSONWebKey{Key: k.Private.Public(), KeyID: k.ID, Algorithm: string(k.Algorithm),
			Use: "sig"})
	}
}

// Claims are what is said of a job of acme/shop on the branch main, for the organization acme, good for five minutes.
// Changes replace claims; nil removes one.
func (i *Issuer) Claims(changes map[string]any) map[string]any {
	now := time.Now()
	claims := map[string]any{
		"iss": i.URL, "sub": "repo:acme/shop:ref:refs/heads/main", "aud": "urn:pulumi:org:acme", "jti": rand.Text(),
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(5 * time.Minute).Unix(),
		"repository": "acme/shop", "ref": "refs/heads/main", "actor": "ann", "run_attempt": "1",
	}
	maps.Copy(claims, changes)
	maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
	return claims
}

// Sign signs claims with a key.
func (i *Issuer) Sign(k Key, claims map[string]any) string {
	i.t.Helper()
	return Signed(i.t, jose.SigningKey{Algorithm: k.Algorithm, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}, claims)
}

// Signed signs claims.
func Signed(t testing.TB, k jose.SigningKey, claims map[string]any) string {
	t.Helper()
	signer, err := jose.NewSigner(k, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	signature, err := signer.Sign(text)
	if err != nil {
		t.Fatal(err)
	}
	compact, err := signature.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return compact
}
