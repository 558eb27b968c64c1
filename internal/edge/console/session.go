package console

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

const (
	// sessionCookie is the name of the cookie.
	sessionCookie = "deployctl_console"
	// sessionFor is how long a session lasts, at most: its token may end before.
	sessionFor = 12 * time.Hour
)

// session is what a browser keeps, sealed. Each call checks its token again, so that a session ends with it, and every
// process of the service knows all sessions. The browser cannot read the token, and its cookie opens nothing but these
// pages.
type session struct {
	Token string    `json:"token"`
	Ends  time.Time `json:"ends"`
}

var errNoSession = deployments.Errorf(deployments.CodeUnauthorized, "log in to see this page")

// session returns the session of a call.
func (c *call) session() (s session, err error) {
	cookies := c.CookiesNamed(sessionCookie)
	if len(cookies) != 1 {
		return s, errNoSession
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookies[0].Value)
	if err == nil {
		sealed, err = c.console.Box.Open(sealed, Purpose)
	}
	if err == nil {
		err = json.Unmarshal(sealed, &s)
	}
	if err != nil || !c.console.now().Before(s.Ends) {
		return session{}, errNoSession
	}
	return s, nil
}

// keep has the browser keep a session with a token.
func (c *call) keep(token string) error {
	s := session{token, c.console.now().Add(sessionFor)}
	plain, err := json.Marshal(s)
	if err == nil {
		c.setCookie(base64.RawURLEncoding.EncodeToString(c.console.Box.Seal(plain, Purpose)), int(sessionFor/time.Second))
	}
	return err
}

// forget has the browser forget its session.
func (c *call) forget() { c.setCookie("", -1) }

// setCookie sets the cookie. The browser sends it to the console alone, over TLS if the page came so, shows it to no
// script, and adds it to no request that another site begins.
func (c *call) setCookie(value string, age int) {
	http.SetCookie(c.answer, &http.Cookie{Name: sessionCookie, Value: value, Path: Root[:len(Root)-1], MaxAge: age,
		HttpOnly: true, SameSite: http.SameSiteStrictMode, Secure: c.secure()})
}

// secure reports whether the browser has called by TLS, of this process or of a proxy before it.
func (c *call) secure() bool { return c.TLS != nil || c.Header.Get("X-Forwarded-Proto") == "https" }

// unadmitted answers a reader who is not logged in with the page where they can do so, and returns other errors. A
// browser that follows the link of another site sends no cookie with that, so it is sent once more by a page of ours.
func (c *call) unadmitted(err error) (answer, error) {
	if c.refused = !errors.Is(err, errNoSession); c.refused {
		_, c.entry.Error = c.told(err)
		c.entry.Code = deployments.CodeOf(err)
	}
	if deployments.CodeOf(err) != deployments.CodeUnauthorized {
		return answer{}, err
	}
	if _, gone := c.Cookie(sessionCookie); gone == nil {
		c.forget()
	} else if c.Header.Get("Sec-Fetch-Site") == "cross-site" && c.Method == http.MethodGet {
		return c.page("again", page{Title: "One moment", Again: c.RequestURI})
	}
	if c.Header.Get(liveHeader) != "" { // the script loads the page anew, which leads here again
		return answer{}, err
	}
	return redirect(Root + "login?" + url.Values{"to": {c.RequestURI}}.Encode()), nil
}

// local returns the page to which a login leads: one of the console, whatever was asked for.
func local(to string) string {
	at, err := url.Parse(to)
	if err != nil || at.Scheme != "" || at.Host != "" || at.Opaque != "" || at.User != nil || len(to) > 2000 ||
		!strings.HasPrefix(to, Root) || strings.ContainsAny(to, "\\\r\n\t") ||
		strings.TrimSuffix(at.Path, "/") != path.Clean(at.Path) {
		return Root
	}
	return (&url.URL{Path: at.Path, RawQuery: at.RawQuery}).String()
}
