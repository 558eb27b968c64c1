package console

import (
	"encoding/base64"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity"
	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/deployctl/deployctl/internal/sys/outbound"
)

// desk is a bench whose console has an identity provider. Its organization acme trusts the people of acme there.
type desk struct {
	*bench
	provider *identitytest.Provider
}

func newDesk(t testing.TB) desk {
	t.Helper()
	d := desk{newBench(t), identitytest.NewProvider(t, "https://console.example"+returnPath)}
	d.trust("acme", deployments.RoleViewer)
	d.serve()
	return d
}

// serve serves the console anew, as another process of the service does.
func (d desk) serve() {
	d.Helper()
	v := identity.New(&outbound.Guard{What: "keys of issuers are taken", Setting: "trust.private-hosts", Private: true})
	d.service.Identities = v
	d.config.Provider = v.Client(identity.Registration{Issuer: d.provider.URL, ID: d.provider.ID,
		Secret: d.provider.Secret, Scopes: []string{"openid"}, Return: d.provider.Return})
	d.bench.serve()
}

// trust has an organization trust the people of acme.
func (d desk) trust(organization string, role deployments.Role) {
	d.Helper()
	err := d.store.Access.PutTrust(d.Context(), deployments.Trust{Organization: organization, Name: "people",
		Issuer: d.provider.URL, Audiences: []string{d.provider.ID}, Conditions: []deployments.Condition{
			{Claim: "email", Pattern: "*@acme.example"}, {Claim: "email_verified", Pattern: "true"}},
		Grant: deployments.Grant{Role: role, Organization: organization}})
	if err != nil {
		d.Fatal(err)
	}
}

// keptCookies returns the cookies that an answer has a browser keep, by name, without those that it has it forget.
func keptCookies(header http.Header) map[string]*http.Cookie {
	kept := map[string]*http.Cookie{}
	for _, c := range (&http.Response{Header: header}).Cookies() {
		if c.MaxAge > 0 {
			kept[c.Name] = c
		}
	}
	return kept
}

var leadsTo = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]*)"`)

// begun begins a login, and returns the cookie of the flow and where the provider sends the browser back.
func (d desk) begun(form url.Values) (cookie string, back *url.URL) {
	d.Helper()
	status, said, header := d.send("/console/login/provider", "", form, "Sec-Fetch-Site", "same-origin")
	kept, to := keptCookies(header), leadsTo.FindStringSubmatch(said)
	c := kept[flowCookie]
	if status != http.StatusOK || len(kept) != 1 || c == nil || to == nil {
		d.Fatalf("the begin is answered %d, %v: %s", status, header, said)
	}
	if c.SameSite != http.SameSiteLaxMode || !c.HttpOnly || c.Path != "/console/login" || c.MaxAge > 600 {
		d.Errorf("the cookie of the flow is %+v", c)
	}
	return c.Value, identitytest.Returned(d, html.UnescapeString(to[1]))
}

// returned comes back from the provider, as a browser does, with the cookie of a flow.
func (d desk) returned(back *url.URL, cookie string, headers ...string) (int, string, http.Header) {
	d.Helper()
	headers = append([]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"},
		headers...)
	if cookie != "" {
		headers = append(headers, "Cookie", flowCookie+"="+cookie)
	}
	return d.do(http.MethodGet, back.RequestURI(), "", nil, headers...)
}

// logsIn logs in with the provider, and returns the cookie of the session and where the browser goes.
func (d desk) logsIn(form url.Values) (*http.Cookie, string) {
	d.Helper()
	cookie, back := d.begun(form)
	status, said, header := d.returned(back, cookie)
	session, to := keptCookies(header)[sessionCookie], leadsTo.FindStringSubmatch(said)
	if status != http.StatusOK || session == nil || to == nil {
		d.Fatalf("the return is answered %d, %v: %s", status, header, said)
	}
	return session, html.UnescapeString(to[1])
}

