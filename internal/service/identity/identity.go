// Package identity verifies identity tokens (OpenID Connect) of issuers that an organization trusts, and asks an issuer
// for the token of a person who logs in to the console.
package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/flight"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"
)

const (
	// MaxToken limits an identity token, in bytes.
	MaxToken = 16 << 10
	// keysFor is how long the keys of an issuer are used before they are asked for anew: a revoked one works no longer.
	keysFor = time.Hour
	// patience bounds one request to an issuer.
	patience = 10 * time.Second
	// failedFor is how long an issuer is not asked again that has not answered: those who wait for it would queue.
	failedFor = 5 * time.Second
	// maxKnown limits the issuers whose keys are kept: the latest that were asked for.
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
	known *lru.Cache[string, *issuer]
}

// New returns a verifier that asks the issuers which the guard allows.
func New(g *outbound.Guard) *Verifier {
	known, _ := lru.New[string, *issuer](maxKnown) // it is not negative
	return &Verifier{guard: g, now: time.Now, known: known}
}

// issuer is an identity provider.
type issuer struct {
	fetch  *fetcher
	asking flight.Group[*discovered] // for the only document

	mu    sync.Mutex
	found *discovered
	err   error // why it is not known; found is nil then
	asked time.Time
}

// discovered is what an issuer says of itself in its discovery document.
type discovered struct {
	provider *oidc.Provider // without its document, which may be large
	keys     *keySet
	// Methods are how a client may show its secret.
	Methods []string `json:"token_endpoint_auth_methods_supported"`
	KeysAt  string   `json:"jwks_uri"`
	// Named says that the issuer tells its name when a login returns (RFC 9207).
	Named bool `json:"authorization_response_iss_parameter_supported"`
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
	found, err := v.discover(ctx, from)
	if err != nil {
		return deployments.Identity{}, err
	}
	asked := &asking{KeySet: found.keys}
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

// longestReason is how much is said of why an issuer did not answer: it may have sent a page.
const longestReason = 300

func unanswered(from string, err error) error {
	var refused *outbound.RefusedError
	if errors.As(err, &refused) {
		return deployments.Errorf(deployments.CodeInvalid, "the issuer %s must not be asked: %s", from, refused.Error())
	}
	if text := err.Error(); len(text) > longestReason {
		err = errors.New(strings.ToValidUTF8(text[:longestReason], "") + "…")
	}
	return deployments.Errorf(deployments.CodeUnavailable, "the issuer %s cannot be asked: %w", from, err)
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

// discover returns what an issuer says of itself. All who ask at once wait for one answer, each for as long as they
// like.
func (v *Verifier) discover(ctx context.Context, from string) (*discovered, error) {
	u, err := url.Parse(from)
	if err != nil {
		return nil, unusable("its issuer is no URL")
	}
	if err := v.guard.Allows(u); err != nil {
		return nil, unanswered(from, err)
	}
	i := v.issuer(from)
	if found, err := i.known(v.now()); found != nil || err != nil {
		return found, err
	}
	found, err := i.asking.Do(ctx, "", "asking an issuer", func(context.Context) (*discovered, error) {
		if found, err := i.known(v.now()); found != nil || err != nil {
			return found, err
		}
		found, err := v.ask(i.fetch, u)
		return i.learn(found, err, v.now())
	})
	if ctx.Err() != nil {
		return nil, unanswered(from, ctx.Err())
	}
	return found, err
}

// ask reads the discovery document of an issuer.
func (v *Verifier) ask(by *fetcher, from *url.URL) (*discovered, error) {
	ctx := oidc.ClientContext(context.Background(), client(by))
	provider, err := oidc.NewProvider(ctx, from.String())
	if err != nil {
		return nil, unanswered(from.String(), err)
	}
	found := &discovered{}
	err = provider.Claims(found)
	if err == nil {
		found.keys, err = v.keysAt(found.KeysAt, from, by)
	}
	if err != nil {
		return nil, unanswered(from.String(), err)
	}
	at := provider.Endpoint()
	found.provider = (&oidc.ProviderConfig{IssuerURL: from.String(), AuthURL: at.AuthURL, TokenURL: at.TokenURL,
		JWKSURL: found.KeysAt}).NewProvider(ctx)
	return found, nil
}

// known returns what is known of an issuer, or why it was not found out lately; neither if it is to be asked.
func (i *issuer) known(now time.Time) (*discovered, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	switch age := now.Sub(i.asked); {
	case i.found != nil && age < keysFor:
		return i.found, nil
	case i.err != nil && age < failedFor:
		return nil, i.err
	}
	return nil, nil
}

// learn keeps what an issuer has said, or why it has not.
func (i *issuer) learn(found *discovered, err error, now time.Time) (*discovered, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.found, i.err, i.asked = found, err, now
	return found, err
}

func (v *Verifier) issuer(from string) *issuer {
	if found, ok := v.known.Get(from); ok {
		return found
	}
	made := &issuer{fetch: v.fetcher(asksPerSecond, askBurst)}
	if found, ok, _ := v.known.PeekOrAdd(from, made); ok {
		return found
	}
	return made
}

// fetcher returns one that asks so often.
func (v *Verifier) fetcher(perSecond rate.Limit, burst int) *fetcher {
	return &fetcher{next: v.guard.Client().Transport, now: v.now, limit: rate.NewLimiter(perSecond, burst)}
}
