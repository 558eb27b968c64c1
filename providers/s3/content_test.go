package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"
)

func TestWhatAURLHasCanBeReadMoreThanOnce(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "0123456789")
	}))
	defer server.Close()
	in := ObjectIn{Source: &asset.Asset{URI: server.URL}}
	got, err := open(t.Context(), in)
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
}
