package deployments

import (
	"encoding/json"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/internal/values/glob"
)

// Trust lets identities that an issuer vouches for, such as the jobs of a CI service, exchange their identity tokens
// for tokens of the service.
type Trust struct {
	Organization string `json:"organization"`
	Name         string `json:"name"` // within the organization
	// Issuer is the URL of the identity provider (OpenID Connect), as its tokens write it.
	Issuer string `json:"issuer"`
	// Audiences are whom the identity tokens may be made for; none: OrganizationAudience.
	Audiences []string `json:"audiences,omitempty"`
	// Conditions are on the claims of an identity token. All of them must hold, and there is at least one: the issuer
	// may vouch for anybody.
	Conditions []Condition `json:"conditions"`
	// Grant is what the tokens may do.
	Grant Grant `json:"grant"`
	// Lifetime is that of the tokens, at most; 0: DefaultLifetime.
	Lifetime time.Duration `json:"lifetime,omitempty"`
	Created  time.Time     `json:"created,omitzero"`
	// Damaged says why the trust cannot be read; then it is not used. Only lists have such trusts.
	Damaged string `json:"damaged,omitempty"`
}

// Condition holds for an identity token whose claim, or one of its values, matches the pattern.
type Condition struct {
	Claim string `json:"claim"`
	// Pattern is a text in which * stands for any text, and ? for one character.
	Pattern string `json:"pattern"`
}

// Limits of trusts.
const (
	DefaultLifetime = time.Hour
	MaxLifetime     = 24 * time.Hour
	MaxConditions   = 20
	MaxAudiences    = 20
	MaxClaimLength  = 1000 // of a claim's name, a pattern, an audience, and the URL of an issuer
	// maxTrustName limits the names of organization and trust together: the names of tokens contain both.
	maxTrustName = 70
)

// OrganizationAudience is the audience of identity tokens for an organization, as the Pulumi Service API has it.
func OrganizationAudience(organization string) string { return "urn:pulumi:org:" + organization }

// TrustName names a trust of an organization.
type TrustName struct{ Organization, Name string }

