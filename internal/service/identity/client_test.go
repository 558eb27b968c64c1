package identity

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/deployctl/deployctl/internal/sys/outbound"
)

const back = "https://console.example/console/login/return"

// clientOf returns the registered client of a provider.
func clientOf(p *identitytest.Provider) *Client {
	return New(local).Client(Registration{Issuer: p.URL, ID: p.ID, Secret: p.Secret, Scopes: []string{"openid", "email"},
		Return: p.Return})
}

// answered goes to the provider as a browser does, and returns what that answers to a flow.
func answered(t *testing.T, c *Client, a Flow) url.Values {
	t.Helper()
	at, err := c.Address(t.Context(), a)
	if err != nil {
		t.Fatal(err)
	}
	to := identitytest.Returned(t, at)
	if !strings.HasPrefix(to.String(), back+"?") {
		t.Fatalf("the provider leads to %s", to)
	}
	query, err := url.ParseQuery(to.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	return query
}

func TestTheAnswerOfAProviderCountsForTheLoginThatWasBegunAlone(t *testing.T) {
	p := identitytest.NewProvider(t, back)
	c := clientOf(p)
	for name, change := range map[string]func(f *Flow, query url.Values){
		"of another browser":                   func(f *Flow, _ url.Values) { *f = NewFlow() },
		"of a browser that has begun none":     func(f *Flow, query url.Values) { *f = Flow{}; query.Del("state") },
		"without its state":                    func(_ *Flow, query url.Values) { query.Del("state") },
		"with a code that was taken elsewhere": func(f *Flow, _ url.Values) { f.Verifier = NewFlow().Verifier },
		"for a token of another login":         func(f *Flow, _ url.Values) { f.Nonce = NewFlow().Nonce },
		"for a token of no login":              func(f *Flow, _ url.Values) { f.Nonce = "" },
		"of another issuer":                    func(_ *Flow, query url.Values) { query.Set("iss", "https://evil.example") },
		"of nobody":                            func(_ *Flow, query url.Values) { query.Del("iss") },
		"without a code":                       func(_ *Flow, query url.Values) { query.Del("code") },
		"with a guess":                         func(_ *Flow, query url.Values) { query.Set("code", "guess") },
		"with a long code": func(_ *Flow, query url.Values) {
			query.Set("code", strings.Repeat("x", maxCode+1))
		},
		"with an error": func(_ *Flow, query url.Values) { query.Set("error", "access_denied") },
		"with a text":   func(_ *Flow, query url.Values) { query.Set("error", "Call 555, we must check your account") },
	} {
		a := NewFlow()
		query := answered(t, c, a)
		change(&a, query)
		text, i, err := c.Token(t.Context(), a, query)
		if deployments.CodeOf(err) != deployments.CodeUnauthorized || text != "" ||
			strings.Contains(err.Error(), "Call 555") || strings.Contains(err.Error(), "<b>") {
			t.Errorf("an answer %s: %q, %+v, %v", name, text, i, err)
		}
	}
	a := NewFlow()
	query := answered(t, c, a)
	text, i, err := c.Token(t.Context(), a, query)
	if err != nil || i.Subject != "ann" || i.Issuer != p.URL || text == "" {
		t.Errorf("the right answer: %+v, %v", i, err)
	}
	if _, _, err := c.Token(t.Context(), a, query); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("the same answer once more: %v", err)
	}
}

func TestATokenThatIsForAnotherClientOrOfAnotherTimeLogsNobodyIn(t *testing.T) {
	p := identitytest.NewProvider(t, back)
	c := clientOf(p)
	at := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	for name, claims := range map[string]map[string]any{
		"for another client":            {"sub": "ann", "aud": "another", "azp": "another"},
		"for another client alone":      {"sub": "ann", "aud": "another", "azp": nil},
		"that another client asked for": {"sub": "ann", "aud": []string{"console", "another"}, "azp": "another"},
		"with an odd party":             {"sub": "ann", "azp": []string{"console"}},
		"with an old nonce":             {"sub": "ann", "nonce": "of-yesterday"},
		"without a nonce":               {"sub": "ann", "nonce": nil},
		"with another kind of nonce":    {"sub": "ann", "nonce": map[string]any{"a": "b"}},
		"of nobody":                     {"sub": ""},
		"of another issuer":             {"sub": "ann", "iss": "https://evil.example"},
		"that has expired":              {"sub": "ann", "exp": at(-time.Minute)},
		"of a clock that is wrong":      {"sub": "ann", "iat": at(time.Hour), "exp": at(2 * time.Hour)},
	} {
		p.Is(claims)
		a := NewFlow()
		_, i, err := c.Token(t.Context(), a, answered(t, c, a))
		if deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("a token %s: %+v, %v", name, i, err)
		}
	}
	for name, claims := range map[string]map[string]any{
		"of a clock that is half a minute ahead": {"sub": "ann", "iat": at(30 * time.Second), "exp": at(10 * time.Minute)},
		"for several":                            {"sub": "ann", "aud": []string{"another", "console"}},
		"without a party":                        {"sub": "ann", "azp": nil},
	} {
		p.Is(claims)
		a := NewFlow()
		if _, _, err := c.Token(t.Context(), a, answered(t, c, a)); err != nil {
			t.Errorf("a token %s: %v", name, err)
		}
	}
}

