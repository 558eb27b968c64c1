package identitytest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Provider is an issuer at which a person is logged in, and which sends them back to its client at once: the
// authorization code flow of OpenID Connect, with PKCE.
type Provider struct {
	*Issuer
	// ID and Secret are those of its client, and Return is where that gets its answers.
	ID, Secret, Return string
	key                Key

	mu    sync.Mutex
	who   map[string]any
	codes map[string]url.Values // what the client has asked, by the code that was answered
}

// NewProvider starts a provider on loopback. Its client gets its answers at an address.
func NewProvider(t testing.TB, back string) *Provider {
	t.Helper()
	p := &Provider{Issuer: New(t), ID: "console", Secret: "the client's & secret", Return: back, key: RSA(t, "k"),
		codes: map[string]url.Values{},
		who:   map[string]any{"sub": "ann", "email": "ann@acme.example", "email_verified": true}}
	p.Publish(p.key)
	p.Says("authorization_endpoint", p.URL+"/authorize")
	p.Says("token_endpoint", p.URL+"/token")
	p.Says("authorization_response_iss_parameter_supported", true)
	p.Serve("/authorize", p.authorize)
	p.Serve("/token", p.token)
	return p
}

// Is has another person be logged in at the provider: their claims, and changes of what it says otherwise.
func (p *Provider) Is(claims map[string]any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.who = claims
}

// authorize sends a person back with a code, if the client asks rightly.
func (p *Provider) authorize(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm() // what cannot be read is missing
	asked := r.Form
	if asked.Get("response_type") != "code" || asked.Get("client_id") != p.ID || asked.Get("redirect_uri") != p.Return ||
		!strings.Contains(" "+asked.Get("scope")+" ", " openid ") || asked.Get("state") == "" ||
		asked.Get("nonce") == "" || asked.Get("code_challenge_method") != "S256" {
		http.Error(w, "the client asks wrongly: "+r.URL.RawQuery, http.StatusBadRequest)
		return
	}
	code := rand.Text()
	p.mu.Lock()
	p.codes[code] = asked
	p.mu.Unlock()
	http.Redirect(w, r, p.Return+"?"+url.Values{"code": {code}, "state": {asked.Get("state")},
		"iss": {p.URL}}.Encode(), http.StatusFound)
}

// token gives the tokens for a code, once.
func (p *Provider) token(w http.ResponseWriter, r *http.Request) {
	id, secret, basic := r.BasicAuth()
	if basic {
		id, _ = url.QueryUnescape(id)
		secret, _ = url.QueryUnescape(secret)
	} else {
		id, secret = r.PostFormValue("client_id"), r.PostFormValue("client_secret")
	}
	methods, _ := p.said("token_endpoint_auth_methods_supported").([]string)
	wrong := map[bool]string{true: "client_secret_post", false: "client_secret_basic"}[basic]
	if basic && p.Secret == "" || slices.Contains(methods, wrong) {
		id = "a client that shows its secret in another way"
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	asked, known := p.codes[r.PostFormValue("code")]
	delete(p.codes, r.PostFormValue("code"))
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	switch {
	case id != p.ID || secret != p.Secret:
		answer(w, http.StatusUnauthorized, map[string]string{"error": "invalid_client", "error_description": "<b>no</b>"})
	case !known || r.PostFormValue("grant_type") != "authorization_code" || r.PostFormValue("redirect_uri") != p.Return ||
		asked.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(challenge[:]):
		answer(w, http.StatusBadRequest, map[string]string{"error": "invalid_grant", "error_description": "<b>no</b>"})
	default:
		now := time.Now()
		claims := map[string]any{"iss": p.URL, "aud": p.ID, "azp": p.ID, "iat": now.Unix(),
			"exp": now.Add(5 * time.Minute).Unix(), "nonce": asked.Get("nonce")}
		maps.Copy(claims, p.who)
		maps.DeleteFunc(claims, func(_ string, value any) bool { return value == nil })
		answer(w, http.StatusOK, map[string]any{"access_token": rand.Text(), "token_type": "Bearer", "expires_in": 300,
			"id_token": p.Sign(p.key, claims)})
	}
}

// Returned goes to a page of a provider as a browser does, and returns where that leads.
func Returned(t testing.TB, to string) *url.URL {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, nil)
	if err != nil {
		t.Fatal(err)
	}
	answered, err := http.DefaultTransport.RoundTrip(r) //nolint:forbidigo // to a server of the test
	if err != nil {
		t.Fatal(err)
	}
	_ = answered.Body.Close() // nothing of it is read
	at, err := answered.Location()
	if err != nil {
		t.Fatalf("the provider answers %s, and leads nowhere: %v", answered.Status, err)
	}
	return at
}
