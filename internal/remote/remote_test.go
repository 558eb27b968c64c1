package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestOneOrganizationLeavesPlacesToOthers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
	}))
	defer server.Close()
	f := New(nil, true)
	var held []*Body
	for range share {
		b, err := f.Open(t.Context(), "one", server.URL)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := f.Open(gone, "one", server.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("it has more than its share: %v", err)
	}
	other, err := f.Open(t.Context(), "two", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := other.Keep()
	if err != nil || kept.Size != 4 {
		t.Fatal(err, kept)
	}
	for _, c := range append([]io.Closer{kept}, held[0], held[0]) {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	again, err := f.Open(t.Context(), "one", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = again.Close() }()
	if f.shares["one"].TryAcquire(1) {
		t.Error("a place that was given back twice counts twice")
	}
}

func TestOnlyServersThatMayBeAskedAreAskedAndARedirectLeadsToNoOthers(t *testing.T) {
	asked := false
	inner := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer inner.Close()
	named := func(server *httptest.Server) string { return strings.Replace(server.URL, "127.0.0.1", "localhost", 1) }
	outer := httptest.NewServer(http.RedirectHandler(inner.URL+"/secret", http.StatusFound))
	defer outer.Close()
	trusting := New([]string{"localhost"}, false)
	for name, c := range map[string]struct {
		f       *Fetcher
		address string
	}{
		"an address":           {New(nil, false), inner.URL},
		"a name of one":        {New(nil, false), named(inner)},
		"a redirect":           {trusting, named(outer)},
		"metadata of machines": {trusting, "http://169.254.169.254/latest"},
	} {
		_, err := c.f.Open(t.Context(), "", c.address)
		if err == nil || !strings.Contains(err.Error(), "assets.private-hosts") || asked {
			t.Errorf("%s: %v (asked: %v)", name, err, asked)
		}
	}
	body, err := trusting.Open(t.Context(), "", named(inner))
	if err != nil || !asked {
		t.Fatalf("a server of the setting is not asked: %v", err)
	}
	_ = body.Close()
}