func TestWhoIsTrustedLogsInWithTheIdentityProvider(t *testing.T) {
	d := newDesk(t)
	form := d.shows(http.StatusOK, "/console/login?to=/console/acme/shop/dev", "")
	name := strings.TrimPrefix(d.provider.URL, "http://")
	if !strings.Contains(form, "Log in with "+name) || !strings.Contains(form, `name="token"`) ||
		strings.Count(form, `name="to" value="/console/acme/shop/dev"`) != 2 {
		t.Errorf("the page of the login is %s", form)
	}
	session, to := d.logsIn(url.Values{"to": {"/console/acme/shop/dev?a=b&c=d"}})
	if to != "/console/acme/shop/dev?a=b&c=d" {
		t.Errorf("the login leads to %s", to)
	}
	if session.SameSite != http.SameSiteStrictMode || !session.HttpOnly || session.Path != "/console" ||
		session.MaxAge < 3590 || session.MaxAge > 3600 {
		t.Errorf("the session is %+v", session)
	}
	d.shows(http.StatusOK, "/console/acme/shop/dev", session.Value)
	if e := d.audit.entries; len(e) != 1 || e[0].Method != "Tokens/CreateToken" || e[0].Organization != "acme" ||
		e[0].Identity != "ann" || e[0].Subject != "trust=acme/people" || !strings.HasPrefix(e[0].Token, "acme.people.") ||
		e[0].Refused || e[0].Code != "" {
		t.Errorf("the audit log has %+v", e)
	}
	if err := d.store.Access.RemoveTrust(t.Context(), "acme", "people"); err != nil {
		t.Fatal(err)
	}
	status, _, _ := d.do(http.MethodGet, "/console/acme/shop/dev", session.Value, nil)
	if status != http.StatusSeeOther {
		t.Errorf("without the trust, the session is answered %d", status)
	}
}

func TestASessionOfTheProviderEndsWithItsToken(t *testing.T) {
	d := newDesk(t)
	session, _ := d.logsIn(url.Values{})
	d.shows(http.StatusOK, "/console/", session.Value)
	d.console.now = func() time.Time { return time.Now().Add(time.Hour) }
	if status, _, _ := d.do(http.MethodGet, "/console/", session.Value, nil); status != http.StatusSeeOther {
		t.Errorf("after an hour, it is answered %d", status)
	}
}

func TestOnlyTheBrowserThatHasBegunALoginEndsIt(t *testing.T) {
	d := newDesk(t)
	others, _ := d.begun(nil)
	token := d.login("viewer")
	for name, cookie := range map[string]func(own string) string{
		"with none":                 func(string) string { return "" },
		"with another's":            func(string) string { return others },
		"with a forged one":         func(own string) string { return own + "A" },
		"with a session":            func(string) string { return token },
		"with two":                  func(own string) string { return own + "; " + flowCookie + "=" + others },
		"with a login that is late": func(own string) string { return own },
	} {
		own, back := d.begun(nil)
		if strings.HasSuffix(name, "is late") {
			d.console.now = func() time.Time { return time.Now().Add(flowFor) }
		}
		before := len(d.audit.entries)
		status, said, header := d.returned(back, cookie(own))
		d.console.now = time.Now
		if status != http.StatusUnauthorized || len(keptCookies(header)) > 0 || !strings.Contains(said, `name="token"`) {
			t.Errorf("a return %s is answered %d, %v: %s", name, status, header, said)
		}
		if e := d.audit.entries[before:]; len(e) != 1 || !e[0].Refused || e[0].Method != "Tokens/CreateToken" {
			t.Errorf("of a return %s the audit log has %+v", name, e)
		}
	}
	own, back := d.begun(nil)
	if status, _, header := d.returned(back, own); status != http.StatusOK || keptCookies(header)[sessionCookie] == nil {
		t.Errorf("its own return is answered %d, %v", status, header)
	}
	if status, said, header := d.returned(back, own); status != http.StatusUnauthorized || len(keptCookies(header)) > 0 {
		t.Errorf("once more, it is answered %d, %v: %s", status, header, said)
	}
}

func TestOverTLSALoginWithTheProviderIsOfThisHostAlone(t *testing.T) {
	d := newDesk(t)
	_, said, header := d.send("/console/login/provider", "", nil, "X-Forwarded-Proto", "https")
	flow := keptCookies(header)[hostPrefix+flowCookie]
	if flow == nil || flow.Path != "/" || !flow.Secure || flow.SameSite != http.SameSiteLaxMode {
		t.Fatalf("the begin is answered %v", header)
	}
	back := identitytest.Returned(d, html.UnescapeString(leadsTo.FindStringSubmatch(said)[1]))
	status, _, _ := d.returned(back, "", "X-Forwarded-Proto", "https", "Cookie", flowCookie+"="+flow.Value)
	if status != http.StatusUnauthorized {
		t.Errorf("with the cookie of a sibling, the return is answered %d", status)
	}
	status, _, header = d.returned(back, "", "X-Forwarded-Proto", "https", "Cookie", flow.Name+"="+flow.Value)
	session := keptCookies(header)[hostPrefix+sessionCookie]
	if status != http.StatusOK || session == nil || session.Path != "/" || !session.Secure {
		t.Errorf("the return is answered %d, %v", status, header)
	}
}

