package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestWhatAURLHasIsFetchedUpToABound(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/here" {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, "0123456789")
	}))
	defer server.Close()
	got, err := fetch(t.Context(), server.URL+"/here", 10)
	if err != nil {
		t.Fatal(err)
	}
	defer got.close()
	for range 2 { // a request may be sent more than once
		text, err := io.ReadAll(got.reader)
		if err != nil || string(text) != "0123456789" || got.size != 10 {
			t.Errorf("it is %q of %d bytes (%v)", text, got.size, err)
		}
		if _, err := got.reader.Seek(0, io.SeekStart); err != nil {
			t.Fatal(err)
		}
	}
	for address, says := range map[string]string{server.URL + "/here": "more than 9 bytes", server.URL +
		"/gone": "404"} {
		if _, err := fetch(t.Context(), address, 9); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("of %s it says %v, not %q", address, err, says)
		}
	}
}
