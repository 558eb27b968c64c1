package pulumiapi

import (
	"bytes"
	"crypto/rand"
	"embed"
	"html/template"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

//go:embed pages.html
var pageFiles embed.FS

// pageTemplates are parsed when the first page is asked for: most processes of this binary show none.
var pageTemplates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{"when": shownTime}).ParseFS(pageFiles, "pages.html"))
})

// The paths that the stock CLI names on the console.
const (
	loginPath     = "/cli-login"
	stackPagePath = "/{org}/{project}/{stack}"
)

// pageRoutes are plain pages for browsers, at the paths that the stock CLI prints. They have no session: each asks for
// a token, so that no other page can act in the name of who reads them.
func pageRoutes() []route {
	const deriving, seeing, past = api.Tokens_DeriveToken_FullMethodName, api.Stacks_GetStack_FullMethodName,
		api.Stacks_History_FullMethodName
	page := func(method, path string, handle func(*call) (any, error)) route {
		return route{method: method, path: path, by: byAnyone, handle: handle, failed: failedPage}
	}
	form := func(path, like string, handle func(*call) (any, error)) route {
		return route{method: http.MethodPost, path: path, by: byIdentity, like: like, limit: formBody, handle: handle,
			failed: failedPage}
	}
	return []route{
		page(http.MethodGet, loginPath, loginPage), form(loginPath, deriving, loginCLI),
		page(http.MethodGet, "/welcome/cli", func(c *call) (any, error) {
			return c.page("welcome", "The Pulumi CLI is logged in", nil)
		}),
		page(http.MethodGet, "/user/settings/tokens", func(c *call) (any, error) {
			return c.page("tokens", "Access tokens", nil)
		}),
		{method: http.MethodGet, path: "/{user}", by: byAnyone, handle: userPage},
		page(http.MethodGet, stackPagePath, askPage), form(stackPagePath, seeing, stackPage),
		page(http.MethodGet, stackPagePath+"/updates/{version}", askPage),
		form(stackPagePath+"/updates/{version}", past, updatePage),
		page(http.MethodGet, stackPagePath+"/previews/{id}", askPage),
		form(stackPagePath+"/previews/{id}", seeing, stackPage),
	}
}

// page renders a template. The browser loads nothing, shows it in no frame, and sends forms here only.
func (c *call) page(name, title string, data any) (any, error) {
	return c.pageTo(name, title, data, "")
}

// pageTo is page for a form whose answer leads to another origin: Chromium holds form-action for redirects, too.
func (c *call) pageTo(name, title string, data any, origin string) (any, error) {
	style := rand.Text()
	c.answer.Header().Set("Content-Security-Policy", strings.TrimSpace("default-src 'none'; base-uri 'none'; "+
		"frame-ancestors 'none'; style-src 'nonce-"+style+"'; form-action 'self' "+origin))
	c.answer.Header().Set("X-Frame-Options", "DENY")
	c.answer.Header().Set("Cross-Origin-Opener-Policy", "same-origin")
	var text bytes.Buffer
	err := pageTemplates().ExecuteTemplate(&text, "page", map[string]any{"Name": name, "Title": title, "Style": style,
		"Data": data, "Path": c.URL.Path})
	return content{"text/html; charset=utf-8", text.Bytes()}, err
}

// failedPage shows an error.
func failedPage(c *call, status int, e apitype.ErrorResponse) (int, any) {
	shown, err := c.page("failed", "This did not work", e.Message)
	if err != nil {
		return http.StatusInternalServerError, e
	}
	return status, shown
}

// session is what the CLI says about itself when it opens the page: where it listens, and what it expects to be sent.
type session struct {
	Port               int
	Nonce, Description string
}

var validNonce = regexp.MustCompile(`^[A-Za-z0-9_-]{16,200}$`)

// sessionOf reads and checks a session.
func (c *call) sessionOf(values url.Values) (session, error) {
	port, err := strconv.ParseUint(values.Get("cliSessionPort"), 10, 16)
	s := session{int(port), values.Get("cliSessionNonce"), clean(values.Get("cliSessionDescription"))}
	if err != nil || port == 0 || !validNonce.MatchString(s.Nonce) {
		return s, deployments.Errorf(deployments.CodeInvalid, "this page is opened by `pulumi login`, and its address was "+
			"changed: run the command again")
	}
	if c.edge.Callback == nil {
		return s, nil
	}
	return s, c.edge.Callback(s.Port)
}

// origin is the CLI's, which listens on loopback: the token goes nowhere else.
func (s session) origin() string {
	return "http://" + net.JoinHostPort("127.0.0.1", strconv.Itoa(s.Port))
}