// Validate reports, as CodeInvalid, why the trust is not valid.
func (t Trust) Validate() error {
	err := firstError(ValidateName("organization", t.Organization), ValidateName("trust", t.Name),
		ValidateIssuer(t.Issuer), t.Grant.Validate())
	if err != nil {
		return err
	}
	switch {
	case len(t.Organization)+len(t.Name) > maxTrustName:
		return Errorf(CodeInvalid, "the names of an organization and a trust have at most %d bytes together", maxTrustName)
	case t.Grant.Organization != t.Organization:
		return Errorf(CodeInvalid, "a trust of the organization %s can give roles there only", t.Organization)
	case len(t.Conditions) == 0:
		return Errorf(CodeInvalid, "%s may vouch for anybody, so a trust needs a condition, such as --claim "+
			"'sub=repo:OWNER/REPOSITORY:*'", t.Issuer)
	case len(t.Conditions) > MaxConditions || len(t.Audiences) > MaxAudiences:
		return Errorf(CodeInvalid, "a trust can have %d conditions and %d audiences", MaxConditions, MaxAudiences)
	case t.Lifetime < 0 || t.Lifetime > MaxLifetime || t.Lifetime > 0 && t.Lifetime < time.Minute:
		return Errorf(CodeInvalid, "exchanged tokens last from 1m to %s, not %s", MaxLifetime, t.Lifetime)
	}
	for _, a := range t.Audiences {
		if a == "" || len(a) > MaxClaimLength {
			return Errorf(CodeInvalid, "an audience has 1 to %d bytes", MaxClaimLength)
		}
	}
	for _, c := range t.Conditions {
		if err := c.validate(); err != nil {
			return err
		}
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// ValidateIssuer rejects what is no issuer of OpenID Connect. Without TLS, it must be on this machine.
func ValidateIssuer(text string) error {
	u, err := url.Parse(text)
	if err != nil || len(text) > MaxClaimLength || u.Hostname() == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" || u.ForceQuery {
		return Errorf(CodeInvalid, "%q is not the URL of an issuer: write it as its tokens do, such as "+
			"https://token.actions.githubusercontent.com", text)
	}
	ip, err := netip.ParseAddr(u.Hostname())
	local := u.Hostname() == "localhost" || err == nil && ip.IsLoopback()
	if u.Scheme != "https" && (u.Scheme != "http" || !local) {
		return Errorf(CodeInvalid, "the issuer %s does not use TLS: an https:// URL is needed", text)
	}
	return nil
}

func (c Condition) validate() error {
	switch {
	case c.Claim == "" || c.Pattern == "" || len(c.Claim) > MaxClaimLength || len(c.Pattern) > MaxClaimLength:
		return Errorf(CodeInvalid, "a condition is CLAIM=PATTERN, with at most %d bytes each", MaxClaimLength)
	case strings.Trim(c.Pattern, "*?") == "":
		return Errorf(CodeInvalid, "the condition %s=%s holds for everybody: write what the claim must be", c.Claim,
			c.Pattern)
	}
	return nil
}

// MostCompared limits how long the conditions of an organization are compared with one identity: the sum of the
// products of the lengths of patterns and claims, in bytes. A thousand trusts with two usual conditions have a tenth.
const MostCompared = 100 << 20

// Matching compares an identity with trusts. It takes no longer than MostCompared allows, whoever has written both.
type Matching struct {
	audiences []string
	claims    map[string]json.RawMessage
	values    map[string][]string // of the claims that were compared
	left      int
}

// NewMatching returns what compares an identity token with these audiences and claims.
func NewMatching(audiences []string, claims map[string]json.RawMessage) *Matching {
	return &Matching{audiences: audiences, claims: claims, values: map[string][]string{}, left: MostCompared}
}

// Matches reports whether a trust is for the identity token. CodeInvalid: that cannot be said in the time there is.
func (m *Matching) Matches(t Trust) (bool, error) {
	allowed := t.Audiences
	if len(allowed) == 0 {
		allowed = []string{OrganizationAudience(t.Organization)}
	}
	if !slices.ContainsFunc(m.audiences, func(a string) bool { return slices.Contains(allowed, a) }) {
		return false, nil
	}
	for _, c := range t.Conditions {
		if holds, err := m.holds(c); err != nil || !holds {
			return false, err
		}
	}
	return len(t.Conditions) > 0, nil
}

// holds reports whether a claim matches: a text, a number, a boolean, or one element of a list of them.
func (m *Matching) holds(c Condition) (bool, error) {
	values, known := m.values[c.Claim]
	if !known {
		values = valuesOf(m.claims[c.Claim])
		m.values[c.Claim] = values
	}
	for _, value := range values {
		if m.left -= (len(c.Pattern) + 1) * (len(value) + 1); m.left < 0 {
			return false, Errorf(CodeInvalid, "the identity token has longer claims, or the organization more or longer "+
				"conditions of trusts, than can be compared: have an admin remove trusts (`deployctl trust rm`)")
		}
		if glob.Text(c.Pattern, value) {
			return true, nil
		}
	}
	return false, nil
}

// valuesOf returns the text of a claim, or those of the elements of a list.
func valuesOf(claim json.RawMessage) (values []string) {
	var list []json.RawMessage
	if json.Unmarshal(claim, &list) != nil {
		list = []json.RawMessage{claim}
	}
	for _, value := range list {
		var text string
		if json.Unmarshal(value, &text) != nil {
			if text = string(value); text == "" || text == "null" || strings.ContainsAny(text, `[{"`) {
				continue
			}
		}
		values = append(values, text)
	}
	return values
}

// Identity is what an issuer says of whom it vouches for, verified.
type Identity struct {
	Issuer, Subject string
	// ID distinguishes the identity token from all others of its issuer.
	ID        string
	Audiences []string
	Claims    map[string]json.RawMessage
	Expires   time.Time
}

// Exchange asks for a token in the place of an identity token.
type Exchange struct {
	Organization string
	Token        string        // the identity token
	Lifetime     time.Duration // that is wished for; 0: the trust's
	Role         Role          // that the token must have at least; empty: any
}

// Exchanged is a token that was given for an identity token.
type Exchanged struct {
	Token
	Text string
}
