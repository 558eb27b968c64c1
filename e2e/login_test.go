package e2e

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// frontDesk is a service whose console people log in to with an identity provider, of which acme trusts the people.
type frontDesk struct {
	reader
	provider *identitytest.Provider
	admin    *project
	settings []string // of serve
}

// newFrontDesk starts a service on the shared home's servers with a state of its own, whose provider asks people at a
// path.
func newFrontDesk(t *testing.T, prefix, asks string) frontDesk {
	t.Helper()
	h := running(t)
	good, _ := h.parts(t)
	// To a browser, the provider at 127.0.0.1 is another site.
	api, pulumi := porttest.Address(t), strings.Replace(porttest.Address(t), "127.0.0.1", "localhost", 1)
	d := frontDesk{reader: reader{newBrowser(t), "http://" + pulumi}}
	d.provider = identitytest.NewProvider(t, d.base+"/console/login/return")
	d.provider.Says("authorization_endpoint", d.provider.URL+asks)
	d.provider.Serve("/person", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = fmt.Fprintf(w, `<!doctype html><a id="allow" href="/authorize?%s">Yes</a>`, html.EscapeString(r.URL.RawQuery))
	})
	d.settings = append(h.namespaced(t, good, strings.TrimSuffix(prefix, "/")), "DEPLOYCTL_S3_PREFIX="+prefix,
		"DEPLOYCTL_LISTEN="+api, "DEPLOYCTL_PULUMI_LISTEN="+pulumi, "DEPLOYCTL_TRUST_PRIVATE_HOSTS=127.0.0.1",
		"DEPLOYCTL_LOGIN_ISSUER="+d.provider.URL, "DEPLOYCTL_LOGIN_ADDRESS="+d.base,
		"DEPLOYCTL_LOGIN_CLIENT_ID="+d.provider.ID, "DEPLOYCTL_LOGIN_CLIENT_SECRET="+d.provider.Secret)
	served := h.in(t.TempDir(), d.settings...).start(t, "serve")
	served.says(t, "serving")
	t.Cleanup(func() {
		served.interrupt(t)
		served.mustEnd(t, 0)
	})
	first := h.in(t.TempDir(), "DEPLOYCTL_SERVER="+api, "DEPLOYCTL_TOKEN=the-first-token")
	root := strings.TrimSpace(first.must(t, "token", "create", "root", "--role", "admin", "--organization", "*"))
	d.admin = h.in(t.TempDir(), "DEPLOYCTL_SERVER="+api, "DEPLOYCTL_TOKEN="+root)
	d.admin.must(t, "stack", "init", "acme/shop/dev")
	d.admin.must(t, "trust", "add", "people", "--organization", "acme", "--issuer", d.provider.URL, "--audience",
		d.provider.ID, "--claim", "email=*@acme.example", "--role", "viewer")
	return d
}

var goesOn = regexp.MustCompile(`http-equiv="refresh" content="0; url=([^"]*)"`)

// next returns where a page leads by itself.
func next(t *testing.T, page string) string {
	t.Helper()
	to := goesOn.FindStringSubmatch(page)
	if to == nil {
		t.Fatalf("the page leads nowhere: %s", page)
	}
	return html.UnescapeString(to[1])
}

func TestPeopleLogInToTheConsoleWithTheirIdentityProvider(t *testing.T) {
	t.Parallel()
	d := newFrontDesk(t, "login/", "/authorize")
	if form := d.get(t, http.StatusOK, "/console/login"); !strings.Contains(form, "Log in with 127.0.0.1:") {
		t.Errorf("the page of the login is %s", form)
	}
	res, err := d.PostForm(d.base+"/console/login/provider", url.Values{"to": {"/console/acme/shop/dev"}})
	must(t, err)
	page, err := io.ReadAll(res.Body)
	must(t, err)
	must(t, res.Body.Close())
	back := identitytest.Returned(t, next(t, string(page)))
	end := d.get(t, http.StatusOK, strings.TrimPrefix(back.String(), d.base))
	if to := next(t, end); to != "/console/acme/shop/dev" {
		t.Errorf("the login leads to %s", to)
	}
	if stack := d.get(t, http.StatusOK, "/console/acme/shop/dev"); !strings.Contains(stack, "shop/dev") {
		t.Errorf("the page of the stack is %s", stack)
	}
	if log := d.admin.must(t, "audit", "--organization", "acme", "--json"); !strings.Contains(log, `"ann"`) ||
		!strings.Contains(log, "trust=acme/people") {
		t.Errorf("the audit log has %s", log)
	}
	d.admin.must(t, "trust", "rm", "people", "--organization", "acme")
	eventually(t, "without the trust, the session has ended", func() bool {
		res, err := d.Get(d.base + "/console/acme/shop/dev")
		must(t, err)
		must(t, res.Body.Close())
		return res.StatusCode == http.StatusSeeOther
	})
	check := func(changes ...string) *ran {
		return running(t).in(t.TempDir(), slices.Concat(d.settings, []string{"DEPLOYCTL_LISTEN=" + porttest.Address(t),
			"DEPLOYCTL_PULUMI_LISTEN=" + porttest.Address(t)}, changes)...).run(t, "serve", "--check")
	}
	if ran := check(); !strings.Contains(ran.said(), "with 127.0.0.1:") {
		t.Errorf("the check says %s", ran.said())
	}
	if ran := check("DEPLOYCTL_LOGIN_CLIENT_ID="); !strings.Contains(ran.said(), "also needs login.client-id") {
		t.Errorf("without a client, the check says %s", ran.said())
	}
	if ran := check("DEPLOYCTL_LOGIN_ISSUER=" + d.provider.URL + "/other"); !strings.Contains(ran.said(),
		"people can log in to the console with tokens only") {
		t.Errorf("of another issuer, the check says %s", ran.said())
	}
}

// TestPeopleLogInWithTheirIdentityProviderInABrowser shows that what a browser does with cookies, forms and redirects
// of several sites lets them in: the page of the provider leads back, and it is one of another site.
func TestPeopleLogInWithTheirIdentityProviderInABrowser(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	d := newFrontDesk(t, "login-browser/", "/person")
	b := openPage(t, d.base+"/console/acme/shop/dev")
	b.await(t, "document.activeElement.textContent.startsWith('Log in with')", "true")
	b.shoot(t, "provider", 900, 460, "dark")
	provider := func() {
		b.text(t, "document.querySelector('#provider').requestSubmit()")
		b.await(t, "document.querySelector('#allow').textContent", "Yes")
		b.text(t, "document.querySelector('#allow').click()")
	}
	provider()
	b.await(t, "document.querySelector('h1').textContent", "shop/dev")
	if at := b.text(t, "location.pathname + location.search + document.cookie"); at != "/console/acme/shop/dev" {
		t.Errorf("the login has led to %s", at)
	}
	b.text(t, "document.querySelector('.user').requestSubmit()")
	b.await(t, "document.querySelector('h1').textContent", "Log in")
	b.text(t, "document.querySelector('#organization').value = 'umbrella'")
	provider()
	b.await(t, "document.querySelector('.error').textContent.includes('no trust of the organization umbrella')", "true")
}
