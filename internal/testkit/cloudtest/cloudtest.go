// Package cloudtest has fakes of the endpoints at which AWS, Google and Azure give credentials for workload tokens, and
// the clouds' own libraries that ask them.
//
// A fake is as careful as the cloud: it reads discovery and keys from the issuer, and checks signature, issuer,
// audience, times and subject of a token before it answers.
package cloudtest

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
)

// What the clouds of tests know.
const (
	Role           = "arn:aws:iam::123456789012:role/deploy"
	GoogleProvider = "projects/12/locations/global/workloadIdentityPools/pool/providers/deployctl"
	ServiceAccount = "deploy@shop.iam.gserviceaccount.com"
	Tenant         = "01234567-89ab-cdef-0123-456789abcdef"
	Client         = "fedcba98-7654-3210-fedc-ba9876543210"
)

// Clouds are the fakes, at one address.
type Clouds struct {
	*httptest.Server
	issuer string
	keys   *http.Client

	mu      sync.Mutex
	trusted string
	now     func() time.Time
	refused []string
}

// New starts fakes that trust an issuer, which they reach at another address, for one subject.
func New(t testing.TB, issuer, at, subject string) *Clouds {
	t.Helper()
	c := &Clouds{issuer: issuer, keys: &http.Client{Transport: Via(at)}, trusted: subject, now: time.Now}
	mux := http.NewServeMux()
	mux.HandleFunc("/", c.aws)
	mux.HandleFunc("/v1/token", c.google)
	mux.HandleFunc("/v1/projects/", c.impersonate)
	mux.HandleFunc("/"+Tenant+"/v2.0/.well-known/openid-configuration", azureDiscovery)
	mux.HandleFunc("/"+Tenant+"/oauth2/v2.0/token", c.azure)
	c.Server = httptest.NewServer(mux)
	t.Cleanup(c.Close)
	return c
}

// Trust has the clouds trust another subject alone.
func (c *Clouds) Trust(subject string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trusted = subject
}

// At has the clouds go by another clock.
func (c *Clouds) At(now func() time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// Refused returns why tokens were refused.
func (c *Clouds) Refused() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.Join(c.refused, "\n")
}

// Claims are what a token says of an update, beside what every token says.
type Claims struct {
	Organization, Project, Stack, Kind, Profile, Update string
}

// Verify checks a token for an audience, and returns its subject. The keys are asked for anew each time.
func (c *Clouds) Verify(r *http.Request, token, audience string) (subject string, claims Claims, err error) {
	c.mu.Lock()
	trusted, now := c.trusted, c.now
	c.mu.Unlock()
	ctx := oidc.ClientContext(r.Context(), c.keys)
	provider, err := oidc.NewProvider(ctx, c.issuer)
	if err != nil {
		return "", claims, err
	}
	verified, err := provider.VerifierContext(ctx, &oidc.Config{ClientID: audience, Now: now}).Verify(ctx, token)
	if err != nil {
		return "", claims, err
	}
	if verified.Subject != trusted {
		return "", claims, fmt.Errorf("the subject %q is not trusted, but %q", verified.Subject, trusted)
	}
	return verified.Subject, claims, verified.Claims(&claims)
}

// verified is Verify for an endpoint, which answers that a token is refused.
func (c *Clouds) verified(w http.ResponseWriter, r *http.Request, token, audience string) (subject string, ok bool) {
	subject, claims, err := c.Verify(r, token, audience)
	want := fmt.Sprintf("stack:%s/%s/%s:%s", claims.Organization, claims.Project, claims.Stack, claims.Kind)
	if err == nil && want != subject {
		err = fmt.Errorf("the claims are of %s, and the subject is %s", want, subject)
	}
	if err != nil {
		c.mu.Lock()
		c.refused = append(c.refused, err.Error())
		c.mu.Unlock()
		w.WriteHeader(http.StatusBadRequest)
	}
	return subject, err == nil
}

// aws is AssumeRoleWithWebIdentity of STS. The id of the key that it gives says for whom.
func (c *Clouds) aws(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("Action") != "AssumeRoleWithWebIdentity" || r.FormValue("RoleArn") != Role ||
		len(r.FormValue("RoleSessionName")) < 2 {
		http.Error(w, "no such role", http.StatusBadRequest)
		return
	}
	subject, ok := c.verified(w, r, r.FormValue("WebIdentityToken"), "sts.amazonaws.com")
	if !ok {
		return
	}
	type credentials struct{ AccessKeyId, SecretAccessKey, SessionToken, Expiration string }
	type result struct{ Credentials credentials }
	w.Header().Set("Content-Type", "text/xml")
	_ = xml.NewEncoder(w).Encode(struct { // its reader has gone
		XMLName                         xml.Name `xml:"https://sts.amazonaws.com/doc/2011-06-15/ AssumeRoleWithWebIdentityResponse"`
		AssumeRoleWithWebIdentityResult result
	}{AssumeRoleWithWebIdentityResult: result{credentials{"ASIA " + subject, "secret", "session",
		time.Now().Add(time.Hour).UTC().Format(time.RFC3339)}}})
}

func (c *Clouds) google(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("audience") != "//iam.googleapis.com/"+GoogleProvider ||
		r.FormValue("subject_token_type") != "urn:ietf:params:oauth:token-type:jwt" {
		http.Error(w, "no such provider", http.StatusBadRequest)
		return
	}
	if subject, ok := c.verified(w, r, r.FormValue("subject_token"), "https://iam.googleapis.com/"+GoogleProvider); ok {
		answer(w, map[string]any{"access_token": "federated " + subject, "token_type": "Bearer", "expires_in": 3600,
			"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"})
	}
}

// impersonate gives the token of a service account for one of the pool.
func (c *Clouds) impersonate(w http.ResponseWriter, r *http.Request) {
	_, subject, ok := strings.Cut(r.Header.Get("Authorization"), "Bearer federated ")
	if !ok || !strings.HasSuffix(r.URL.Path, "/serviceAccounts/"+ServiceAccount+":generateAccessToken") {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	answer(w, map[string]any{"accessToken": "account " + subject,
		"expireTime": time.Now().Add(time.Hour).UTC().Format(time.RFC3339)})
}

// microsoft is the origin of Azure's logins.
const microsoft = "https://login.microsoftonline.com/" + Tenant

func azureDiscovery(w http.ResponseWriter, _ *http.Request) {
	answer(w, map[string]any{"issuer": microsoft + "/v2.0", "token_endpoint": microsoft + "/oauth2/v2.0/token",
		"authorization_endpoint": microsoft + "/oauth2/v2.0/authorize"})
}

func (c *Clouds) azure(w http.ResponseWriter, r *http.Request) {
	if r.FormValue("client_id") != Client ||
		r.FormValue("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer" {
		http.Error(w, `{"error":"invalid_client"}`, http.StatusBadRequest)
		return
	}
	if subject, ok := c.verified(w, r, r.FormValue("client_assertion"), "api://AzureADTokenExchange"); ok {
		answer(w, map[string]any{"access_token": "azure " + subject, "token_type": "Bearer", "expires_in": 3600})
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v) // its reader has gone
}

// Via sends every request to one address, whatever host it names, as a proxy in front of that does.
func Via(address string) http.RoundTripper { return via(address) }

type via string

func (v via) RoundTrip(r *http.Request) (*http.Response, error) {
	to, err := url.Parse(string(v))
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.URL.Scheme, r.URL.Host = to.Scheme, to.Host
	return (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
}
