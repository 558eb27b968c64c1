package console

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service/identity"
)

const (
	// attemptCookie is the name of the cookie of a login that was begun, and attemptPath where the browser sends it.
	attemptCookie, attemptPath = "deployctl_login", Root + "login"
	// attemptFor is how long the identity provider and the person may take.
	attemptFor = 10 * time.Minute
	// returnPath is where the provider sends the person back.
	returnPath = attemptPath + "/return"
	// attemptPurpose is what an attempt is sealed as: it is no session.
	attemptPurpose = Purpose + " login"
	// mostCookie is the size of a cookie that every browser keeps.
	mostCookie = 3800
)

// ReturnAddress returns where an identity provider sends people back, for a console at the address of a service.
func ReturnAddress(service *url.URL) string {
	return (&url.URL{Scheme: service.Scheme, Host: service.Host, Path: returnPath}).String()
}

// providerRoutes returns the table of the login with an identity provider. Whoever asks has no token yet: the rule is
// that of the exchange.
func providerRoutes() []*route {
	return []*route{
		{method: http.MethodPost, path: attemptPath + "/provider", handle: toProvider},
		{method: http.MethodGet, path: returnPath, handle: fromProvider},
	}
}

// attempt is what a browser keeps of a login that it has begun, sealed. The answer of the provider counts with it alone.
type attempt struct {
	identity.Attempt
	Organization string    `json:"organization,omitempty"` // empty: the one that admits the person
	To           string    `json:"to"`
	Ends         time.Time `json:"ends"`
}

// toProvider begins a login. The browser goes to the provider by a page: a form leads nowhere else, and neither does
// what it is answered with.
func toProvider(c *call) (answer, error) {
	form, err := c.form()
	if err != nil {
		return answer{}, err
	}
	a := attempt{identity.NewAttempt(), strings.TrimSpace(form.Get("organization")), local(form.Get("to")),
		c.console.now().Add(attemptFor)}
	if a.Organization != "" {
		err = deployments.ValidateName("organization", a.Organization)
	}
	if err == nil {
		err = c.mayExchange()
	}
	var to string
	if err == nil {
		to, err = c.console.Provider.Address(c.Context(), a.Attempt)
	}
	if err != nil {
		return c.notIn(a, err)
	}
	if err := c.keepAttempt(a); err != nil {
		return answer{}, err
	}
	return c.page("again", page{Title: "One moment", Again: to})
}

// fromProvider ends a login: what the provider has answered becomes a token of the service, as every identity token
// does, and the token a session.
func fromProvider(c *call) (answer, error) {
	c.entry.Method = createsToken().Method()
	a, err := c.attempt()
	c.setCookie(attemptCookie, attemptPath, "", -1) // there is one answer to an attempt
	if err != nil {
		return c.notIn(a, err)
	}
	if err := c.mayExchange(); err != nil {
		return c.notIn(a, err)
	}
	text, who, err := c.console.Provider.Token(c.Context(), a.Attempt, c.URL.Query())
	if err != nil {
		return c.notIn(a, err)
	}
	c.entry.Identity, c.entry.Organization = who.Subject, a.Organization
	if a.Organization == "" {
		admitting, err := c.console.Service.Admitting(c.Context(), text)
		if err != nil {
			return c.notIn(a, err)
		}
		if a.Organization = oneOf(admitting, a.To); a.Organization == "" {
			return c.choose(a, who, admitting)
		}
		c.entry.Organization = a.Organization
	}
	given, err := c.console.Service.Exchange(c.Context(), deployments.Exchange{Organization: a.Organization, Token: text,
		Lifetime: sessionFor})
	if err != nil {
		return c.notIn(a, err)
	}
	c.console.gate.Known(c.Context(), given.Name)
	c.made, c.entry.Token, c.entry.Subject = true, given.Name, "trust="+given.Origin.Trust
	if err := c.keep(given.Text, given.Expires); err != nil {
		return answer{}, err
	}
	// A redirect would still be the provider's, so that the browser would not send the session.
	return c.page("again", page{Title: "One moment", Again: a.To})
}

func createsToken() grpcapi.Rule {
	rule, _ := grpcapi.RuleOf(api.Tokens_CreateToken_FullMethodName)
	return rule
}

// mayExchange reports, as CodeMaintenance, that the service makes no tokens now.
func (c *call) mayExchange() error {
	m, err := c.console.Service.Mode(c.Context())
	if err != nil {
		return err
	}
	return m.Refuse(createsToken().Work(), c.console.now())
}

// oneOf returns the organization that admits a person: the only one, or the one whose page they want to see; empty if
// that is not known.
func oneOf(admitting []string, to string) string {
	if len(admitting) == 1 {
		return admitting[0]
	}
	for _, organization := range admitting {
		if strings.HasPrefix(to+"/", Root+url.PathEscape(organization)+"/") {
			return organization
		}
	}
	return ""
}

// choose asks a person which organization they want to see, or says that none admits them.
func (c *call) choose(a attempt, who deployments.Identity, admitting []string) (answer, error) {
	if len(admitting) == 0 {
		return c.notIn(a, deployments.Errorf(deployments.CodeUnauthorized, "%s says that you are %q, and no organization "+
			"trusts that: an admin of yours adds a trust with `deployctl trust add NAME --organization ORGANIZATION "+
			"--issuer %s --audience %s --claim CLAIM=PATTERN --role viewer`", c.console.Provider.Name(), who.Subject,
			c.console.Provider.Issuer, c.console.Provider.ID))
	}
	return c.page("organizations", page{Title: "Choose an organization", Data: loginForm{To: a.To,
		Organizations: admitting}})
}

// notIn answers a login with the provider that has failed with the page of the login, where a token is taken, too. What
// is wrong with the provider itself is for the log: it may name servers of the service's network.
func (c *call) notIn(a attempt, err error) (answer, error) {
	status, text := c.told(err)
	c.entry.Code, c.entry.Error = deployments.CodeOf(err), text
	switch c.entry.Code {
	case deployments.CodeUnauthorized, deployments.CodeForbidden:
		c.refused = true
		c.console.gate.Wrong(c.Context(), grpcapi.Host(c.RemoteAddr))
	case deployments.CodeUnavailable, deployments.CodeInternal:
		c.console.Log.Warn("a login with the identity provider has failed", "request", c.entry.Request, "error", err)
		text = "The login with " + c.console.Provider.Name() + " does not work at present: try again, or log in with a " +
			"token. The log of the service says why (request " + c.entry.Request + ")."
	}
	shown, failed := c.askToken(loginForm{To: a.To, Organization: a.Organization, Failed: text})
	shown.status = status
	return shown, failed
}

var errNoAttempt = deployments.Errorf(deployments.CodeUnauthorized, "this browser has begun no such login at this "+
	"address, or more than %d minutes ago: log in again", attemptFor/time.Minute)

// attempt returns the login that the browser has begun.
func (c *call) attempt() (a attempt, err error) {
	if text := c.sealed(attemptCookie, attemptPurpose); text != nil {
		err = json.Unmarshal(text, &a)
	}
	if err != nil || !c.console.now().Before(a.Ends) {
		return attempt{To: Root}, errNoAttempt
	}
	return a, nil
}

// keepAttempt has the browser keep a login that it has begun. The provider sends it back from another site, so the
// cookie is one that comes along then.
func (c *call) keepAttempt(a attempt) error {
	text, err := c.seal(a, attemptPurpose)
	if len(text) > mostCookie {
		a.To = Root
		text, err = c.seal(a, attemptPurpose)
	}
	c.setCookie(attemptCookie, attemptPath, text, int(attemptFor/time.Second))
	return err
}
