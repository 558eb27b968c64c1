// Package identity verifies identity tokens (OpenID Connect) of issuers that an organization trusts.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/outbound"
)

const (
	// MaxToken limits an identity token, in bytes.
	MaxToken = 16 << 10
	// keysFor is how long the keys of an issuer are used before they are asked for anew: a revoked one works no longer.
	keysFor = time.Hour
	// patience bounds one request to an issuer.
	patience = 10 * time.Second
	// maxKnown limits the issuers whose keys are kept.
	maxKnown = 1000
)

// algorithms are the ones that identity tokens may be signed with. All are asymmetric: a public key is no secret, so a
// token that uses it as one is worth nothing.
var algorithms = []string{oidc.RS256, oidc.RS384, oidc.RS512, oidc.PS256, oidc.PS384, oidc.PS512, oidc.ES256,
	oidc.ES384, oidc.ES512, oidc.EdDSA}

// Verifier verifies identity tokens. It may be used concurrently.
type Verifier struct {
	guard *outbound.Guard
	now   func() time.Time

	mu    sync.Mutex
	known map[string]*issuer
}

// New returns a verifier that asks the issuers which the guard allows.
func New(g *outbound.Guard) *Verifier { return &Verifier{guard: g, now: time.Now} }

// issuer is an identity provider with its keys.
type issuer struct {
	fetch *fetcher

	mu    sync.Mutex
	keys  oidc.KeySet
	asked time.Time
}

// IssuerOf returns the issuer that a token names; it is not verified.
func IssuerOf(token string) (string, error) {
	var claims struct {
		Issuer string `json:"iss"`
	}
	parts := strings.Split(token, ".")
	if len(token) > MaxToken || len(parts) != 3 {
		return "", unusable("it is not a signed JSON Web Token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Issuer == "" ||
		len(claims.Issuer) > deployments.MaxClaimLength {
		return "", unusable("it names no issuer")
	}
	return claims.Issuer, nil
}

func unusable(why string) error {
	return deployments.Errorf(deployments.CodeUnauthorized, "the identity token is not accepted: %s", why)
}

// Verify returns what an issuer says by a token; CodeUnauthorized when the token is not good, CodeUnavailable when the
// issuer does not answer. Audience and claims are the caller's to check.
func (v *Verifier) Verify(ctx context.Context, from, token string) (deployments.Identity, error) {
	if len(token) > MaxToken {
		return deployments.Identity{}, unusable("it is too long")
	}
	keys, err := v.keysOf(ctx, from)
	if err != nil {
		return deployments.Identity{}, err
	}
	asked := &asking{KeySet: keys}
	verifier := oidc.NewVerifier(from, asked, &oidc.Config{SkipClientIDCheck: true, SupportedSigningAlgs: algorithms,
		Now: v.now})
	verified, err := verifier.Verify(ctx, token)
	switch {
	case asked.failed != nil:
		return deployments.Identity{}, unanswered(from, asked.failed)
	case err != nil:
		return deployments.Identity{}, unusable(strings.TrimPrefix(err.Error(), "oidc: "))
	case verified.Subject == "":
		return deployments.Identity{}, unusable("it has no subject")
	case verified.IssuedAt.After(v.now().Add(time.Minute)):
		return deployments.Identity{}, unusable("it is issued in the future")
	}
	i := deployments.Identity{Issuer: from, Subject: verified.Subject, Audiences: verified.Audience,
		Expires: verified.Expiry}
	if err := verified.Claims(&i.Claims); err != nil {
		return deployments.Identity{}, unusable("its claims cannot be read")
	}
	i.ID = idOf(i.Claims["jti"], token)
	return i, nil
}

// idOf returns what distinguishes a token: the id that its issuer gave it, or else what is signed.
func idOf(jti json.RawMessage, token string) string {
	var id string
	if json.Unmarshal(jti, &id) == nil && id != "" {
		return "jti " + id
	}
	signed := sha256.Sum256([]byte(token[:strings.LastIndexByte(token, '.')]))
	return "sha256 " + hex.EncodeToString(signed[:])
}

func unanswered(from string, err error) error {
	var refused *outbound.RefusedError
	if errors.As(err, &refused) {
		return deployments.Errorf(deployments.CodeInvalid, "the issuer %s must not be asked for its keys: %s", from,
			refused.Error())
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the issuer %s cannot be asked for its keys: %w", from, err)
}

// asking is a key set that notes that an issuer did not answer: the verifier does not tell that from a wrong token.
type asking struct {
	oidc.KeySet
	failed error
}

func (a *asking) VerifySignature(ctx context.Context, token string) ([]byte, error) {
	payload, err := a.KeySet.VerifySignature(ctx, token)
	var transport *url.Error
	if errors.As(err, &transport) {
		a.failed = transport
	}
	return payload, err
}

// keysOf returns the keys of an issuer, which are found by its discovery document.
func (v *Verifier) keysOf(ctx context.Context, from string) (oidc.KeySet, error) {
	u, err := url.Parse(from)
	if err != nil {
		return nil, unusable("its issuer is no URL")
	}
	if err := v.guard.Allows(u); err != nil {
		return nil, unanswered(from, err)
	}
	i := v.issuer(from)
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.keys != nil && v.now().Sub(i.asked) < keysFor {
		return i.keys, nil
	}
	client := &http.Client{Transport: i.fetch, Timeout: patience,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	ctx = oidc.ClientContext(ctx, client)
	provider, err := oidc.NewProvider(ctx, from)
	if err != nil {
		return nil, unanswered(from, err)
	}
	var found struct {
		Keys string `json:"jwks_uri"`
	}
	err = provider.Claims(&found)
	keys, invalid := url.Parse(found.Keys)
	if err = errors.Join(err, invalid); err == nil {
		err = v.guard.Allows(keys)
	}
	if err != nil {
		return nil, unanswered(from, err)
	}
	i.keys, i.asked = oidc.NewRemoteKeySet(ctx, found.Keys), v.now()
	return i.keys, nil
}

func (v *Verifier) issuer(from string) *issuer {
	v.mu.Lock()
	defer v.mu.Unlock()
	if found, ok := v.known[from]; ok {
		return found
	}
	if v.known == nil || len(v.known) >= maxKnown {
		v.known = map[string]*issuer{}
	}
	made := &issuer{fetch: newFetcher(v.guard.Client().Transport, v.now)}
	v.known[from] = made
	return made
}
