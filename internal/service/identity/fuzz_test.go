package identity

import (
	"encoding/base64"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// FuzzIssuers reads which issuer the token of a stranger names, before anything is known of it.
func FuzzIssuers(f *testing.F) {
	for _, seed := range []string{`{"iss":"https://issuer.example"}`, `{"iss":1}`, `{"iss":"a","iss":""}`, `[`} {
		f.Add("e30."+base64.RawURLEncoding.EncodeToString([]byte(seed))+".c2ln", seed)
	}
	f.Fuzz(func(t *testing.T, token, jti string) {
		if issuer, err := IssuerOf(token); err == nil && (issuer == "" || len(issuer) > deployments.MaxClaimLength) {
			t.Errorf("%q names the issuer %q", token, issuer)
		}
		if id := idOf([]byte(jti), token+"."); id == "" || id == "jti " {
			t.Errorf("%q of %q has the id %q", jti, token, id)
		}
	})
}
