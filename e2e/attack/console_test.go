//go:build unix

package attack

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// consolePages are those of the victim's stack, and the home.
var consolePages = []string{"/console/", "/console/organization/precious/dev",
	"/console/organization/precious/dev/resources",
	"/console/organization/precious/dev/graph", "/console/organization/precious/dev/outputs",
	"/console/organization/precious/dev/updates", "/console/organization/precious/dev/updates/1",
	"/console/organization/precious/dev/updates/1/log"}

// loggedIn is the browser of the local user at the console, and its cookie.
func (f *field) loggedIn(t *testing.T) (browser, *http.Cookie) {
	t.Helper()
	token, err := os.ReadFile(filepath.Join(filepath.Dir(f.status(t).TokenFile), "pulumi-token"))
	harness.Must(t, err)
	b := browser{Client: porttest.Browser(nil), ui: "http://" + f.status(t).PulumiAddress}
	b.Timeout = waittest.Patience
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, _ := b.login(t, strings.TrimSpace(string(token)))
	if res == nil || len(res.Cookies()) != 1 {
		t.Fatalf("the local user's login is answered %v", res)
	}
	return b, res.Cookies()[0]
}

// login sends the form of the login, with headers.
func (b browser) login(t *testing.T, token string, headers ...string) (*http.Response, string) {
	t.Helper()
	return b.ask(t, http.MethodPost, b.ui+"/console/login", url.Values{"token": {token}}.Encode(),
		append(headers, "Content-Type: application/x-www-form-urlencoded")...)
}

// consoleOfOthers has a page of another site use the console, in the browser of the user who is logged in there, and
// somebody without a session read it.
func consoleOfOthers(t *testing.T, f *field) {
	b, cookie := f.loggedIn(t)
	session := "Cookie: " + cookie.Name + "=" + cookie.Value
	if cookie.SameSite != http.SameSiteStrictMode || !cookie.HttpOnly || cookie.Path != "/console" {
		t.Errorf("the cookie is %v", cookie)
	}
	for _, path := range consolePages {
		res, text := b.ask(t, http.MethodGet, b.ui+path, "", session)
		if res == nil || res.StatusCode != http.StatusOK || !strings.Contains(text, "precious") {
			t.Fatalf("%s is not shown to its user: %v %s", path, res, text)
		}
		noSecrets(t, path, text)
		if frames := res.Header.Get("Content-Security-Policy"); !strings.Contains(frames, "frame-ancestors 'none'") {
			t.Errorf("%s is shown in frames: %q", path, frames)
		}
		for _, way := range [][]string{
			{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty", "Origin: " + evil, session},
			{"Sec-Fetch-Site: same-site", "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: script", session},
			{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe", session},
			{"Sec-Fetch-Site: cross-site", "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document"}, // no cookie is sent so
			{"Host: evil.example"}, {},
		} {
			res, text := b.ask(t, http.MethodGet, b.ui+path, "", way...)
			if res == nil || strings.Contains(text, "precious-") || strings.Contains(text, "Resources") ||
				res.Header.Get("Access-Control-Allow-Origin") != "" {
				t.Errorf("%s is answered %v by way of %q: %s", path, res, way, text)
			}
		}
	}
	for _, headers := range [][]string{{"Sec-Fetch-Site: cross-site"}, {"Sec-Fetch-Site: same-site"}, {"Origin: " + evil},
		{"Origin: null"}} {
		for _, path := range []string{"/console/login", "/console/logout"} {
			res, _ := b.ask(t, http.MethodPost, b.ui+path, "token=x", append(headers, session)...)
			if res == nil || res.StatusCode != http.StatusForbidden || len(res.Cookies()) > 0 {
				t.Errorf("%s is answered %v with %q", path, res, headers)
			}
		}
	}
	for _, path := range consolePages { // nothing is changed by a page
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete, http.MethodPatch} {
			if res, _ := b.ask(t, method, b.ui+path, "{}", session); res == nil || res.StatusCode < 400 {
				t.Errorf("%s %s is answered %v", method, path, res)
			}
		}
	}
}

// forgedSession logs in with tokens of others, and makes up and changes cookies.
func forgedSession(t *testing.T, f *field) {
	b, cookie := f.loggedIn(t)
	rival := f.holder(t, "rival-reader", "--role", "admin", "--organization", "rival")
	for what, token := range map[string]string{"of another organization": rival.token, "that is a guess": "dctl.local.x",
		"that is none": "", "that is a cookie": cookie.Value} {
		if res, text := b.login(t, token); res == nil || res.StatusCode < 400 || len(res.Cookies()) > 0 {
			t.Errorf("a token %s is answered %v: %s", what, res, text)
		}
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookie.Value)
	harness.Must(t, err)
	forged := []string{"", "x", cookie.Value + "A", base64.RawURLEncoding.EncodeToString([]byte(`{"token":"x"}`)),
		cookie.Value[:len(cookie.Value)/2], strings.Repeat("A", 3000)}
	for i := 0; i < len(sealed); i += size(7, 1) {
		changed := bytes.Clone(sealed)
		changed[i] ^= 1
		forged = append(forged, base64.RawURLEncoding.EncodeToString(changed))
	}
	reads := func(value string) bool {
		res, text := b.ask(t, http.MethodGet, b.ui+consolePages[1], "", "Cookie: "+cookie.Name+"="+value)
		return res == nil || res.StatusCode == http.StatusOK || strings.Contains(text, "precious-")
	}
	for _, value := range forged {
		if reads(value) {
			t.Errorf("a forged cookie opens a page: %s", value)
		}
	}
	if res, _ := b.ask(t, http.MethodGet, b.ui+"/api/user", "", "Authorization: token "+cookie.Value); res == nil ||
		res.StatusCode != http.StatusUnauthorized {
		t.Errorf("the cookie opens the API: %v", res)
	}
}
