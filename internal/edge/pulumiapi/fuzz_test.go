package pulumiapi

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// FuzzRequests sends requests of any form. Each is answered: with what the route demands, with an error of the client,
// or, where the bench has no Temporal, with an error of the service; never with nothing, and never without the headers.
func FuzzRequests(f *testing.F) {
	for i, r := range routes() {
		f.Add(uint(i), sampled(r), "token admin", "Content-Encoding", "gzip", []byte(`{"a":1}`))
	}
	f.Add(uint(0), "/api/orgs/acme/auditlogs?continuationToken=MSB4", "token admin", "Accept", "x", []byte("\x1f\x8b"))
	b := newBench(f)
	all := routes()
	f.Fuzz(func(t *testing.T, which uint, path, authorization, name, value string, body []byte) {
		r := all[which%uint(len(all))]
		if asksTemporal(r.method, path) {
			return
		}
		target, err := url.ParseRequestURI(path)
		if err != nil || !strings.HasPrefix(path, "/") {
			return // net/http refuses it
		}
		request := httptest.NewRequest(r.method, "/", bytes.NewReader(body))
		request.URL, request.RequestURI = target, path
		request.Header.Set("Authorization", authorization)
		request.Header.Set(name, value)
		if authorization != "token admin" && authorization != "token viewer" {
			request.Header.Del("Authorization") // wrong ones are slowed
			if r.by == byIdentity || r.by == byToken || r.by == byLease {
				return
			}
		}
		w := httptest.NewRecorder()
		b.handler.ServeHTTP(w, request)
		if w.Code == http.StatusInternalServerError {
			t.Errorf("%s %q is answered 500: %s", r.method, path, w.Body)
		}
		if w.Header().Get("X-Content-Type-Options") != "nosniff" || w.Header().Get(requestHeader) == "" ||
			!strings.Contains(w.Header().Get("Content-Security-Policy"), "frame-ancestors 'none'") {
			t.Errorf("%s %q is answered without the headers: %v", r.method, path, w.Header())
		}
	})
}
