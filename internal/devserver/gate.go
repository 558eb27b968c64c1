package devserver

import (
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"
)

const (
	// linkLife is how long a link to the Web UI can be opened, and sessionLife for how long a browser that did is let
	// in.
	linkLife, sessionLife = 10 * time.Minute, 24 * time.Hour
	// sessionCookie tells a browser that has opened a link.
	sessionCookie = "deployctl_ui"
	// openPath is where links lead.
	openPath = "/open"
)

// gate lets browsers to the Web UI that have opened a link of this instance, for pages of this very address, and lets
// them change nothing but to cancel a workflow.
type gate struct {
	address   string // the only Host that is served
	key       []byte
	ui, codec http.Handler // codec may be nil
	origin    *http.CrossOriginProtection

	mu   sync.Mutex
	used map[string]bool // links that were opened
}

func newGate(s Status, k Keys, ui, codec http.Handler) (*gate, error) {
	key, err := gateKey(s, k)
	return &gate{
		address: strings.TrimPrefix(s.UIURL, "http://"), key: key, ui: ui, codec: codec,
		origin: http.NewCrossOriginProtection(), used: map[string]bool{},
	}, err
}

// gateKey signs links and sessions of an instance: of links of others, it does not know which were opened.
func gateKey(s Status, k Keys) ([]byte, error) {
	return hkdf.Key(sha256.New, k.Master, []byte(s.Instance), "deployctl Web UI", 32)
}

// UILink makes a link that opens the Web UI of a running service in one browser, once, within minutes.
func UILink(s Status) (string, error) {
	keys, err := ReadKeys(s.Home)
	if err != nil {
		return "", err
	}
	key, err := gateKey(s, keys)
	if err != nil {
		return "", err
	}
	random := make([]byte, 8)
	_, _ = rand.Read(random) // never fails
	link := signed(key, "link", time.Now().Add(linkLife), hex.EncodeToString(random))
	return s.UIURL + openPath + "?link=" + url.QueryEscape(link), nil
}

// signed is a text that says until when it is good for a use.
func signed(key []byte, use string, until time.Time, salt string) string {
	text := strconv.FormatInt(until.Unix(), 10) + "." + salt
	return text + "." + sign(key, use, text)
}

func sign(key []byte, use, text string) string {
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(use + "\x00" + text))
	return hex.EncodeToString(mac.Sum(nil))
}

// good says whether a text was signed for the use and is still good.
func (g *gate) good(use, text string) bool {
	at := strings.LastIndex(text, ".")
	if at < 0 || !hmac.Equal([]byte(text[at+1:]), []byte(sign(g.key, use, text[:at]))) {
		return false
	}
	until, _, _ := strings.Cut(text, ".")
	expiry, err := strconv.ParseInt(until, 10, 64)
	return err == nil && time.Now().Unix() <= expiry
}

func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	head := w.Header()
	head.Set("X-Frame-Options", "SAMEORIGIN")
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "same-origin")
	if r.Host != g.address { // a name that somebody else has pointed here
		http.Error(w, "unknown host: the Web UI is at http://"+g.address, http.StatusMisdirectedRequest)
		return
	}
	if r.Method == http.MethodGet && r.URL.Path == openPath {
		g.open(w, r)
		return
	}
	cookie, err := r.Cookie(sessionCookie)
	switch {
	case err != nil || !g.good("session", cookie.Value):
		http.Error(w, "open the Web UI by the link of `deployctl dev status`", http.StatusUnauthorized)
	case foreign(r) || g.origin.Check(r) != nil:
		http.Error(w, "this request was made by another site's page", http.StatusForbidden)
	case g.codec != nil && r.Method == http.MethodPost && r.URL.Path == codecPath+"/decode":
		g.codec.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead && !harmless(r):
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte(`{"code":7,"message":"the Web UI only shows and cancels: use deployctl for everything else"}` + "\n"))
	default:
		g.ui.ServeHTTP(w, r)
	}
}

