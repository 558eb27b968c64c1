//go:build unix

package attack

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// pageAttacks are those of a web page that the user has open in a browser which has also opened the service's Web UI.
var pageAttacks = []attack{
	{"page/rebound-name", reboundName},
	{"page/foreign-post", foreignPost},
	{"page/foreign-read", foreignRead},
	{"page/websocket", webSocket},
	{"page/used-link", usedLink},
	{"page/console", consoleOfOthers},
	{"page/forged-session", forgedSession},
	{"page/left-script", leftScript}, // last: it restarts the service
}

// evil is where the page is from.
const evil = "http://evil.example"

// browser is one whose user has opened a link to the Web UI.
type browser struct {
	*http.Client
	link string // the one that was opened
	http map[string]string
	ui   string
}

var uiLink = regexp.MustCompile(`http://\S+/open\?link=\S+`)

func (f *field) browser(t *testing.T) browser {
	t.Helper()
	link := uiLink.FindString(f.victim.Must(t, "dev", "status"))
	jar, err := cookiejar.New(nil)
	harness.Must(t, err)
	b := browser{porttest.Browser(jar), link, nil, f.status(t).UIURL}
	b.Timeout = waittest.Patience
	b.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	res, err := b.Get(link)
	harness.Must(t, err)
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatalf("the link answers %s", res.Status)
	}
	b.http = map[string]string{"the Web UI": b.ui, "S3": f.S3(t).Endpoint, "the API": "http://" +
		f.status(t).APIAddress}
	return b
}

// ask sends a request with headers, and returns the answer; nil when there is none in HTTP/1.1.
func (b browser) ask(t *testing.T, method, address, body string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, address, strings.NewReader(body))
	harness.Must(t, err)
	for _, header := range headers {
		name, value, _ := strings.Cut(header, ": ")
		if r.Header.Set(name, value); name == "Host" {
			r.Host = value
		}
	}
	res, err := b.Do(r)
	if err != nil {
		return nil, ""
	}
	defer func() { _ = res.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(res.Body, 1<<20)) // what came tells
	return res, string(text)
}

// paths are what a page would ask for.
var paths = []string{
	"/", "/api/v1/namespaces/deployctl/workflows", "/api/v1/settings", "/codec/decode", "/deployctl?list-type=2",
	"/metrics", "/deployctl.v1.Stacks/ListStacks",
	"/api/v1/cluster-info", "/open",
}

// reboundName has its own host's name lead to the loopback address: then the page is of the same origin as the service.
func reboundName(t *testing.T, f *field) {
	b := f.browser(t)
	ui, err := url.Parse(b.ui)
	harness.Must(t, err)
	session := "Cookie: " + b.Jar.Cookies(ui)[0].String() // as if the link had been opened under that name
	for what, base := range b.http {
		port := base[strings.LastIndex(base, ":"):]
		for _, host := range []string{"127.0.0.1" + port, "localhost" + port, "x.localhost" + port,
			"evil.example" + port, "evil.example", "localhost.evil.example" + port,
			"127.0.0.1.nip.io" + port} {
			for _, path := range paths {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					res, text := b.ask(t, method, base+path, "{}", "Host: "+host, "Origin: http://"+host,
						"Sec-Fetch-Site: same-origin", session)
					if res != nil && res.StatusCode < 400 {
						t.Errorf("%s answers %s %s for host %s with %s: %.200s", what, method, path, host, res.Status,
							text)
					}
					noSecrets(t, what, text)
				}
			}
		}
	}
}

// foreignPost has the browser send forms and scripts' requests with the user's cookie.
func foreignPost(t *testing.T, f *field) {
	b := f.browser(t)
	gate, err := f.hold(t)
	harness.Must(t, err)
	workflow := b.ui + "/api/v1/namespaces/deployctl/workflows/" + url.PathEscape(f.running(t, "update"))
	for _, way := range [][]string{
		{"Origin: " + evil, "Sec-Fetch-Site: cross-site"}, {"Origin: " + evil},
		{"Origin: null", "Sec-Fetch-Site: cross-site"},
		{"Origin: http://127.0.0.1:1", "Sec-Fetch-Site: same-site"}, {"Sec-Fetch-Site: same-site"},
		{"Sec-Fetch-Site: cross-site"},
	} {
		for _, kind := range []string{"text/plain", "application/x-www-form-urlencoded", "application/json"} {
			for _, act := range []string{"/cancel", "/terminate", "/signal/cancel", "/update/submit", "/reset",
				"/query/progress"} {
				res, text := b.ask(t, http.MethodPost, workflow+act, `{"reason":"attack"}`,
					append(way, "Content-Type: "+kind)...)
				if res == nil || res.StatusCode < 400 {
					t.Errorf("POST %s by way of %v: %v %.200s", act, way, res, text)
				}
			}
		}
	}
	for _, act := range []string{"/terminate", "/signal/cancel", "/reset"} { // even a page of the Web UI itself
		if res, _ := b.ask(t, http.MethodPost, workflow+act, `{"reason":"attack"}`, "Origin: "+b.ui,
			"Sec-Fetch-Site: same-origin"); res == nil || res.StatusCode < 400 {
			t.Errorf("the Web UI takes %s: %v", act, res)
		}
	}
	gate(t)
}