// loginPage asks for a token, from which the CLI gets one of its own.
func loginPage(c *call) (any, error) {
	s, err := c.sessionOf(c.query())
	if err != nil {
		return nil, err
	}
	return c.pageTo("login", "Log in the Pulumi CLI", s, s.origin())
}

// loginFor is how long the CLI's token lasts, at most.
const loginFor = 90 * 24 * time.Hour

// fromHost finds the machine in the description of a session.
var fromHost = regexp.MustCompile(` on ([A-Za-z0-9][A-Za-z0-9-]{0,30})`)

// loginCLI makes a token for the CLI from the one in the form, and sends the browser to the CLI with it.
func loginCLI(c *call) (any, error) {
	form, err := c.enter()
	if err != nil {
		return nil, err
	}
	s, err := c.sessionOf(form)
	if err != nil {
		return nil, err
	}
	name := "pulumi-"
	if host := fromHost.FindStringSubmatch(s.Description); host != nil {
		name += host[1] + "-"
	}
	name += strings.ToLower(rand.Text()[:8])
	c.entry.Subject = "name=" + name
	text, err := c.administered().DeriveToken(c.Context(), deployments.Token{Name: name,
		Expires: time.Now().Add(loginFor).Truncate(time.Second)})
	if err != nil {
		return nil, err
	}
	to := s.origin() + "/?" + url.Values{"accessToken": {text}, "nonce": {s.Nonce}}.Encode()
	c.answer.Header().Set("Location", to)
	return redirect{}, nil
}

// redirect is an answer that sends the browser to the address in the header Location, with GET.
type redirect struct{}

// enter reads the form of a page and checks its token as the route demands. A page of another origin cannot send it.
func (c *call) enter() (url.Values, error) {
	if err := http.NewCrossOriginProtection().Check(c.Request); err != nil {
		c.refused = true
		return nil, deployments.Errorf(deployments.CodeForbidden, "the form was sent by another page")
	}
	form, err := c.form()
	if err != nil {
		return nil, err
	}
	c.caller, err = c.edge.gate.Caller(c.Context(), strings.TrimSpace(form.Get("token")), grpcapi.Host(c.RemoteAddr))
	c.identify()
	if c.caller.Token != "" {
		_ = c.validNames() // which they are
	}
	if err == nil && c.stack == (deployments.StackName{}) {
		err = c.route.does.Allow(c.caller, false)
	} else if err == nil {
		err = c.route.does.Allow(c.caller, false, c.stack)
	}
	c.refused = err != nil
	return form, err
}

// consolePath is where the console has its pages.
const consolePath = "/console"

// ofConsole reports whether a path is the console's, or leads to its first page.
func ofConsole(path string) bool {
	return path == "/" || path == consolePath || strings.HasPrefix(path, consolePath+"/")
}

// userPage is what the stock CLI names when it has logged in. It leads to all that its reader sees.
func userPage(c *call) (any, error) {
	if c.edge.Console == nil || c.PathValue("user") == "api" {
		return nil, notServed(c.Request)
	}
	c.answer.Header().Set("Location", consolePath+"/")
	return redirect{}, nil
}

// askPage leads to the page of the console or, without one, asks for a token to show what is at the path.
func askPage(c *call) (any, error) {
	if c.edge.Console != nil {
		c.answer.Header().Set("Location", consolePath+c.URL.EscapedPath())
		return redirect{}, nil
	}
	return c.page("ask", c.stack.String(), nil)
}

// shownUpdates is how many updates the page of a stack lists.
const shownUpdates = 50

// stackPage shows a stack with its latest updates.
func stackPage(c *call) (any, error) {
	if _, err := c.enter(); err != nil {
		return nil, err
	}
	info, err := c.edge.Service.Stack(c.Context(), c.stack)
	if err != nil {
		return nil, err
	}
	updates, err := c.edge.Service.History(c.Context(), c.stack, shownUpdates)
	if err != nil {
		return nil, err
	}
	return c.page("stack", c.stack.String(), map[string]any{"Info": info, "Updates": updates})
}

// updatePage shows one update.
func updatePage(c *call) (any, error) {
	if _, err := c.enter(); err != nil {
		return nil, err
	}
	name := deployments.UpdateName{StackName: c.stack, Version: c.PathValue("version")}
	none := deployments.Errorf(deployments.CodeNotFound, "%s has no update %s", c.stack, clean(name.Version))
	if name.Validate() != nil || name.Number() == 0 {
		return nil, none
	}
	u, err := c.edge.Service.Info(c.Context(), name)
	if notFound(err) {
		err = none
	}
	if err != nil {
		return nil, err
	}
	return c.page("update", c.stack.String()+", update "+u.Update.Version, u)
}

// shownTime writes a time for people.
func shownTime(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2006-01-02 15:04:05 UTC")
}
