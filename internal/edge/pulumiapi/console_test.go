package pulumiapi

import (
	"io"
	"net/http"
	"testing"
)

func TestTheLinksOfTheStockCLILeadToTheConsole(t *testing.T) {
	b := newBench(t)
	b.config.Console = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w,
			r.URL.Path)
	})
	b.serve()
	for _, path := range []string{"/acme/shop/dev", "/acme/shop/dev/updates/7", "/acme/shop/dev/previews/0123-4567"} {
		status, _, header := b.do(http.MethodGet, path+"?next=//evil.example", "", nil)
		if status != http.StatusSeeOther || header.Get("Location") != "/console"+path {
			t.Errorf("%s leads to %q, with %d", path, header.Get("Location"), status)
		}
	}
	if status, _, header := b.do(http.MethodGet, "/ann", "", nil); status != http.StatusSeeOther ||
		header.Get("Location") != "/console/" {
		t.Errorf("the page of a user leads to %q, with %d", header.Get("Location"), status)
	}
	for path, said := range map[string]string{"/": "/", "/console": "/console", "/console/": "/console/",
		"/console/acme/shop/dev": "/console/acme/shop/dev"} {
		if status, got, _ := b.do(http.MethodGet, path, "", nil); status != http.StatusOK || got != said {
			t.Errorf("%s is answered %d: %s", path, status, got)
		}
	}
	for _, path := range []string{"/console2/x", "//evil.example/shop/dev", "/acme/%2e%2e/dev", "/api/user", "/api"} {
		if status, _, header := b.do(http.MethodGet, path, "", nil); status < 400 || header.Get("Location") != "" {
			t.Errorf("%s is answered %d, %v", path, status, header)
		}
	}
}
