package identity

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/deployctl/deployctl/internal/sys/outbound"
)

// serveKeys has an issuer answer with keys of its own making.
func serveKeys(issuer *identitytest.Issuer, keys []string) {
	issuer.Serve("/keys", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"keys":[%s]}`, strings.Join(keys, ","))
	})
}

// forged returns a token with a header, which nobody has signed.
func forged(t *testing.T, issuer *identitytest.Issuer, header string) string {
	t.Helper()
	claims, err := json.Marshal(issuer.Claims(nil))
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(header)) + "." + enc(claims) + "." + enc(make([]byte, ed25519.SignatureSize))
}

// keyOf returns a key of an id, with something that is of no use.
func keyOf(id string, unused int) string {
	x := base64.RawURLEncoding.EncodeToString(make([]byte, ed25519.PublicKeySize))
	return fmt.Sprintf(`{"kty":"OKP","crv":"Ed25519","x":%q,"kid":%q,"x5c":[%q]}`, x, id, strings.Repeat("a", unused))
}

func TestFewKeysOfAnIssuerAreTriedAndKept(t *testing.T) {
	several := func(n int, id func(i int) string) (keys []string) {
		for i := range n {
			keys = append(keys, keyOf(id(i), 0))
		}
		return keys
	}
	same, own := func(int) string { return "k" }, func(i int) string { return fmt.Sprint("k", i) }
	for name, c := range map[string]struct {
		keys []string
		code deployments.Code
		says string
	}{
		"as many as are used": {several(mostKeys, own), deployments.CodeUnauthorized, "signature"},
		"more":                {several(mostKeys+1, own), deployments.CodeUnavailable, "too many keys"},
		"more with the same id": {several(mostOfID+1, same), deployments.CodeUnavailable,
			"too many keys: at most 32, and 4 of the same id, are used"},
		"more than an answer has": {[]string{keyOf("k", maxAnswer)}, deployments.CodeUnavailable, "at most"},
		"none":                    {nil, deployments.CodeUnauthorized, "signature"},
	} {
		issuer := identitytest.New(t)
		serveKeys(issuer, c.keys)
		_, err := New(local).Verify(t.Context(), issuer.URL, forged(t, issuer, `{"alg":"EdDSA","kid":"k"}`))
		if deployments.CodeOf(err) != c.code || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestATokenSaysWithWhichOfSeveralKeysItIsSigned(t *testing.T) {
	issuer := identitytest.New(t)
	serveKeys(issuer, []string{keyOf("a", 0), keyOf("b", 0)})
	v := New(local)
	for range 2 { // the first one asks for the keys
		_, err := v.Verify(t.Context(), issuer.URL, forged(t, issuer, `{"alg":"EdDSA"}`))
		if deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("%v", err)
		}
	}
	for _, header := range []string{`{"alg":"EdDSA"}`, `{"alg":"EdDSA","KID":"a"}`} { // names of members have a case
		_, err := v.Verify(t.Context(), issuer.URL, forged(t, issuer, header))
		if err == nil || !strings.Contains(err.Error(), "with which of the issuer's keys") {
			t.Errorf("%s: all keys are tried: %v", header, err)
		}
	}
}

func TestWhatIsOfNoUseInAKeyIsNotKept(t *testing.T) {
	issuer := identitytest.New(t)
	serveKeys(issuer, []string{keyOf("k", maxAnswer/2), `{"kty":"oct","k":"c2VjcmV0"}`, `{"kty":"RSA","use":"enc"}`})
	by := &keyFetcher{fetcher: New(local).fetcher(1, 1)}
	answer, err := client(by).Get(issuer.URL + "/keys")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.ContentLength > 200 || by.several.Load() {
		t.Errorf("%d bytes are kept; several: %t", answer.ContentLength, by.several.Load())
	}
}

// TestNobodyReadsAnotherServerByTheKeysOfAnIssuer has an issuer name a server that callers cannot ask.
func TestNobodyReadsAnotherServerByTheKeysOfAnIssuer(t *testing.T) {
	asked := 0
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("inner page of " + r.URL.Path))
	}))
	defer inner.Close()
	issuer := identitytest.New(t)
	token := forged(t, issuer, `{"alg":"EdDSA","kid":"k"}`)
	shared := &outbound.Guard{What: "identity tokens are verified", Setting: "trust.private-hosts",
		Hosts: []string{"127.0.0.1"}}
	issuer.Says("jwks_uri", inner.URL+"/secret")
	if _, err := New(shared).Verify(t.Context(), issuer.URL, token); err == nil || asked > 0 {
		t.Errorf("a private server at another address is asked %d times: %v", asked, err)
	}
	_, err := New(local).Verify(t.Context(), issuer.URL, token)
	if deployments.CodeOf(err) != deployments.CodeUnavailable || asked == 0 ||
		strings.Contains(err.Error(), "inner page") || !strings.Contains(err.Error(), "it answers 403 Forbidden") {
		t.Errorf("after %d requests it tells %v", asked, err)
	}
}
