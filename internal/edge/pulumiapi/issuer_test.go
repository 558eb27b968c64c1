package pulumiapi

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/deployctl/deployctl/internal/values/workload"
)

// TestAnybodyReadsWhatTheIssuerSaysOfItself reads discovery and keys without a token, and checks a token with them.
func TestAnybodyReadsWhatTheIssuerSaysOfItself(t *testing.T) {
	b := newBench(t)
	b.store.Access.Issuer.SetAddress("https://deploy.example.com")
	b.config.Issuer = b.store.Access.Issuer
	b.serve()
	get := func(path string, into any) {
		t.Helper()
		status, body, header := b.do(http.MethodGet, path, "", nil, "X-Forwarded-Host", "evil.example",
			"X-Forwarded-Proto", "http", "Forwarded", "host=evil.example")
		if err := json.Unmarshal([]byte(body), into); err != nil || status != http.StatusOK ||
			header.Get("Cache-Control") != issuerCache || header.Get("Content-Type") != "application/json" {
			t.Fatalf("%s is answered %d %q %v, %v", path, status, body, header, err)
		}
	}
	var discovery struct {
		Issuer     string   `json:"issuer"`
		Keys       string   `json:"jwks_uri"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
	}
	get(workload.DiscoveryPath, &discovery)
	if discovery.Issuer != "https://deploy.example.com" || len(discovery.Algorithms) != 1 ||
		discovery.Keys != "https://deploy.example.com/.well-known/jwks.json" {
		t.Errorf("it says %+v", discovery)
	}
	var set jose.JSONWebKeySet
	get(workload.KeysPath, &set)
	if len(set.Keys) != 1 || !set.Keys[0].IsPublic() {
		t.Errorf("there are %d keys, or one is not public", len(set.Keys))
	}
	for _, path := range []string{workload.DiscoveryPath, workload.KeysPath} {
		for _, method := range []string{http.MethodPost, http.MethodPut, http.MethodDelete} {
			if status, body, header := b.do(method, path, "token admin", strings.NewReader("{}")); status !=
				http.StatusNotFound || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s %s is answered %d %s", method, path, status, body)
			}
		}
	}
}

func TestAServiceThatIsNoIssuerSaysSo(t *testing.T) {
	b := newBench(t)
	for _, issuer := range []Issuer{nil, b.store.Access.Issuer} {
		b.config.Issuer = issuer
		b.serve()
		for _, path := range []string{workload.DiscoveryPath, workload.KeysPath} {
			if status, body, header := b.do(http.MethodGet, path, "", nil); status != http.StatusNotFound ||
				!strings.Contains(body, "the setting issuer") || header.Get("Cache-Control") != "no-store" {
				t.Errorf("%s is answered %d %s", path, status, body)
			}
		}
	}
}
