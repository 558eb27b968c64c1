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
	// sessionCookie is the name of the cookie, and sessionPath where the browser sends it. Over TLS, the name begins with
	// hostPrefix: browsers take such a cookie of this host alone, and then it is for all paths.
	sessionCookie, sessionPath = "deployctl_console", "/console"
	hostPrefix                 = "__Host-"
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
	if text := c.sealed(sessionCookie, Purpose); text != nil {
		err = json.Unmarshal(text, &s)
	}
	if err != nil || !c.console.now().Before(s.Ends) {
		return session{}, errNoSession
	}
	return s, nil
}

// sealed returns what a cookie of the browser has that was sealed for a purpose; nil if there is none, or another one.
func (c *call) sealed(cookie, purpose string) []byte {
	cookies := c.CookiesNamed(c.named(cookie))
	if len(cookies) != 1 {
		return nil
	}
	sealed, err := base64.RawURLEncoding.DecodeString(cookies[0].Value)
	if err != nil {
		return nil
	}
	text, err := c.console.Box.Open(sealed, purpose)
	if err != nil {
		return nil
	}
	return text
}

// seal returns something as a cookie has it.
func (c *call) seal(what any, purpose string) (string, error) {
	plain, err := json.Marshal(what)
	return base64.RawURLEncoding.EncodeToString(c.console.Box.Seal(plain, purpose)), err
}

// keep has the browser keep a session with a token, which ends at a time if that is not zero.
func (c *call) keep(token string, ends time.Time) error {
	now := c.console.now()
	s := session{token, now.Add(sessionFor)}
	if !ends.IsZero() && ends.Before(s.Ends) {
		s.Ends = ends
	}
	text, err := c.seal(s, Purpose)
	if err == nil {
		c.setCookie(sessionCookie, sessionPath, text, max(1, int(s.Ends.Sub(now)/time.Second)))
	}
	return err
}

// forget has the browser forget its session.
func (c *call) forget() { c.setCookie(sessionCookie, sessionPath, "", -1) }

// named returns the name of a cookie as the browser has it. With hostPrefix, no server of a sibling domain can set it.
func (c *call) named(cookie string) string {
	if c.secure() {
		return hostPrefix + cookie
	}
	return cookie
}

// setCookie sets a cookie. The browser sends it to its path alone, or over TLS alone if the page came so, and shows
// it to no script. A session is added to no request that another site begins; the flow of a login, to a page that
// another one leads to.
func (c *call) setCookie(name, path, value string, age int) {
	site := http.SameSiteStrictMode
	if name == flowCookie {
		site = http.SameSiteLaxMode
	}
	if c.secure() {
		path = "/"
	}
	http.SetCookie(c.answer, &http.Cookie{Name: c.named(name), Value: value, Path: path, MaxAge: age, HttpOnly: true,
		SameSite: site, Secure: c.secure()})
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
	if _, gone := c.Cookie(c.named(sessionCookie)); gone == nil {
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
