package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzPages asks for pages of any path, with any query, and logs in to be led anywhere. No answer is one of a failed
// service, none is without its headers, none has markup of the request, and none leads to another site.
func FuzzPages(f *testing.F) {
	for _, path := range append([]string{"/console/?organization=acme&after=a/b/c", "/console/login?to=//evil.example",
		"/console/acme/shop/dev/resources?urn=" + url.QueryEscape(hostile),
		"/console/acme/shop/dev/updates?page=99999999999999999999",
		"/console/acme/shop/dev/graph?find=%00%ff", "/console/acme/shop/dev/previews/..%2f..", "/console/%2e%2e/api"},
		paths...) {
		f.Add(path, "Sec-Fetch-Site", "same-origin", "/console/acme/shop/dev")
	}
	b := newBench(f)
	b.succeeded("1", said(1, "info", "", "hello"))
	b.service.version, b.service.deployment = 1, stateOf(f, map[string]any{"a": "b"}, thing("one"), thing("two", "one"))
	viewer := b.login("viewer")
	f.Fuzz(func(t *testing.T, path, name, value, to string) {
		target, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return // net/http refuses it
		}
		get := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		get.URL, get.RequestURI = target, path
		form := url.Values{"token": {"viewer"}, "to": {to}}
		post := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/console/login",
			strings.NewReader(form.Encode()))
		for _, r := range []*http.Request{get, post} {
			r.Header.Set(name, value)
			r.AddCookie(&http.Cookie{Name: sessionCookie, Value: viewer})
			w := httptest.NewRecorder()
			b.console.ServeHTTP(w, r)
			if w.Code == http.StatusInternalServerError || w.Header().Get("X-Content-Type-Options") != "nosniff" ||
				!strings.HasPrefix(w.Header().Get("Content-Security-Policy"), "default-src 'none'") {
				t.Errorf("%s %q is answered %d, %v: %s", r.Method, path, w.Code, w.Header(), w.Body)
			}
			if to := w.Header().Get("Location"); to != "" && (!strings.HasPrefix(to, Root) || strings.Contains(to, "\\")) {
				t.Errorf("%s %q leads to %q", r.Method, path, to)
			}
			harmless(t, path, w.Body.String())
		}
	})
}
