package pulumiapi

import (
	"errors"
	"mime"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// Names of the token exchange (RFC 8693) and of Pulumi's kinds of tokens.
const (
	grantExchange     = "urn:ietf:params:oauth:grant-type:token-exchange"
	grantRefresh      = "refresh_token"
	typeIdentityToken = "urn:ietf:params:oauth:token-type:id_token"
	typeOrganization  = "urn:pulumi:token-type:access_token:organization"
	audiencePrefix    = "urn:pulumi:org:"
	scopeAdmin        = "admin"
)

// formBody limits a form.
const formBody = 64 << 10

// Causes of errors of a token exchange, as OAuth 2.0 (RFC 6749) names them.
var (
	errGrantType = errors.New("unsupported_grant_type")
	errScope     = errors.New("invalid_scope")
	errTarget    = errors.New("invalid_target")
)

// grantError is an error in the forms of both OAuth 2.0 and the Pulumi Service API.
type grantError struct {
	apitype.ErrorResponse
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// refusedGrant gives an error the form of OAuth 2.0.
func refusedGrant(c *call, status int, e apitype.ErrorResponse) (int, any) {
	kind := "invalid_request"
	switch {
	case c.oauth != nil:
		kind = c.oauth.Error()
	case status == http.StatusUnauthorized:
		status, kind = http.StatusBadRequest, "invalid_grant"
	case status >= http.StatusInternalServerError:
		kind = "temporarily_unavailable"
	}
	e.Code = status
	return status, grantError{e, kind, e.Message}
}

// form returns the fields of a form; CodeInvalid when one is given twice.
func (c *call) form() (url.Values, error) {
	kind, _, err := mime.ParseMediaType(c.Header.Get("Content-Type"))
	if err != nil || kind != "application/x-www-form-urlencoded" {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the body must be a form (application/x-www-form-urlencoded)")
	}
	data, err := c.body()
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(data))
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the form cannot be read")
	}
	for name, values := range form {
		if len(values) > 1 {
			return nil, deployments.Errorf(deployments.CodeInvalid, "the form has %q %d times", clean(name), len(values))
		}
	}
	return form, nil
}

// exchangeToken gives a token for an identity token. Tokens are not refreshed: a job requests another identity token.
func exchangeToken(c *call) (any, error) {
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	switch grant := form.Get("grant_type"); grant {
	case grantExchange:
	case grantRefresh:
		return nil, c.wrong(deployments.Errorf(deployments.CodeUnauthorized, "deployctl gives no refresh tokens: log in "+
			"again, with another identity token or a token of the service"))
	default:
		c.oauth = errGrantType
		return nil, deployments.Errorf(deployments.CodeInvalid, "%q is not a grant that is served: use %s", clean(grant),
			grantExchange)
	}
	asked, err := c.exchangeOf(form)
	if err != nil {
		return nil, err
	}
	c.entry.Subject = "organization=" + asked.Organization
	given, err := c.edge.Service.Exchange(c.Context(), asked)
	if given.Origin != nil { // else the log of the organization is not for whom it does not trust
		c.entry.Organization, c.entry.Identity = asked.Organization, given.Origin.Identity
		c.entry.Subject = "trust=" + given.Origin.Trust
	}
	if err != nil {
		return nil, c.wrong(err)
	}
	c.edge.gate.Known(c.Context(), given.Name)
	c.entry.Token = given.Name
	return apitype.TokenExchangeGrantResponse{AccessToken: given.Text, IssuedTokenType: typeOrganization,
		TokenType: "token", ExpiresIn: int64(given.Expires.Sub(given.Created).Seconds()), Scope: form.Get("scope")}, nil
}

// exchangeOf reads what is to be exchanged.
func (c *call) exchangeOf(form url.Values) (deployments.Exchange, error) {
	organization, ok := strings.CutPrefix(form.Get("audience"), audiencePrefix)
	e := deployments.Exchange{Organization: organization, Token: form.Get("subject_token")}
	if !ok || deployments.ValidateName("organization", organization) != nil {
		c.oauth = errTarget
		return e, deployments.Errorf(deployments.CodeInvalid, "the audience must be %sORGANIZATION: pass --oidc-org",
			audiencePrefix)
	}
	if form.Get("subject_token_type") != typeIdentityToken || e.Token == "" {
		return e, deployments.Errorf(deployments.CodeInvalid, "the subject token must be an identity token (%s)",
			typeIdentityToken)
	}
	kind, scope := form.Get("requested_token_type"), form.Get("scope")
	switch {
	case kind != typeOrganization && kind != "" || scope != scopeAdmin && scope != "":
		c.oauth = errScope
		return e, deployments.Errorf(deployments.CodeInvalid, "a trust decides what its tokens may do: leave out "+
			"--oidc-team and --oidc-user")
	case scope == scopeAdmin:
		e.Role = deployments.RoleAdmin
	}
	if text := form.Get("expiration"); text != "" {
		seconds, err := strconv.ParseInt(text, 10, 32)
		if err != nil || seconds < 0 {
			return e, deployments.Errorf(deployments.CodeInvalid, "%q is not a number of seconds", clean(text))
		}
		e.Lifetime = time.Duration(seconds) * time.Second
	}
	return e, nil
}

// wrong slows and records a call whose identity is not accepted.
func (c *call) wrong(err error) error {
	if code := deployments.CodeOf(err); code == deployments.CodeUnauthorized || code == deployments.CodeForbidden {
		c.refused = true
		c.edge.gate.Wrong(c.Context(), grpcapi.Host(c.RemoteAddr))
	}
	return err
}
