package identity

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"net/url"
	"regexp"
	"slices"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/deployctl/deployctl/deployments"
	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/oauth2"
	"golang.org/x/sync/semaphore"
)

const (
	// mostAsking is how many codes are exchanged at a time.
	mostAsking = 32
	// mostUsed is how many flows are remembered of which a code was sent: more than are sent while a flow lasts.
	mostUsed = 10_000
	// maxCode limits what a provider answers a login with, in bytes.
	maxCode = 4 << 10
)

// Registration is how an issuer knows the service as a client of it.
type Registration struct {
	Issuer, ID string
	// Secret is empty for a public client, which has none.
	Secret string
	Scopes []string
	// Return is where the issuer sends people back to.
	Return string
}

// Client logs people in with one issuer, by OpenID Connect's authorization code flow with PKCE. Several processes with
// the same registration are one client: what a login needs to go on, its Flow has.
type Client struct {
	Registration
	verifier *Verifier
	fetch    *fetcher
	asking   *semaphore.Weighted
	used     *lru.Cache[string, struct{}] // the states of flows of which a code was sent
}

// Client returns the client of a registration, whose tokens the verifier verifies.
func (v *Verifier) Client(r Registration) *Client {
	used, _ := lru.New[string, struct{}](mostUsed) // fails for no size only
	return &Client{Registration: r, verifier: v, fetch: v.fetcher(codesPerSecond, codeBurst),
		asking: semaphore.NewWeighted(mostAsking), used: used}
}

// Name is what people know the issuer by.
func (c *Client) Name() string {
	u, err := url.Parse(c.Issuer)
	if err != nil {
		return c.Issuer
	}
	return u.Host
}

// Flow is a login that was begun. It is the secret of the browser that has begun it, so that no other one ends it:
// the issuer answers with its state, puts its nonce into the token, and takes the code with its verifier alone.
type Flow struct {
	State    string `json:"state"`
	Nonce    string `json:"nonce"`
	Verifier string `json:"verifier"`
}

// NewFlow returns the flow of one login.
func NewFlow() Flow { return Flow{rand.Text(), rand.Text(), oauth2.GenerateVerifier()} }

// Address returns where the issuer asks a person who they are; CodeUnavailable when that is not known.
func (c *Client) Address(ctx context.Context, f Flow) (string, error) {
	config, _, err := c.config(ctx)
	if err != nil {
		return "", ofOperator(err)
	}
	at, err := url.Parse(config.Endpoint.AuthURL)
	issuer, _ := url.Parse(c.Issuer) // which was asked
	if err != nil || at.Host == "" || at.Scheme != "https" && at.Scheme != issuer.Scheme {
		return "", unanswered(c.Issuer, errors.New("it does not say where people log in, or not at an https address"))
	}
	return config.AuthCodeURL(f.State, oidc.Nonce(f.Nonce), oauth2.S256ChallengeOption(f.Verifier)), nil
}

// Check asks the issuer whether people can log in.
func (c *Client) Check(ctx context.Context) error {
	_, err := c.Address(ctx, Flow{})
	return err
}

// config returns the configuration of the flow, and what the issuer says of itself.
func (c *Client) config(ctx context.Context) (*oauth2.Config, *discovered, error) {
	found, err := c.verifier.discover(ctx, c.Issuer)
	if err != nil {
		return nil, nil, err
	}
	at := found.provider.Endpoint()
	at.AuthStyle = oauth2.AuthStyleInHeader // as OpenID Connect has it where an issuer says nothing
	if c.Secret == "" || len(found.Methods) > 0 && !slices.Contains(found.Methods, "client_secret_basic") {
		at.AuthStyle = oauth2.AuthStyleInParams
	}
	return &oauth2.Config{ClientID: c.ID, ClientSecret: c.Secret, Endpoint: at, RedirectURL: c.Return, Scopes: c.Scopes},
		found, nil
}

// Token returns the identity token with which an issuer answers the code of a flow, verified. The query is that of
// the address to which the issuer has sent the person back. CodeUnauthorized: it is no answer to that flow, or the
// issuer does not vouch for the person; CodeUnavailable: the issuer does not answer.
func (c *Client) Token(ctx context.Context, f Flow, query url.Values) (string, deployments.Identity, error) {
	text, i, err := c.token(ctx, f, query)
	return text, i, ofOperator(err)
}