// foreignRead has a script of the page read what the browser's cookie opens, and asks whether it may.
func foreignRead(t *testing.T, f *field) {
	b := f.browser(t)
	for what, base := range b.http {
		for _, path := range paths {
			res, _ := b.ask(t, http.MethodOptions, base+path, "", "Origin: "+evil,
				"Access-Control-Request-Method: POST", "Access-Control-Request-Private-Network: true")
			get, text := b.ask(t, http.MethodGet, base+path, "", "Origin: "+evil, "Sec-Fetch-Site: cross-site",
				"Sec-Fetch-Mode: cors", "Sec-Fetch-Dest: empty")
			for _, r := range []*http.Response{res, get} {
				if r == nil {
					continue
				}
				if allowed := r.Header.Get("Access-Control-Allow-Origin"); allowed == "*" || allowed == evil {
					t.Errorf("%s lets a page of %s read %s", what, allowed, path)
				}
				if r.Header.Get("Access-Control-Allow-Private-Network") != "" {
					t.Errorf("%s lets pages of the internet in", what)
				}
			}
			noSecrets(t, what, text)
			if what == "the Web UI" && get != nil && get.StatusCode < 400 {
				t.Errorf("the Web UI answers a script of another page on %s with %s", path, get.Status)
			}
			frame, _ := b.ask(t, http.MethodGet, base+path, "", "Sec-Fetch-Site: cross-site",
				"Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe")
			if what == "the Web UI" && frame != nil && frame.StatusCode < 400 {
				t.Errorf("the Web UI is shown in a frame of another page: %s", path)
			}
		}
	}
}

// webSocket opens sockets, which no rule about origins holds for.
func webSocket(t *testing.T, f *field) {
	b := f.browser(t)
	for what, base := range b.http {
		for _, path := range paths {
			res, _ := b.ask(t, http.MethodGet, base+path, "", "Origin: "+evil, "Connection: Upgrade",
				"Upgrade: websocket", "Sec-WebSocket-Version: 13",
				"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-Fetch-Site: cross-site",
				"Sec-Fetch-Mode: websocket")
			if res != nil && res.StatusCode < 400 && what != "the API" {
				t.Errorf("%s answers a socket on %s with %s", what, path, res.Status)
			}
			if res != nil && res.StatusCode == http.StatusSwitchingProtocols {
				t.Errorf("%s opens a socket on %s", what, path)
			}
		}
	}
}

// usedLink opens a link again that somebody has seen, and has one lead elsewhere.
func usedLink(t *testing.T, f *field) {
	b := f.browser(t)
	stranger := browser{Client: porttest.Browser(nil)}
	stranger.CheckRedirect = b.CheckRedirect
	if res, _ := stranger.ask(t, http.MethodGet, b.link, ""); res == nil || res.StatusCode < 400 ||
		len(res.Cookies()) > 0 {
		t.Errorf("a link is opened twice: %v", res)
	}
	fresh := uiLink.FindString(f.victim.Must(t, "dev", "status"))
	for _, to := range []string{"//evil.example", "/\\evil.example", evil} {
		res, text := stranger.ask(t, http.MethodGet, uiLink.FindString(
			f.victim.Must(t, "dev", "status"))+"&to="+url.QueryEscape(to), "")
		if res == nil || strings.Contains(res.Header.Get("Location"), "evil") || strings.Contains(text, `"`+to) ||
			strings.Contains(text, `"http://evil`) {
			t.Errorf("a link leads to %s: %v %s", to, res, text)
		}
	}
	if res, _ := stranger.ask(t, http.MethodGet, fresh, "", "Host: evil.example"); res == nil || res.StatusCode < 400 ||
		len(res.Cookies()) > 0 {
		t.Errorf("a link is opened under another name: %v", res)
	}
}
