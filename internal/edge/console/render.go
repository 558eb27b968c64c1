package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/values/safetext"
)

//go:embed pages/*.html
var pageFiles embed.FS

// liveHeader is sent by the script when it fetches a page again.
const liveHeader = "X-Console-Live"

// page is what every page has.
type page struct {
	Title string
	// Path leads from the home to the page.
	Path []link
	// Tabs are the pages of a stack.
	Tabs []tab
	// Refresh is after how many seconds the page is worth another look; 0: it stays as it is.
	Refresh int
	// Summary says in a few words how things are, for those who do not see the page change.
	Summary string
	// Again is the page that the browser is to go to at once.
	Again string
	Data  any

	// The following is of every page.
	Name            string // of the template
	User            string // empty: nobody is logged in
	Style, Script   string // digests
	Now             time.Time
	Mode            *deployments.Mode
	TemporalAddress string
}

type link struct{ Text, To string }

type tab struct {
	link
	Current bool
}

// templates are parsed when the first page is asked for: most processes of this binary show none.
var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"time": timestamp, "line": safetext.Line, "stack": stackURL, "short": short, "web": web, "plural": plural,
		"took": took, "list": func(of ...any) []any { return of },
	}).ParseFS(pageFiles, "pages/*.html"))
})

// digests are those of the files that pages name.
var digests = sync.OnceValue(func() [2]string { return [2]string{digest("style.css"), digest("script.js")} })

// page renders a page.
func (c *call) page(name string, p page) (answer, error) {
	p.Name, p.Now, p.User = name, c.console.now(), c.caller.Name()
	p.Style, p.Script = digests()[0], digests()[1]
	var text bytes.Buffer
	err := templates().ExecuteTemplate(&text, "page", p)
	return answer{kind: "text/html; charset=utf-8", text: text.Bytes()}, err
}

// failed renders the page about an error.
func (c *call) failed(status int, text string) answer {
	a, err := c.page("failed", page{Title: http.StatusText(status), Data: text})
	if err != nil {
		a = answer{kind: "text/plain; charset=utf-8", text: []byte(text)}
	}
	a.status = status
	return a
}

// stackURL returns the page of a stack.
func stackURL(s deployments.StackName) string {
	return Root + url.PathEscape(s.Organization) + "/" + url.PathEscape(s.Project) + "/" + url.PathEscape(s.Stack)
}

// updateURL returns the page of an update.
func updateURL(u deployments.UpdateName) string {
	return stackURL(u.StackName) + "/updates/" + url.PathEscape(u.Version)
}

// moment is a time as pages show it: how long ago, and exactly.
type moment struct{ Exact, Machine, Ago string }

// timestamp describes a time as seen from another one; nil if it is not known.
func timestamp(t, now time.Time) *moment {
	if t.IsZero() {
		return nil
	}
	ago := rough(now.Sub(t)) + " ago"
	if t.After(now) {
		ago = "in " + rough(t.Sub(now))
	}
	return &moment{t.UTC().Format("2006-01-02 15:04:05 UTC"), t.UTC().Format(time.RFC3339), ago}
}

// rough writes about how long something is ago.
func rough(d time.Duration) string {
	switch {
	case d < time.Minute:
		return took(d)
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return took(d)
}

// took writes a duration for people. Times of events are known to the second.
func took(d time.Duration) string {
	switch d = d.Round(time.Second); {
	case d < time.Second:
		return "<1 s"
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", d/time.Minute, d%time.Minute/time.Second)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

// short returns the beginning of a text of others, on one line.
func short(n int, text string) string {
	if runes := []rune(safetext.Line(text)); len(runes) > n {
		return string(runes[:n-1]) + "…"
	}
	return safetext.Line(text)
}

// web returns a text if it is the address of a page on the web, and else nothing.
func web(text string) string {
	at, err := url.Parse(text)
	if err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Host == "" || at.User != nil ||
		strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return ""
	}
	return text
}

func plural(n int, one string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %ss", n, one)
}
