package s3

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"

	"github.com/deployctl/deployctl/internal/remote"
)

func TestWhatAURLHasCanBeReadMoreThanOnceAndOnlyFromServersThatMayBeAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "0123456789")
	}))
	defer server.Close()
	in := ObjectIn{Source: &asset.Asset{URI: server.URL}}
	anywhere := &connection{remote: remote.New(nil, true)}
	got, err := anywhere.content(t.Context(), in)
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
	public := &connection{remote: remote.New(nil, false)}
	if _, err := public.content(t.Context(), in); err == nil || !strings.Contains(err.Error(), "private-hosts") {
		t.Errorf("a server at a private address: %v", err)
	}
}
