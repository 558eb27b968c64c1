package console

import (
	"encoding/json"
	"errors"
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
	// flowCookie is the name of the cookie of a login that was begun, and flowPath where the browser sends it.
	flowCookie, flowPath = "deployctl_login", Root + "login"
	// flowFor is how long the identity provider and the person may take.
	flowFor = 10 * time.Minute
	// returnPath is where the provider sends the person back.
	returnPath = flowPath + "/return"
	// flowPurpose is what a flow is sealed as: it is no session.
	flowPurpose = Purpose + " login"
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
		{method: http.MethodPost, path: flowPath + "/provider", handle: toProvider},
		{method: http.MethodGet, path: returnPath, handle: fromProvider},
	}
}

// flow is what a browser keeps of a login that it has begun, sealed. The answer of the provider counts with it alone.
type flow struct {
	identity.Flow
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
	f := flow{identity.NewFlow(), strings.TrimSpace(form.Get("organization")), local(form.Get("to")),
		c.console.now().Add(flowFor)}
	if f.Organization != "" {
		err = deployments.ValidateName("organization", f.Organization)
	}
	if err == nil {
		err = c.mayExchange()
	}
	var to string
	if err == nil {
		to, err = c.console.Provider.Address(c.Context(), f.Flow)
	}
	if err != nil {
		return c.notIn(f, err)
	}
	if err := c.keepFlow(f); err != nil {
		return answer{}, err
	}
	return c.page("again", page{Title: "One moment", Again: to})
}

// fromProvider ends a login: what the provider has answered becomes a token of the service, as every identity token
// does, and the token a session.
func fromProvider(c *call) (answer, error) {
	c.entry.Method = createsToken().Method()
	f, err := c.flow()
	c.setCookie(flowCookie, flowPath, "", -1) // there is one answer to a flow
	if err != nil {
		return c.notIn(f, err)
	}
	if err = c.mayExchange(); err == nil {
		err = c.console.gate.AsksProvider(c.RemoteAddr)
	}
	if err != nil {
		return c.notIn(f, err)
	}
	text, who, err := c.console.Provider.Token(c.Context(), f.Flow, c.URL.Query())
	if err != nil {
		return c.notIn(f, err)
	}
	c.entry.Identity = who.Subject
	if f.Organization == "" {
		admitting, err := c.console.Service.Admitting(c.Context(), text)
		if err != nil {
			return c.notIn(f, err)
		}
		if f.Organization = oneOf(admitting, f.To); f.Organization == "" {
			return c.choose(f, who, admitting)
		}
	}
	c.entry.Subject = "organization=" + f.Organization
	given, err := c.console.Service.Exchange(c.Context(), deployments.Exchange{Organization: f.Organization, Token: text,
		Lifetime: sessionFor})
	if given.Origin != nil { // else the log of the organization is not for whom it does not trust
		c.entry.Organization, c.entry.Subject = f.Organization, "trust="+given.Origin.Trust
	}
	if err != nil {
		return c.notIn(f, err)
	}
	c.console.gate.Known(c.Context(), given.Name)
	c.made, c.entry.Token = true, given.Name
	if err := c.keep(given.Text, given.Expires); err != nil {
		return answer{}, err
	}
	// A redirect would still be the provider's, so that the browser would not send the session.
	return c.page("again", page{Title: "One moment", Again: f.To})
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
func (c *call) choose(f flow, who deployments.Identity, admitting []string) (answer, error) {
	if len(admitting) == 0 {
		return c.notIn(f, deployments.Errorf(deployments.CodeUnauthorized, "%s says that you are %q, and no organization "+
			"trusts that: an admin of yours adds a trust with `deployctl trust add NAME --organization ORGANIZATION "+
			"--issuer %s --audience %s --claim CLAIM=PATTERN --role viewer`", c.console.Provider.Name(), who.Subject,
			c.console.Provider.Issuer, c.console.Provider.ID))
	}
	return c.page("organizations", page{Title: "Choose an organization", Data: loginForm{To: f.To,
		Organizations: admitting}})
}

// notIn answers a login with the provider that has failed with the page of the login, where a token is taken, too. What
// is wrong with the provider itself is for the log: it may name servers of the service's network.
func (c *call) notIn(f flow, err error) (answer, error) {
	status, text := c.told(err)
	c.entry.Code, c.entry.Error = deployments.CodeOf(err), text
	switch c.entry.Code {
	case deployments.CodeUnauthorized, deployments.CodeForbidden:
		c.refused = true
		c.console.gate.Wrong(c.Context(), grpcapi.Host(c.RemoteAddr))
	case deployments.CodeUnavailable, deployments.CodeInternal:
		if errors.Is(err, grpcapi.ErrManyLogins) {
			break
		}
		c.console.Log.Warn("a login with the identity provider has failed", "request", c.entry.Request, "error", err)
		text = "The login with " + c.console.Provider.Name() + " does not work at present: try again, or log in with a " +
			"token. The log of the service says why (request " + c.entry.Request + ")."
	}
	shown, failed := c.askToken(loginForm{To: f.To, Organization: f.Organization, Failed: text})
	shown.status = status
	return shown, failed
}

var errNoFlow = deployments.Errorf(deployments.CodeUnauthorized, "this browser has begun no such login at this "+
	"address, or more than %d minutes ago: log in again", flowFor/time.Minute)

// flow returns the login that the browser has begun.
func (c *call) flow() (f flow, err error) {
	if text := c.sealed(flowCookie, flowPurpose); text != nil {
		err = json.Unmarshal(text, &f)
	}
	if err != nil || !c.console.now().Before(f.Ends) {
		return flow{To: Root}, errNoFlow
	}
	return f, nil
}

// keepFlow has the browser keep a login that it has begun. The provider sends it back from another site, so the
// cookie is one that comes along then.
func (c *call) keepFlow(f flow) error {
	text, err := c.seal(f, flowPurpose)
	if len(text) > mostCookie {
		f.To = Root
		text, err = c.seal(f, flowPurpose)
	}
	c.setCookie(flowCookie, flowPath, text, int(flowFor/time.Second))
	return err
}