// foreign says whether the page of another address made the request. A cookie does not tell; a person who follows a
// link to here is welcome.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
		return false
	}
	return r.Method != http.MethodGet || r.Header.Get("Sec-Fetch-Mode") != "navigate" ||
		r.Header.Get("Sec-Fetch-Dest") != "document"
}

// harmless matches what may be posted: a cancel, which an update survives with its state whole, and queries, which only
// read.
func harmless(r *http.Request) bool {
	return r.Method == http.MethodPost && postable.MatchString(r.URL.EscapedPath())
}

var postable = regexp.MustCompile(`^/api/v1/namespaces/[^/]+/workflows/[^/]+/(cancel|query/[^/]+)$`)

// open lets the browser in that has a link, and leads it to the page that "to" names.
func (g *gate) open(w http.ResponseWriter, r *http.Request) {
	if !g.accept(r.URL.Query().Get("link")) {
		http.Error(w, "this link has been used, is too old, or was made before the service was started again; "+
			"`deployctl dev status` prints another", http.StatusForbidden)
		return
	}
	http.SetCookie(w, &http.Cookie{ //nolint:gosec // plain HTTP, on loopback
		Name: sessionCookie, Value: signed(g.key, "session", time.Now().Add(sessionLife), "-"), Path: "/",
		MaxAge: int(sessionLife.Seconds()), HttpOnly: true, SameSite: http.SameSiteStrictMode,
	})
	to := r.URL.Query().Get("to")
	if !strings.HasPrefix(to, "/") {
		to = "/namespaces/" + Namespace + "/workflows"
	}
	nonce := token(16)
	w.Header().Set("Content-Security-Policy", fmt.Sprintf("default-src 'none'; script-src 'nonce-%s'", nonce))
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	_ = welcome.Execute(w, welcomeData{Nonce: nonce, Namespace: Namespace, To: "http://" + g.address + to,
		Columns: columns, Views: views})
}

// accept says whether the link is ours, young, and new.
func (g *gate) accept(link string) bool {
	if !g.good("link", link) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.used[link] {
		return false
	}
	g.used[link] = true
	return true
}

type (
	welcomeData struct {
		Nonce, Namespace, To string
		Columns              []column
		Views                []view
	}
	column struct {
		Label string `json:"label"`
	}
	view struct {
		ID    string `json:"id"`
		Name  string `json:"name"`
		Query string `json:"query"`
		Type  string `json:"type"`
	}
)

// What the table of workflows shows first, in place of columns that say nothing about deployments.
var (
	columns = []column{{"Status"}, {"Result"}, {"Kind"}, {"Project"}, {"Stack"}, {"Workflow ID"}, {"Initiator"},
		{"Start"}, {"End"}}
	views = []view{
		{"deployctl-updates", "Updates", "`WorkflowType`=\"Update\"", "user"},
		{"deployctl-failed", "Failed updates", "`WorkflowType`=\"Update\" AND `Result`=\"failed\"", "user"},
		{"deployctl-drift", "Drift found", "`Drift`=\"found\"", "user"},
	}
)

// welcome gives a browser those columns and views, unless its user has chosen others, and goes on. The Web UI keeps
// them in the browser alone.
var welcome = template.Must(template.New("welcome").Parse(`<!doctype html>
<meta charset="utf-8"><title>deployctl</title>
<script nonce="{{.Nonce}}">
const settings = [["namespace-workflow-table-columns", {{.Columns}}], ["saved-workflow-queries", {{.Views}}]];
for (const [key, value] of settings) {
  try {
    const all = JSON.parse(localStorage.getItem(key) || "{}");
    if ((all[{{.Namespace}}] || []).length) continue;
    localStorage.setItem(key, JSON.stringify({...all, [{{.Namespace}}]: value}));
  } catch {}
}
location.replace({{.To}});
</script>
<noscript>Temporal's Web UI needs JavaScript.</noscript>
`))
