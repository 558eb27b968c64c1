package pulumiapi

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// trusting is a bench whose organization acme trusts the jobs of acme/shop on main.
type trusting struct {
	*bench
	issuer *identitytest.Issuer
	key    identitytest.Key
	trust  deployments.Trust
}

func newTrusting(t *testing.T) trusting {
	t.Helper()
	b := trusting{bench: newBench(t), issuer: identitytest.New(t), key: identitytest.RSA(t, "k")}
	b.issuer.Publish(b.key)
	b.trust = deployments.Trust{Organization: "acme", Name: "github", Issuer: b.issuer.URL,
		Conditions: []deployments.Condition{{Claim: "sub", Pattern: "repo:acme/shop:ref:refs/heads/main"},
			{Claim: "actor", Pattern: "a?n*"}},
		Grant: deployments.Grant{Role: deployments.RoleDeployer, Organization: "acme", Stacks: []string{"shop/*"}}}
	b.put(b.trust)
	return b
}

func (b trusting) put(t deployments.Trust) {
	b.Helper()
	if err := b.store.Access.PutTrust(b.Context(), t); err != nil {
		b.Fatal(err)
	}
}

func (b trusting) token(changes map[string]any) string {
	return b.issuer.Sign(b.key, b.issuer.Claims(changes))
}

// exchange sends an identity token, with changed fields of the form.
func (b trusting) exchange(token string, changes ...string) (int, string) {
	b.Helper()
	form := url.Values{"grant_type": {grantExchange}, "audience": {"urn:pulumi:org:acme"}, "subject_token": {token},
		"subject_token_type": {typeIdentityToken}, "requested_token_type": {typeOrganization}, "expiration": {"0"}}
	for i := 0; i < len(changes); i += 2 {
		form.Set(changes[i], changes[i+1])
	}
	status, said, _ := b.do(http.MethodPost, "/api/oauth/token", "", strings.NewReader(form.Encode()), "Content-Type",
		"application/x-www-form-urlencoded")
	return status, said
}

func (b trusting) given(token string, changes ...string) apitype.TokenExchangeGrantResponse {
	b.Helper()
	status, said := b.exchange(token, changes...)
	var answer apitype.TokenExchangeGrantResponse
	if err := json.Unmarshal([]byte(said), &answer); err != nil || status != http.StatusOK {
		b.Fatalf("the exchange is answered %d: %s", status, said)
	}
	return answer
}

func TestAnIdentityGetsATokenThatMayDoWhatItsTrustSays(t *testing.T) {
	b := newTrusting(t)
	got := b.given(b.token(nil), "expiration", "600")
	if got.ExpiresIn < 590 || got.ExpiresIn > 600 || got.RefreshToken != "" || got.IssuedTokenType != typeOrganization {
		t.Errorf("it is given %+v", got)
	}
	if longest := b.given(b.token(nil), "expiration", "999999"); longest.ExpiresIn > 3600 {
		t.Errorf("it lasts %d seconds", longest.ExpiresIn)
	}
	as := "token " + got.AccessToken
	if said := b.want(http.StatusOK, http.MethodGet, "/api/user", as, ""); !strings.Contains(said, `"acme"`) {
		t.Errorf("the user is %s", said)
	}
	b.want(http.StatusNoContent, http.MethodPatch, "/api/stacks/acme/shop/dev/tags", as, `{"a":"b"}`)
	b.want(http.StatusForbidden, http.MethodGet, "/api/orgs/acme/auditlogs", as, "")
	b.want(http.StatusNotFound, http.MethodGet, "/api/stacks/acme/pay/dev", as, "")
	var seen []string
	for _, e := range b.log.entries {
		if e.Identity == "repo:acme/shop:ref:refs/heads/main" {
			seen = append(seen, e.Method+" "+e.Organization)
		}
	}
	if got := strings.Join(seen, ", "); !strings.HasPrefix(got, "Tokens/CreateToken acme, Tokens/CreateToken acme, "+
		"Stacks/TagStack acme, Audit/ReadAudit acme") {
		t.Errorf("the audit log has of the identity: %s", got)
	}
}

