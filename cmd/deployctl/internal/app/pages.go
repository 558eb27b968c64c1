package app

import (
	"context"
	"net/url"
	"strings"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/edge/console"
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
