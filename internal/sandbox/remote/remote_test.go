package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

func TestSoMuchIsFetchedAtATimeAndNoMore(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
	}))
	defer server.Close()
	var held []*Body
	for range most {
		b, err := Open(t.Context(), server.URL)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, b)
	}
	gone, leave := context.WithCancel(t.Context())
	leave()
	if _, err := Open(gone, server.URL); !errors.Is(err, context.Canceled) {
		t.Errorf("one more is fetched: %v", err)
	}
	for _, c := range []io.Closer{held[0], held[0]} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
	next, err := Open(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	if len(places) != most {
		t.Error("a place that was given back twice counts twice")
	}
	kept, err := next.Keep()
	if err != nil || kept.Size != 4 {
		t.Fatal(err, kept)
	}
	for _, c := range held[1:] {
		_ = c.Close()
	}
	if err := kept.Close(); err != nil || len(places) != 0 {
		t.Errorf("not all places are free in the end (%v)", err)
	}
}

func TestAServerThatIsBusyIsAskedAgain(t *testing.T) {
	var asked int
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.URL.Path == "/missing":
			w.WriteHeader(http.StatusNotFound)
		case asked == 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case asked == 2:
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()
	body, err := Open(t.Context(), server.URL)
	if err != nil || asked != 3 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
	_ = body.Close()
	if _, err := Open(t.Context(), server.URL+"/missing"); err == nil || asked != 4 {
		t.Errorf("what is not there is asked for %d times: %v", asked-3, err)
	}
}