func TestAnIdentityThatNoTrustIsForGetsNothing(t *testing.T) {
	b := newTrusting(t)
	used := b.token(nil)
	b.given(used)
	ago := time.Now().Add(-time.Hour).Unix()
	for name, c := range map[string]struct{ token, field, value string }{
		"another branch":           {b.token(map[string]any{"sub": "repo:acme/shop:ref:refs/heads/x"}), "", ""},
		"a longer branch":          {b.token(map[string]any{"sub": "repo:acme/shop:ref:refs/heads/main2"}), "", ""},
		"another repository":       {b.token(map[string]any{"sub": "repo:evil/shop:ref:refs/heads/main"}), "", ""},
		"without a claim":          {b.token(map[string]any{"actor": nil}), "", ""},
		"an object for a claim":    {b.token(map[string]any{"actor": map[string]any{"ann": "ann"}}), "", ""},
		"another audience":         {b.token(map[string]any{"aud": "https://github.com/acme"}), "", ""},
		"another organization":     {b.token(nil), "audience", "urn:pulumi:org:other"},
		"expired":                  {b.token(map[string]any{"exp": ago}), "", ""},
		"good for a month":         {b.token(map[string]any{"exp": time.Now().Add(30 * 24 * time.Hour).Unix()}), "", ""},
		"used before":              {used, "", ""},
		"an admin's rights":        {b.token(nil), "scope", "admin"},
		"an issuer nobody trusts":  {b.token(map[string]any{"iss": "https://issuer.example"}), "", ""},
		"a refresh token":          {"", "grant_type", "refresh_token"},
		"a token of the service":   {"dctl.admin.00", "", ""},
		"signed with another key":  {b.issuer.Sign(identitytest.RSA(t, "k"), b.issuer.Claims(nil)), "", ""},
		"not signed at all":        {strings.Join(append(strings.Split(b.token(nil), ".")[:2], ""), "."), "", ""},
		"an organization's name":   {b.token(nil), "audience", "urn:pulumi:org:../acme"},
		"a team's token":           {b.token(nil), "scope", "team:web"},
		"a person's token":         {b.token(nil), "requested_token_type", "urn:pulumi:token-type:access_token:personal"},
		"another kind of token":    {b.token(nil), "subject_token_type", "urn:ietf:params:oauth:token-type:access_token"},
		"another kind of grant":    {b.token(nil), "grant_type", "password"},
		"a negative lifetime":      {b.token(nil), "expiration", "-1"},
		"a lifetime of ages":       {b.token(nil), "expiration", "99999999999999999999"},
		"the claims of a list":     {b.token(map[string]any{"actor": []string{"bob", "eve"}}), "", ""},
		"a claim that is a number": {b.token(map[string]any{"actor": 5}), "", ""},
	} {
		fields := []string{}
		if c.field != "" {
			fields = []string{c.field, c.value}
		}
		status, said := b.exchange(c.token, fields...)
		var e grantError
		if err := json.Unmarshal([]byte(said), &e); err != nil || status != http.StatusBadRequest || e.Error == "" ||
			e.Message == "" || e.Code != status || strings.Contains(said, "access_token\"") {
			t.Errorf("%s: it is answered %d: %s", name, status, said)
		}
	}
	b.given(b.token(map[string]any{"actor": []string{"bob", "ann"}, "aud": []string{"x", "urn:pulumi:org:acme"}}))
}