func TestALoginThatWasBegunIsNoSession(t *testing.T) {
	d := newDesk(t)
	own, _ := d.begun(nil)
	if status, _, _ := d.do(http.MethodGet, "/console/", own, nil); status != http.StatusSeeOther {
		t.Errorf("it is answered %d", status)
	}
	sealed, err := base64.RawURLEncoding.DecodeString(own)
	if err != nil {
		t.Fatal(err)
	}
	if text, err := d.config.Box.Open(sealed, Purpose); err == nil {
		t.Errorf("it opens as a session: %s", text)
	}
}

func TestAPersonGetsTheOrganizationThatAdmitsThem(t *testing.T) {
	d := newDesk(t)
	d.provider.Is(map[string]any{"sub": "eve", "email": "eve@evil.example", "email_verified": true})
	cookie, back := d.begun(nil)
	status, said, header := d.returned(back, cookie)
	if status != http.StatusUnauthorized || len(keptCookies(header)) > 0 || strings.Contains(said, "acme") ||
		!strings.Contains(said, "deployctl trust add") || !strings.Contains(said, "--audience console") {
		t.Errorf("who is not trusted is answered %d, %v: %s", status, header, said)
	}
	if e := d.audit.entries; len(e) != 1 || !e[0].Refused || e[0].Identity != "eve" {
		t.Errorf("the audit log has %+v", e)
	}
	d.provider.Is(map[string]any{"sub": "ann", "email": "ann@acme.example", "email_verified": false})
	cookie, back = d.begun(nil)
	if status, said, _ = d.returned(back, cookie); status != http.StatusUnauthorized {
		t.Errorf("whose address is not verified is answered %d: %s", status, said)
	}
	d.provider.Is(map[string]any{"sub": "ann", "email": "ann@acme.example", "email_verified": true})
	d.trust("initech", deployments.RoleAdmin)
	cookie, back = d.begun(url.Values{"to": {"/console/umbrella/x/y"}})
	status, said, header = d.returned(back, cookie)
	if status != http.StatusOK || len(keptCookies(header)) > 0 || !strings.Contains(said, `value="acme">`) ||
		!strings.Contains(said, `value="initech">`) || !strings.Contains(said, `name="to" value="/console/umbrella/x/y"`) {
		t.Errorf("whom two admit is answered %d: %s", status, said)
	}
	for organization, form := range map[string]url.Values{"initech": {"organization": {"initech"}},
		"acme": {"to": {"/console/acme/shop/dev"}}} {
		d.audit.entries = nil
		session, _ := d.logsIn(form)
		d.shows(http.StatusOK, "/console/", session.Value)
		if e := d.audit.entries; len(e) != 1 || e[0].Organization != organization {
			t.Errorf("%v leads into %+v", form, e)
		}
	}
	cookie, back = d.begun(url.Values{"organization": {"umbrella"}, "to": {"/console/umbrella/x/y"}})
	status, said, header = d.returned(back, cookie)
	if status != http.StatusUnauthorized || len(keptCookies(header)) > 0 || !strings.Contains(said, `value="umbrella"`) ||
		!strings.Contains(said, "no trust of the organization umbrella is for") {
		t.Errorf("an organization without a trust is answered %d: %s", status, said)
	}
	for _, name := range []string{"*", "../acme", "a b", strings.Repeat("a", 200)} {
		status, said, header := d.send("/console/login/provider", "", url.Values{"organization": {name}})
		if status != http.StatusBadRequest || len(keptCookies(header)) > 0 {
			t.Errorf("the organization %q is answered %d: %s", name, status, said)
		}
	}
}

func TestALoginWithTheProviderLeadsNowhereElse(t *testing.T) {
	d := newDesk(t)
	for _, to := range []string{"", "https://evil.example/", "//evil.example/console/", "/\\evil.example",
		"/console/..//evil.example", "javascript:alert(1)", "/api/user"} {
		if _, at := d.logsIn(url.Values{"to": {to}}); at != "/console/" {
			t.Errorf("%q leads to %q", to, at)
		}
	}
	if _, at := d.logsIn(url.Values{"to": {"/console/?a=" + strings.Repeat("&", 1900)}}); !strings.HasPrefix(at,
		"/console/") {
		t.Errorf("a long one leads to %q", at)
	}
}

func TestAPageOfAnotherSiteBeginsNoLoginAndReadsNoReturn(t *testing.T) {
	d := newDesk(t)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"}, {"Origin", "null"}} {
		status, _, header := d.send("/console/login/provider", "", nil, headers...)
		if status != http.StatusForbidden || len(header.Values("Set-Cookie")) > 0 {
			t.Errorf("a begin with %q is answered %d, %v", headers, status, header)
		}
	}
	own, back := d.begun(nil)
	for mode, dest := range map[string]string{"cors": "empty", "no-cors": "image", "navigate": "iframe"} {
		status, _, header := d.returned(back, own, "Sec-Fetch-Mode", mode, "Sec-Fetch-Dest", dest)
		if status != http.StatusForbidden || len(header.Values("Set-Cookie")) > 0 {
			t.Errorf("a return as %s, %s is answered %d, %v", mode, dest, status, header)
		}
	}
}

