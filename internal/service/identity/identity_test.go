package identity

import (
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/deployctl/deployctl/internal/sys/outbound"
	"github.com/go-jose/go-jose/v4"
)

var local = &outbound.Guard{What: "keys of issuers are taken", Setting: "trust.private-hosts", Private: true}

// unsigned writes a token without a signature.
func unsigned(header string, claims map[string]any) string {
	text, _ := json.Marshal(claims) // texts and numbers only
	return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(text) + "."
}

// publicAsSecret signs claims as if a public key were a secret.
func publicAsSecret(t *testing.T, k identitytest.Key, claims map[string]any) string {
	t.Helper()
	der, err := x509.MarshalPKIXPublicKey(k.Private.Public())
	if err != nil {
		t.Fatal(err)
	}
	secret := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	return identitytest.Signed(t, jose.SigningKey{Algorithm: jose.HS256,
		Key: jose.JSONWebKey{Key: secret, KeyID: k.ID}}, claims)
}

func TestATokenThatIsNotGoodIsNotAccepted(t *testing.T) {
	issuer, key, other := identitytest.New(t), identitytest.RSA(t, "one"), identitytest.RSA(t, "one")
	issuer.Publish(key)
	in := func(d time.Duration) int64 { return time.Now().Add(d).Unix() }
	signed := func(changes map[string]any) string { return issuer.Sign(key, issuer.Claims(changes)) }
	good := signed(nil)
	unknown := key
	unknown.ID = "unknown"
	ec := identitytest.EC(t, "one")
	for name, token := range map[string]string{
		"no token": "", "two parts": "a.b", "no JSON": "a.b.c", "too long": good + strings.Repeat("x", MaxToken),
		"expired":                         signed(map[string]any{"exp": in(-time.Second)}),
		"without an end":                  signed(map[string]any{"exp": nil}),
		"not yet good":                    signed(map[string]any{"nbf": in(time.Hour)}),
		"issued in the future":            signed(map[string]any{"iat": in(time.Hour)}),
		"of another issuer":               signed(map[string]any{"iss": "https://issuer.example"}),
		"without a subject":               signed(map[string]any{"sub": nil}),
		"with another key of this id":     issuer.Sign(other, issuer.Claims(nil)),
		"with an unknown key":             issuer.Sign(unknown, issuer.Claims(nil)),
		"of another kind of key":          issuer.Sign(ec, issuer.Claims(nil)),
		"with the algorithm none":         unsigned(`{"alg":"none","kid":"one"}`, issuer.Claims(nil)),
		"without its signature":           good[:strings.LastIndexByte(good, '.')+1],
		"with the public key as a secret": publicAsSecret(t, key, issuer.Claims(nil)),
		"with other claims":               swapped(good, signed(map[string]any{"sub": "repo:evil/x"})),
	} {
		i, err := New(local).Verify(t.Context(), issuer.URL, token)
		if deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("%s: %+v, %v", name, i, err)
		}
	}
	i, err := New(local).Verify(t.Context(), issuer.URL, good)
	if err != nil || i.Subject != "repo:acme/shop:ref:refs/heads/main" || !strings.HasPrefix(i.ID, "jti ") ||
		len(i.Audiences) != 1 || string(i.Claims["actor"]) != `"ann"` {
		t.Errorf("a good one: %+v, %v", i, err)
	}
}

// swapped gives a token the claims of another one.
func swapped(token, claims string) string {
	parts, others := strings.Split(token, "."), strings.Split(claims, ".")
	return parts[0] + "." + others[1] + "." + parts[2]
}

func TestATokenIsTheSameHoweverItsSignatureIsWritten(t *testing.T) {
	issuer, key := identitytest.New(t), identitytest.EC(t, "ec")
	issuer.Publish(key)
	v, claims := New(local), issuer.Claims(map[string]any{"jti": nil})
	first, err := v.Verify(t.Context(), issuer.URL, issuer.Sign(key, claims))
	if err != nil {
		t.Fatal(err)
	}
	again, err := v.Verify(t.Context(), issuer.URL, issuer.Sign(key, claims)) // ECDSA signs differently each time
	if err != nil || again.ID != first.ID {
		t.Errorf("they are %q and %q, %v", first.ID, again.ID, err)
	}
}