func TestATokenOfATrustLosesWhatTheTrustLoses(t *testing.T) {
	b := newTrusting(t)
	as := "token " + b.given(b.token(nil)).AccessToken
	tags := "/api/stacks/acme/shop/dev/tags"
	b.want(http.StatusNoContent, http.MethodPatch, tags, as, `{"a":"b"}`)
	weaker := b.trust
	weaker.Grant.Role = deployments.RoleViewer
	b.put(weaker)
	b.want(http.StatusForbidden, http.MethodPatch, tags, as, `{"a":"b"}`)
	b.want(http.StatusOK, http.MethodGet, "/api/stacks/acme/shop/dev/export", as, "")
	if err := b.store.Access.RemoveTrust(t.Context(), "acme", "github"); err != nil {
		t.Fatal(err)
	}
	b.want(http.StatusUnauthorized, http.MethodGet, "/api/user", as, "")
	b.put(b.trust) // another trust of the same name
	b.want(http.StatusUnauthorized, http.MethodGet, "/api/user", as, "")
}

func TestATrustThatAnybodyCouldUseIsRefused(t *testing.T) {
	b := newTrusting(t)
	for name, change := range map[string]func(*deployments.Trust){
		"no condition":          func(t *deployments.Trust) { t.Conditions = nil },
		"a condition for all":   func(t *deployments.Trust) { t.Conditions[0].Pattern = "**" },
		"another organization":  func(t *deployments.Trust) { t.Grant.Organization = "other" },
		"all organizations":     func(t *deployments.Trust) { t.Grant.Organization = deployments.AnyOrganization },
		"an issuer without TLS": func(t *deployments.Trust) { t.Issuer = "http://issuer.example" },
		"an issuer with a name": func(t *deployments.Trust) { t.Issuer = "https://a:b@issuer.example" },
		"a file":                func(t *deployments.Trust) { t.Issuer = "file:///etc/passwd" },
		"tokens for a year":     func(t *deployments.Trust) { t.Lifetime = 365 * 24 * time.Hour },
		"a name that is a path": func(t *deployments.Trust) { t.Name = "../tokens" },
	} {
		trust := b.trust
		trust.Conditions = slices.Clone(trust.Conditions)
		change(&trust)
		if err := b.store.Access.PutTrust(t.Context(), trust); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnExchangeThatNoTrustIsForIsNotInTheLogOfTheOrganizationThatItNames(t *testing.T) {
	b := newTrusting(t)
	forged, unsigned := b.token(map[string]any{"sub": "repo:eve/x"}), strings.Split(b.token(nil), ".")
	for name, c := range map[string]struct{ token, organization string }{
		"an identity that is not trusted":   {forged, "acme"},
		"a token without a signature":       {strings.Join(unsigned[:2], ".") + ".", "acme"},
		"an organization that is not there": {forged, "made-up"},
	} {
		b.log.entries = nil
		status, said := b.exchange(c.token, "audience", audiencePrefix+c.organization)
		if e := b.log.entries; status != http.StatusBadRequest || len(e) != 1 || e[0].Organization != "" ||
			!e[0].Refused || e[0].Subject != "organization="+c.organization ||
			!strings.Contains(said, "no trust of the organization "+c.organization+" is for this identity token") {
			t.Errorf("%s: it is answered %d, %s; the log has %+v", name, status, said, e)
		}
	}
	used := b.token(nil)
	b.given(used)
	b.log.entries = nil
	b.exchange(used)
	if e := b.log.entries; len(e) != 1 || !e[0].Refused || e[0].Organization != "acme" || e[0].Token != "" ||
		e[0].Subject != "trust=acme/github" || e[0].Identity != "repo:acme/shop:ref:refs/heads/main" {
		t.Errorf("of a trusted identity whose token was used, the log has %+v", e)
	}
}

func TestAWrongTokenInTheFormOfAPageIsNotInTheLogOfTheOrganizationOfTheStack(t *testing.T) {
	b := newBench(t)
	for token, organization := range map[string]string{"dctl.wrong.00": "", "stranger": "acme"} {
		b.log.entries = nil
		b.do(http.MethodPost, "/acme/shop/dev", "", strings.NewReader(url.Values{"token": {token}}.Encode()), "Content-Type",
			"application/x-www-form-urlencoded")
		if e := b.log.entries; len(e) != 1 || !e[0].Refused || e[0].Organization != organization {
			t.Errorf("of the token %s, the log has %+v", token, e)
		}
	}
}
