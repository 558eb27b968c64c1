// Package workload makes the tokens by which an update says to clouds what it is: the service is an OpenID Connect
// issuer, and clouds give short-lived credentials for its tokens (docs/adr/0081).
//
// A Ring has the keys of the issuer and knows when each signs; Sign makes a token; Discovery and Published are what
// clouds read to check one.
package workload

import (
	"crypto/rsa"
	"encoding/json"
	"fmt"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

const (
	// Life is how long a token counts.
	Life = 15 * time.Minute
	// Renewal is how old the token of an update becomes before it has a new one. Azure's libraries keep what they have
	// read for ten minutes, so a token that is read when it is oldest still counts two minutes longer than that.
	Renewal = 3 * time.Minute
	// skew is how far the clock of a cloud may be behind.
	skew = 2 * time.Minute
)

// Preview is the kind of every update that changes nothing, in claims and subjects.
const Preview = "preview"

// audience of tokens for AWS and Azure. Google's is the provider.
const (
	audienceAWS    = "sts.amazonaws.com"
	audienceAzure  = "api://AzureADTokenExchange"
	audienceGoogle = "https://iam.googleapis.com/"
)

// Claims are what a token says of an update.
type Claims struct {
	Issuer   string `json:"iss"`
	Subject  string `json:"sub"`
	Audience string `json:"aud"`
	Expires  int64  `json:"exp"`
	Begins   int64  `json:"nbf"`
	Issued   int64  `json:"iat"`
	ID       string `json:"jti"`

	Organization string `json:"organization"`
	Project      string `json:"project"`
	Stack        string `json:"stack"`
	Kind         string `json:"kind"` // up, refresh, destroy, import or preview
	Profile      string `json:"profile"`
	Update       string `json:"update"` // the version that it makes, or the name of a preview
}

// Of returns the claims of an update with a profile, for an audience.
func Of(issuer string, u deployments.UpdateName, r deployments.UpdateRequest, profile, audience string) Claims {
	kind := string(r.Kind)
	if r.DryRun {
		kind = Preview
	}
	return Claims{Issuer: issuer, Subject: Subject(u.StackName, kind), Audience: audience, Organization: u.Organization,
		Project: u.Project, Stack: u.Stack, Kind: kind, Profile: profile, Update: u.Version}
}

// Subject returns what clouds compare with their policies. No name has a colon or a slash, so no two stacks or kinds
// have the same.
func Subject(s deployments.StackName, kind string) string { return "stack:" + s.String() + ":" + kind }

// Kinds are all that a token can have as its kind.
func Kinds() []string {
	return []string{Preview, string(engine.KindUp), string(engine.KindRefresh), string(engine.KindDestroy),
		string(engine.KindImport)}
}

// Files returns the audience of the token in each file of tokens for clouds.
func Files(c deployments.Clouds) map[string]string {
	files := map[string]string{}
	if c.AWS != nil {
		files[deployments.AWSTokenFile] = audienceAWS
	}
	if c.Google != nil {
		files[deployments.GoogleTokenFile] = audienceGoogle + c.Google.Provider
	}
	if c.Azure != nil {
		files[deployments.AzureTokenFile] = audienceAzure
	}
	return files
}

// GoogleCredentials is the file by which Google's libraries use a token.
func GoogleCredentials(g deployments.GoogleWorkload, tokenFile string) ([]byte, error) {
	type format struct {
		Type string `json:"type"`
	}
	type source struct {
		File   string `json:"file"`
		Format format `json:"format"`
	}
	impersonated := ""
	if g.ServiceAccount != "" {
		impersonated = "https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/" + g.ServiceAccount +
			":generateAccessToken"
	}
	return json.Marshal(struct {
		Type          string `json:"type"`
		Audience      string `json:"audience"`
		TokenType     string `json:"subject_token_type"`
		TokenURL      string `json:"token_url"`
		Impersonation string `json:"service_account_impersonation_url,omitempty"`
		Source        source `json:"credential_source"`
	}{"external_account", strings.TrimPrefix(audienceGoogle, "https:") + g.Provider,
		"urn:ietf:params:oauth:token-type:jwt", "https://sts.googleapis.com/v1/token", impersonated,
		source{tokenFile, format{"text"}}})
}

// maxSession is the longest name of a session that AWS takes.
const maxSession = 64

// Session is the name under which AWS logs what an update does: its end, if it is long, because that tells updates
// apart.
func Session(u deployments.UpdateName) string {
	text := strings.ReplaceAll(u.String(), "/", ".")
	return text[max(0, len(text)-maxSession):]
}

// Sign makes a token of claims, with the times of one that is made now.
func Sign(k Key, c Claims, id string, now time.Time) (string, error) {
	c.Issued, c.Begins, c.Expires, c.ID = now.Unix(), now.Add(-skew).Unix(), now.Add(Life).Unix(), id
	key := jose.SigningKey{Algorithm: jose.RS256, Key: jose.JSONWebKey{Key: k.Private, KeyID: k.ID}}
	signer, err := jose.NewSigner(key, (&jose.SignerOptions{}).WithType("JWT"))
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(c)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(text)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

// Paths at which the service answers clouds, below the issuer.
const (
	DiscoveryPath = "/.well-known/openid-configuration"
	KeysPath      = "/.well-known/jwks.json"
)

// Discovery is the document at DiscoveryPath.
func Discovery(issuer string) any {
	return struct {
		Issuer     string   `json:"issuer"`
		Keys       string   `json:"jwks_uri"`
		Responses  []string `json:"response_types_supported"`
		Subjects   []string `json:"subject_types_supported"`
		Algorithms []string `json:"id_token_signing_alg_values_supported"`
		Claims     []string `json:"claims_supported"`
	}{issuer, issuer + KeysPath, []string{"id_token"}, []string{"public"}, []string{string(jose.RS256)},
		[]string{"iss", "sub", "aud", "exp", "nbf", "iat", "jti", "organization", "project", "stack", "kind", "profile",
			"update"}}
}

// Published is the document at KeysPath: the public parts of keys.
func Published(keys []Key) jose.JSONWebKeySet {
	set := jose.JSONWebKeySet{Keys: []jose.JSONWebKey{}}
	for _, k := range keys {
		set.Keys = append(set.Keys, jose.JSONWebKey{Key: k.Private.Public().(*rsa.PublicKey), KeyID: k.ID,
			Algorithm: string(jose.RS256), Use: "sig"})
	}
	return set
}

// maxIssuer bounds the address of an issuer: AWS takes one of 255 bytes.
const maxIssuer = 255

// ValidateIssuer reports why an address cannot be the one of the issuer: clouds take https only, and compare it byte by
// byte. On loopback, where no cloud comes, it may be http.
func ValidateIssuer(text string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > maxIssuer || u.Host == "" || u.User != nil || u.RawQuery != "" || u.ForceQuery ||
		strings.Contains(text, "#") || strings.HasSuffix(text, "/") || u.String() != text {
		return fmt.Errorf("%q is not the address of an issuer: write https://HOST or https://HOST/PATH, without a slash at "+
			"its end, a query or a user", text)
	}
	if ip, _ := netip.ParseAddr(u.Hostname()); u.Scheme != "https" &&
		(u.Scheme != "http" || u.Hostname() != "localhost" && !ip.IsLoopback()) {
		return fmt.Errorf("the issuer %q is not at an https address: clouds take no other", text)
	}
	return nil
}