func TestAClientShowsItsSecretInTheWayThatTheProviderTakes(t *testing.T) {
	for name, methods := range map[string][]string{"in a header, by default": nil,
		"in a header": {"client_secret_basic"}, "in the form": {"client_secret_post"}, "not at all": {"none"},
		"not at all, by default": nil} {
		p := identitytest.NewProvider(t, back)
		if methods != nil {
			p.Says("token_endpoint_auth_methods_supported", methods)
		}
		if strings.HasPrefix(name, "not at all") {
			p.Secret = ""
		}
		c, a := clientOf(p), NewFlow()
		if _, _, err := c.Token(t.Context(), a, answered(t, c, a)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		c.Secret = "wrong"
		a = NewFlow()
		_, _, err := c.Token(t.Context(), a, answered(t, c, a))
		if deployments.CodeOf(err) != deployments.CodeUnauthorized || !strings.Contains(err.Error(), "invalid_client") {
			t.Errorf("%s, with a wrong secret: %v", name, err)
		}
	}
}

func TestAProviderThatLeadsElsewhereOrFillsMemoryLogsNobodyIn(t *testing.T) {
	target := identitytest.NewProvider(t, back)
	for name, change := range map[string]func(*identitytest.Provider){
		"a script for a page":   func(p *identitytest.Provider) { p.Says("authorization_endpoint", "javascript:alert(1)") },
		"no web page":           func(p *identitytest.Provider) { p.Says("authorization_endpoint", "ftp://127.0.0.1/a") },
		"a server without TLS":  func(p *identitytest.Provider) { p.Says("token_endpoint", "http://idp.example/token") },
		"no page":               func(p *identitytest.Provider) { p.Says("authorization_endpoint", "") },
		"a path for a page":     func(p *identitytest.Provider) { p.Says("authorization_endpoint", "/authorize") },
		"a server of the cloud": func(p *identitytest.Provider) { p.Says("token_endpoint", "http://169.254.169.254/token") },
		"a private server":      func(p *identitytest.Provider) { p.Says("token_endpoint", "https://10.0.0.1/token") },
		"no server":             func(p *identitytest.Provider) { p.Says("token_endpoint", "") },
		"a redirect": func(p *identitytest.Provider) {
			p.Serve("/token", http.RedirectHandler(target.URL+"/token", http.StatusTemporaryRedirect).ServeHTTP)
		},
		"an endless answer": func(p *identitytest.Provider) {
			p.Serve("/token", func(w http.ResponseWriter, r *http.Request) {
				for r.Context().Err() == nil {
					if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
						return
					}
				}
			})
		},
		"a page that says no": func(p *identitytest.Provider) {
			p.Serve("/token", func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, strings.Repeat("of the inner network", 1000), http.StatusBadGateway)
			})
		},
		"no identity token": func(p *identitytest.Provider) {
			p.Serve("/token", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				_, _ = io.WriteString(w, `{"access_token":"x","token_type":"Bearer"}`)
			})
		},
	} {
		p := identitytest.NewProvider(t, back)
		change(p)
		c := clientOf(p)
		c.verifier = New(&outbound.Guard{What: "keys of issuers are taken", Setting: "trust.private-hosts",
			Hosts: []string{"127.0.0.1"}})
		c.fetch = c.verifier.fetcher(codesPerSecond, codeBurst)
		a := NewFlow()
		at, err := c.Address(t.Context(), a)
		if err == nil {
			query, _ := url.ParseQuery(identitytest.Returned(t, at).RawQuery) // the provider has written it
			_, _, err = c.Token(t.Context(), a, query)
		}
		if deployments.CodeOf(err) != deployments.CodeUnavailable || len(err.Error()) > 2*longestReason ||
			strings.HasSuffix(name, "TLS") && !strings.Contains(err.Error(), "without TLS only from this machine") {
			t.Errorf("%s: %v", name, err)
		}
		p.CloseClientConnections()
	}
}