// ofOperator is an error for people who log in: an issuer that must not be asked, they have not named.
func ofOperator(err error) error {
	if deployments.CodeOf(err) == deployments.CodeInvalid {
		return deployments.Errorf(deployments.CodeUnavailable, "%w", err)
	}
	return err
}

func (c *Client) token(ctx context.Context, f Flow, query url.Values) (string, deployments.Identity, error) {
	var none deployments.Identity
	if f.State == "" || !same(f.State, query.Get("state")) {
		return "", none, deployments.Errorf(deployments.CodeUnauthorized, "the answer of %s is not to this login", c.Name())
	}
	config, found, err := c.config(ctx)
	if err != nil {
		return "", none, err
	}
	if named := query.Get("iss"); named != c.Issuer && (named != "" || found.Named) {
		return "", none, deployments.Errorf(deployments.CodeUnauthorized, "the answer is of another issuer than %s", c.Name())
	}
	code := query.Get("code")
	if failed := query.Get("error"); failed != "" || code == "" || len(code) > maxCode {
		return "", none, c.refused(failed)
	}
	if again, _ := c.used.ContainsOrAdd(f.State, struct{}{}); again {
		return "", none, deployments.Errorf(deployments.CodeUnauthorized, "this login was ended before: log in again")
	}
	text, err := c.exchange(ctx, config, code, f.Verifier)
	if err != nil {
		return "", none, err
	}
	i, err := c.verifier.Verify(ctx, c.Issuer, text)
	if err == nil {
		err = c.isFor(f, i)
	}
	if err != nil {
		return "", none, err
	}
	return text, i, nil
}

// exchange sends a code to the issuer, and returns the identity token that it answers with.
func (c *Client) exchange(ctx context.Context, config *oauth2.Config, code, verifier string) (string, error) {
	to, err := url.Parse(config.Endpoint.TokenURL)
	if err == nil {
		err = c.verifier.guard.Allows(to)
	}
	if err != nil {
		return "", unanswered(c.Issuer, err)
	}
	if !c.asking.TryAcquire(1) {
		return "", deployments.Errorf(deployments.CodeUnavailable, "too many people log in at once: try again")
	}
	defer c.asking.Release(1)
	ctx = oidc.ClientContext(ctx, client(c.fetch))
	given, err := config.Exchange(ctx, code, oauth2.VerifierOption(verifier))
	var refused *oauth2.RetrieveError
	switch {
	case errors.As(err, &refused) && refused.ErrorCode != "":
		return "", c.refused(refused.ErrorCode)
	case errors.As(err, &refused):
		return "", unanswered(c.Issuer, errors.New("it answers a code with "+refused.Response.Status))
	case err != nil:
		return "", unanswered(c.Issuer, err)
	}
	text, _ := given.Extra("id_token").(string)
	if text == "" {
		return "", unanswered(c.Issuer, errors.New("it answers a code without an identity token"))
	}
	return text, nil
}

// isFor reports, as CodeUnauthorized, that a token was not given to this client, for this flow.
func (c *Client) isFor(f Flow, i deployments.Identity) error {
	var nonce, party string
	_ = json.Unmarshal(i.Claims["nonce"], &nonce) // it is then another one
	_ = json.Unmarshal(i.Claims["azp"], &party)   // it is then empty
	switch {
	case !slices.Contains(i.Audiences, c.ID), len(i.Claims["azp"]) > 0 && party != c.ID:
		return unusable("it was given to another client")
	case f.Nonce == "" || !same(f.Nonce, nonce):
		return unusable("it was given for another login")
	}
	return nil
}

// errorCode is what an error of OAuth 2.0 looks like.
var errorCode = regexp.MustCompile(`^[a-z_]{1,50}$`)

// refused returns the error of a login that the issuer has refused. What else it, or somebody else, says of that is not
// shown.
func (c *Client) refused(code string) error {
	if !errorCode.MatchString(code) {
		code = "no code"
	}
	return deployments.Errorf(deployments.CodeUnauthorized, "%s has not let you in (%s)", c.Name(), code)
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