func TestWithoutTheProviderPeopleLogInWithTokens(t *testing.T) {
	var log strings.Builder
	d := newDesk(t)
	d.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	d.serve()
	own, back := d.begun(url.Values{"to": {"/console/acme/shop/dev"}})
	broken := func(what string, status int, said string, header http.Header) {
		t.Helper()
		if status != http.StatusServiceUnavailable || len(keptCookies(header)) > 0 ||
			!strings.Contains(said, "does not work at present") || !strings.Contains(said, `name="token"`) ||
			!strings.Contains(said, `name="to" value="/console/acme/shop/dev"`) || strings.Contains(said, "inner network") {
			t.Errorf("%s is answered %d, %v: %s", what, status, header, said)
		}
	}
	d.provider.Serve("/token", func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "of the inner network", http.StatusInternalServerError)
	})
	status, said, header := d.returned(back, own)
	broken("a return", status, said, header)
	d.provider.Close()
	d.serve()
	status, said, header = d.send("/console/login/provider", "", url.Values{"to": {"/console/acme/shop/dev"}})
	broken("a begin", status, said, header)
	if !strings.Contains(log.String(), "500 Internal") || !strings.Contains(log.String(), "connection refused") {
		t.Errorf("the log is %s", log.String())
	}
	d.shows(http.StatusOK, "/console/acme/shop/dev", d.login("viewer"))
}

func TestInReadOnlyModePeopleLogInWithTokens(t *testing.T) {
	d := newDesk(t)
	own, back := d.begun(nil)
	for kind, status := range map[deployments.ModeKind]int{deployments.ModeMaintenance: http.StatusOK,
		deployments.ModeReadOnly: http.StatusServiceUnavailable} {
		err := d.store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: kind, Reason: "the move of the bucket",
			Until: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		got, said, _ := d.send("/console/login/provider", "", nil)
		if got != status || status != http.StatusOK && !strings.Contains(said, "the move of the bucket") {
			t.Errorf("in %s mode, a begin is answered %d: %s", kind, got, said)
		}
	}
	err := d.store.Organizations.SetMode(t.Context(), deployments.Mode{Kind: deployments.ModeReadOnly,
		Reason: "the move of the bucket", Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	status, said, header := d.returned(back, own)
	if status != http.StatusServiceUnavailable || len(keptCookies(header)) > 0 || !strings.Contains(said, "read-only") {
		t.Errorf("a return is answered %d: %s", status, said)
	}
	d.shows(http.StatusOK, "/console/acme/shop/dev", d.login("viewer"))
}

func TestWithoutAProviderNoneIsOffered(t *testing.T) {
	b := newBench(t)
	if form := b.shows(http.StatusOK, "/console/login", ""); strings.Contains(form, "provider") {
		t.Errorf("the page of the login is %s", form)
	}
	b.shows(http.StatusNotFound, "/console/login/return?code=x&state=y", "")
	if status, said, _ := b.send("/console/login/provider", "", nil); status != http.StatusNotFound {
		t.Errorf("a begin is answered %d: %s", status, said)
	}
}

func TestNoSecretOfALoginWithTheProviderIsInAPageOrALog(t *testing.T) {
	var log strings.Builder
	d := newDesk(t)
	d.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	d.serve()
	own, back := d.begun(nil)
	query, err := url.ParseQuery(back.RawQuery)
	if err != nil {
		t.Fatal(err)
	}
	_, page, _ := d.returned(back, own)
	_, again, _ := d.returned(back, own)
	all := page + again + log.String() + fmt.Sprint(d.audit.entries)
	for what, secret := range map[string]string{"code": query.Get("code"), "state": query.Get("state"),
		"secret": d.provider.Secret, "token": "dctl.", "identity token": "eyJ"} {
		if secret == "" || strings.Contains(all, secret) {
			t.Errorf("the %s %q is in %s", what, secret, all)
		}
	}
}

func TestLoginsWithTheProviderThatFailAreSlowed(t *testing.T) {
	newDesk(t) // the compressor of the process must not be of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.config.Provider = identity.New(&outbound.Guard{}).Client(identity.Registration{Issuer: "https://issuer.example"})
		b.serve()
		began := time.Now()
		for range 60 {
			b.shows(http.StatusUnauthorized, "/console/login/return?code=x&state=y", "")
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("60 of them took %s", took)
		}
		b.stop()
	})
}
