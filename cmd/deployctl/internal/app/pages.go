package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/edge/console"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/edge/pulumiapi"
	"github.com/deployctl/deployctl/internal/service/identity"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// pages is what the console of browsers needs of the settings.
type pages struct {
	temporal  string // see console.Config
	tokenHint string
	login     *identity.Registration // nil: people log in with tokens only
}

// pagesOf reads the settings of the console; nil: there is to be none. The address is where Temporal's Web UI shows the
// namespace, if no setting says it.
func pagesOf(s settings.Settings, temporal string) (*pages, error) {
	switch on := s.Get(settings.Console); on {
	case "on":
	case "off":
		return nil, nil
	default:
		return nil, deployments.Errorf(deployments.CodeInvalid, "console must be on or off, not %q (set by %s)", on,
			s.Source(settings.Console))
	}
	p := &pages{temporal: temporal}
	if text := s.Get(settings.TemporalWebUI); text != "" {
		if !isPage(text) {
			return nil, deployments.Errorf(deployments.CodeInvalid, "temporal.web-ui must be the address of Temporal's Web UI, "+
				"such as https://temporal.internal, not %q (set by %s)", text, s.Source(settings.TemporalWebUI))
		}
		p.temporal = strings.TrimSuffix(text, "/") + "/namespaces/" + url.PathEscape(s.Get(settings.TemporalNamespace))
	}
	return p, nil
}

// isPage reports whether a text is the address of a page, without a query.
func isPage(text string) bool {
	at, err := url.Parse(text)
	return err == nil && (at.Scheme == "http" || at.Scheme == "https") && at.Host != "" && at.User == nil &&
		at.RawQuery == "" && !at.ForceQuery && at.Fragment == ""
}

// scope is what a scope looks like (RFC 6749).
var scope = regexp.MustCompile(`^[!#-[\]-~]+$`)

// loginOf reads the settings of the login with an identity provider; nil: there is to be none.
func loginOf(s settings.Settings) (*identity.Registration, error) {
	issuer, id, at := s.Get(settings.LoginIssuer), s.Get(settings.LoginClientID), s.Get(settings.LoginAddress)
	secret, err := s.Secret(settings.LoginClientSecret)
	if err != nil {
		return nil, err
	}
	if issuer == "" && id == "" && at == "" && secret == "" {
		return nil, nil
	}
	for _, key := range []settings.Key{settings.LoginIssuer, settings.LoginClientID, settings.LoginAddress} {
		if s.Get(key) == "" {
			return nil, deployments.Errorf(deployments.CodeInvalid, "the login to the console with an identity provider also "+
				"needs %s (--%s): login.issuer, login.client-id and login.address belong together", key, key.Flag())
		}
	}
	if err := deployments.ValidateIssuer(issuer); err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "login.issuer (set by %s): %w",
			s.Source(settings.LoginIssuer), err)
	}
	origin, _ := url.Parse(at) // isPage has
	if !isPage(at) || strings.Trim(origin.Path, "/") != "" ||
		origin.Scheme != "https" && !grpcapi.IsLoopback(origin.Hostname()) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "login.address must be where browsers reach the console, "+
			"without a path and with TLS, such as https://pulumi.example.com:8443, not %q (set by %s)", at,
			s.Source(settings.LoginAddress))
	}
	r := &identity.Registration{Issuer: issuer, ID: id, Secret: secret, Return: console.ReturnAddress(origin),
		Scopes: strings.Fields(s.Get(settings.LoginScopes))}
	if !slices.Contains(r.Scopes, "openid") ||
		slices.ContainsFunc(r.Scopes, func(one string) bool { return !scope.MatchString(one) }) {
		return nil, deployments.Errorf(deployments.CodeInvalid, "login.scopes must be scopes of the provider, separated by "+
			"spaces, and openid among them, not %q (set by %s)", s.Get(settings.LoginScopes), s.Source(settings.LoginScopes))
	}
	return r, nil
}

// openPages reads the settings of the console, which is served if there is an address for it.
func (o *start) openPages(served bool) {
	pages, err := pagesOf(o.settings, "")
	o.setting(err)
	login, err := loginOf(o.settings)
	o.setting(err)
	switch {
	case login == nil:
	case pages == nil || !served:
		o.warn("login", errNoPages)
	default:
		pages.login = login
	}
	o.in.pages = pages
}

var errNoPages = errors.New("the settings of the login with an identity provider have no effect, because this serve " +
	"has no console: set pulumi-listen, and console to on")

// tryLogin asks the identity provider whether people can log in with it. With a token they can in any case.
func (o *start) tryLogin(ctx context.Context) {
	if o.node == nil || o.node.login == nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, checkPatience)
	defer cancel()
	if err := o.node.login.Check(ctx); err != nil {
		o.warn("login", fmt.Errorf("people can log in to the console with tokens only: %w", err))
		return
	}
	o.add("login", "with "+o.node.login.Name(), nil)
}

// tellWhere has the page of the login say where the user of an embedded service finds a token.
func (p *pages) tellWhere(home string) {
	if p != nil {
		p.tokenHint = "The embedded service has a new one at each start, in the file " + stockTokenFile(home) + "."
	}
}

// addConsole adds the console to an edge, unless there is to be none.
func (n *node) addConsole(ctx context.Context, c *pulumiapi.Config) error {
	if n.pages == nil {
		return nil
	}
	k, err := console.New(ctx, console.Config{Service: n.stock, Authority: c.Authority, Auditor: n.audit, Memory: c.Memory,
		Calls: c.Calls, Box: n.store.Keys.Ring().Box(console.Purpose), Temporal: n.pages.temporal,
		TokenHint: n.pages.tokenHint, Provider: n.login, Tracing: c.Tracing, Log: c.Log, Counted: c.Counted})
	if err == nil {
		c.Console = k
	}
	return err
}

// consoleOf is where the console of the embedded service is; empty if it is not served.
func consoleOf(loaded settings.Settings, s devserver.Status) string {
	if s.PulumiAddress == "" || loaded.Get(settings.Console) != "on" {
		return ""
	}
	return "http://" + s.PulumiAddress + console.Root + " (log in with the token in " + s.PulumiTokenFile + ")"
}