func TestANewKeyOfAnIssuerIsFoundAndARevokedOneForgotten(t *testing.T) {
	issuer, first, second := identitytest.New(t), identitytest.RSA(t, "first"), identitytest.EC(t, "second")
	issuer.Publish(first)
	v, now := New(local), time.Now()
	v.now = func() time.Time { return now }
	old := issuer.Sign(first, issuer.Claims(map[string]any{"exp": now.Add(3 * time.Hour).Unix()}))
	if _, err := v.Verify(t.Context(), issuer.URL, old); err != nil {
		t.Fatal(err)
	}
	issuer.Publish(second)
	if _, err := v.Verify(t.Context(), issuer.URL, issuer.Sign(second, issuer.Claims(nil))); err != nil {
		t.Errorf("a new key: %v", err)
	}
	now = now.Add(2 * keysFor)
	if _, err := v.Verify(t.Context(), issuer.URL, old); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("a revoked key: %v", err)
	}
}

// shown returns why a token is not accepted.
func shown(t *testing.T, v *Verifier, from, token string) error {
	t.Helper()
	_, err := v.Verify(t.Context(), from, token)
	if err == nil {
		t.Fatal("it is accepted")
	}
	return err
}

func TestAnIssuerIsNotAskedForEachTokenThatAnybodyWrites(t *testing.T) {
	issuer, key := identitytest.New(t), identitytest.RSA(t, "real")
	issuer.Publish(key)
	v, now := New(local), time.Now()
	v.now = func() time.Time { return now }
	unknown := key
	unknown.ID = "unknown"
	token := issuer.Sign(unknown, issuer.Claims(nil))
	// Some of the tokens share an answer: as many are shown as it takes until the issuer is not asked any more.
	for deployments.CodeOf(shown(t, v, issuer.URL, token)) != deployments.CodeUnavailable {
		if n := issuer.Asked(); n > askBurst {
			t.Fatalf("it was asked %d times", n)
		}
	}
	if _, err := v.Verify(t.Context(), issuer.URL, issuer.Sign(key, issuer.Claims(nil))); err != nil {
		t.Errorf("a known key: %v", err)
	}
}

func TestOnlyAnIssuerAtAPublicAddressIsAsked(t *testing.T) {
	issuer, key := identitytest.New(t), identitytest.RSA(t, "k")
	issuer.Publish(key)
	token := issuer.Sign(key, issuer.Claims(nil))
	shared := &outbound.Guard{What: "keys of issuers are taken", Setting: "trust.private-hosts"}
	for _, from := range []string{issuer.URL, "https://169.254.169.254", "https://10.0.0.1", "http://issuer.example",
		"file:///etc/passwd", "https://localhost:1"} {
		_, err := New(shared).Verify(t.Context(), from, token)
		if deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", from, err)
		}
	}
	if n := issuer.Asked(); n != 0 {
		t.Errorf("it was asked %d times", n)
	}
}

func TestAnIssuerLeadsToNoOtherServerAndFillsNoMemory(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("another server was asked")
	}))
	defer target.Close()
	endless := func(w http.ResponseWriter, r *http.Request) {
		for r.Context().Err() == nil {
			if _, err := w.Write([]byte(strings.Repeat(" ", 1<<16))); err != nil {
				return
			}
		}
	}
	for name, answer := range map[string]http.HandlerFunc{
		"a redirect":        http.RedirectHandler(target.URL, http.StatusFound).ServeHTTP,
		"an endless answer": endless,
		"keys elsewhere": func(w http.ResponseWriter, r *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"http://` + r.Host + `","jwks_uri":"https://169.254.169.254/keys"}`))
		},
		"another issuer": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"issuer":"https://issuer.example","jwks_uri":"` + target.URL + `"}`))
		},
	} {
		server := httptest.NewServer(answer)
		guard := &outbound.Guard{What: "keys of issuers are taken", Setting: "trust.private-hosts",
			Hosts: []string{"127.0.0.1"}}
		if _, err := New(guard).Verify(t.Context(), server.URL, "a.b.c"); err == nil ||
			deployments.CodeOf(err) == deployments.CodeUnauthorized {
			t.Errorf("%s: %v", name, err)
		}
		server.CloseClientConnections()
		server.Close()
	}
}