func TestALoginIsGoodForOneCode(t *testing.T) {
	p := identitytest.NewProvider(t, back)
	c, sent := clientOf(p), 0
	p.Serve("/token", func(w http.ResponseWriter, _ *http.Request) {
		sent++
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":"invalid_grant"}`)
	})
	a := NewFlow()
	for range 3 {
		_, _, err := c.Token(t.Context(), a, url.Values{"state": {a.State}, "iss": {p.URL}, "code": {"guess"}})
		if deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("a guess is answered %v", err)
		}
	}
	if sent != 1 {
		t.Errorf("%d codes were sent", sent)
	}
}

func TestCodesAreSentToAProviderOnlySoOften(t *testing.T) {
	p := identitytest.NewProvider(t, back)
	c, now := clientOf(p), time.Now()
	c.verifier.now = func() time.Time { return now }
	c.fetch = c.verifier.fetcher(codesPerSecond, codeBurst)
	for i := 0; ; i++ {
		a := NewFlow()
		_, _, err := c.Token(t.Context(), a, url.Values{"state": {a.State}, "iss": {p.URL}, "code": {"guess"}})
		if deployments.CodeOf(err) == deployments.CodeUnavailable && i == codeBurst {
			return
		}
		if i == codeBurst || deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Fatalf("code %d: %v", i, err)
		}
	}
}

// tripper answers requests in the place of a server.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// silent is a server that does not answer.
func silent(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func TestAProviderThatDoesNotAnswerHoldsNobodyForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(local)
		c := v.Client(Registration{Issuer: "https://slow.example", ID: "console", Return: back})
		asked := 0
		v.issuer(c.Issuer).fetch.next = tripper(func(r *http.Request) (*http.Response, error) {
			asked++
			return silent(r)
		})
		took := func(tries int) time.Duration {
			began := time.Now()
			var all sync.WaitGroup
			for range tries {
				all.Go(func() {
					if err := c.Check(t.Context()); deployments.CodeOf(err) != deployments.CodeUnavailable {
						t.Errorf("it is answered %v", err)
					}
				})
			}
			all.Wait()
			return time.Since(began)
		}
		if d := took(100); d > patience || asked != 1 {
			t.Errorf("100 logins waited for %s, and the provider was asked %d times", d, asked)
		}
		if d := took(100); d > 0 || asked != 1 {
			t.Errorf("100 later ones waited for %s, and the provider was asked %d times", d, asked)
		}
		time.Sleep(failedFor)
		v.issuer(c.Issuer).fetch.next = tripper(func(r *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}},
				Body: io.NopCloser(strings.NewReader(`{"issuer":"https://slow.example","jwks_uri":"https://slow.example/keys",` +
					`"authorization_endpoint":"https://slow.example/a","token_endpoint":"https://slow.example/t"}`))}, nil
		})
		if err := c.Check(t.Context()); err != nil {
			t.Errorf("once it answers: %v", err)
		}
		c.fetch.next = tripper(silent)
		began, a := time.Now(), NewFlow()
		_, _, err := c.Token(t.Context(), a, url.Values{"state": {a.State}, "code": {"x"}})
		if d := time.Since(began); deployments.CodeOf(err) != deployments.CodeUnavailable || d > patience {
			t.Errorf("a code without an answer: %v, after %s", err, d)
		}
	})
}

func TestWhoLeavesWaitsForNoProvider(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v := New(local)
		c := v.Client(Registration{Issuer: "https://slow.example", ID: "console", Return: back})
		v.issuer(c.Issuer).fetch.next = tripper(silent)
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() { left <- c.Check(ctx) }()
		synctest.Wait()
		leave()
		began := time.Now()
		if err := <-left; err == nil || errors.Is(err, errOften) || time.Since(began) > 0 {
			t.Errorf("it is answered %v, after %s", err, time.Since(began))
		}
		time.Sleep(patience) // the question ends
	})
}
