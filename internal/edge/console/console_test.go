package console

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/edge/grpcapi"
	"github.com/deployctl/deployctl/internal/service"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var dev = deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}

// tokens are those of tests by their text, and those of a store.
type tokens struct {
	store *statestore.Store
	known map[string]deployments.Caller
}

func (t tokens) Authenticate(ctx context.Context, text string) (deployments.Caller, error) {
	if caller, ok := t.known[text]; ok {
		return caller, nil
	}
	return t.store.Access.Authenticate(ctx, text)
}

func caller(name string, role deployments.Role, organization string, stacks ...string) deployments.Caller {
	return deployments.Caller{Token: name, Authority: deployments.Authority{Grants: [][]deployments.Grant{
		{{Role: role, Organization: organization, Stacks: stacks}}}}}
}

// auditLog keeps the audit log in memory.
type auditLog struct {
	mu      sync.Mutex
	entries []deployments.AuditEntry
}

func (l *auditLog) Record(_ context.Context, e deployments.AuditEntry, _ bool) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.entries = append(l.entries, e)
	return nil
}

// offline is a service that asks no workflow. What it cannot know from the store, tests set.
type offline struct {
	*service.Service
	store   *statestore.Store
	ongoing []deployments.UpdateInfo
	// logs are what watchers are sent, by version; one that does not end goes on until its watcher leaves.
	logs map[string][]deployments.WatchEvent
	// infos and histories take the place of what the store has, if there are any.
	infos   map[string]deployments.UpdateInfo
	history []deployments.UpdateInfo
	drift   *deployments.Drift
	// deployment takes the place of the state at a version, which then is the stack's.
	deployment json.RawMessage
	version    int
	watching   chan string // gets "begin VERSION" and "end VERSION", if it is set
}

func (o *offline) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	info, err := o.store.Stack(ctx, name)
	if o.version > 0 {
		info.Version = o.version
	}
	return info, err
}

func (o *offline) Statuses(
	ctx context.Context, c deployments.Caller, q deployments.StatusQuery,
) (page deployments.StatusPage, err error) {
	list, err := o.store.ListStacks(ctx, q.Organization, q.Project)
	may := c.Stacks(deployments.RoleViewer)
	for _, info := range list {
		if may(info.Stack) {
			page.Stacks = append(page.Stacks, deployments.StackStatus{StackInfo: info})
		}
	}
	return page, err
}

func (o *offline) Ongoing(context.Context, string) ([]deployments.UpdateInfo, error) {
	return append([]deployments.UpdateInfo(nil), o.ongoing...), nil
}

func (o *offline) Schedules(context.Context, deployments.StackName) ([]deployments.Schedule, error) {
	return nil, deployments.Errorf(deployments.CodeUnavailable, "Temporal does not answer")
}

func (o *offline) Drift(context.Context, deployments.StackName) (deployments.Drift, error) {
	if o.drift == nil {
		return deployments.Drift{}, deployments.Errorf(deployments.CodeNotFound, "it was never checked")
	}
	return *o.drift, nil
}

func (o *offline) Info(ctx context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	if info, ok := o.infos[u.Version]; ok {
		info.Update = u
		return info, nil
	}
	return o.store.Updates.Info(ctx, u)
}

func (o *offline) HistoryPage(
	ctx context.Context, s deployments.StackName, p deployments.Page,
) ([]deployments.UpdateInfo, error) {
	if o.history == nil {
		return o.store.Updates.HistoryPage(ctx, s, p)
	}
	from, to := p.Bounds(len(o.history))
	return o.history[from:to], nil
}

func (o *offline) Watch(
	ctx context.Context, u deployments.UpdateName, fn func(deployments.WatchEvent) error,
) error {
	if o.watching != nil {
		o.watching <- "begin " + u.Version
		defer func() { o.watching <- "end " + u.Version }()
	}
	ended := false
	for _, e := range o.logs[u.Version] {
		ended = ended || e.End != nil
		if err := fn(e); err != nil {
			return err
		}
	}
	if !ended {
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

func (o *offline) Export(
	ctx context.Context, s deployments.StackName, version int, p deployments.SecretsProvider, show bool,
) (apitype.UntypedDeployment, error) {
	if o.deployment == nil {
		return o.Service.Export(ctx, s, version, p, show)
	}
	if show {
		panic("the console asks for secrets")
	}
	return apitype.UntypedDeployment{Version: 3, Deployment: o.deployment}, nil
}

// bench is a console over a store in memory. Its service has no Temporal.
type bench struct {
	testing.TB
	store   *statestore.Store
	service *offline
	console *Console
	audit   *auditLog
	config  Config
	ctx     context.Context
	stop    context.CancelFunc // as the end of the service does
}

func newBench(t testing.TB) *bench {
	t.Helper()
	store, err := statestore.New(storetest.NewContended(&bucket.Memory{}), statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	b := &bench{TB: t, store: store, audit: &auditLog{}}
	b.ctx, b.stop = context.WithCancel(t.Context())
	t.Cleanup(b.stop)
	b.service = &offline{Service: service.New(nil, store, service.Readers{}), store: store,
		logs: map[string][]deployments.WatchEvent{}, infos: map[string]deployments.UpdateInfo{}}
	b.config = Config{Service: b.service, Auditor: b.audit, Log: slog.New(slog.DiscardHandler),
		Box: store.Keys.Ring().Box(Purpose), Temporal: "https://temporal.example/namespaces/default",
		Authority: tokens{store, map[string]deployments.Caller{
			"admin":    caller("admin", deployments.RoleAdmin, "acme"),
			"viewer":   caller("viewer", deployments.RoleViewer, "acme"),
			"other":    caller("other", deployments.RoleAdmin, "acme", "pay/*"),
			"stranger": caller("stranger", deployments.RoleAdmin, "elsewhere"),
			"nobody":   {Token: "nobody"}}}}
	b.serve()
	return b
}

func (b *bench) serve() {
	b.Helper()
	var err error
	if b.console, err = New(b.ctx, b.config); err != nil {
		b.Fatal(err)
	}
}

// do makes a call with a cookie, and returns the status, the body and the headers of the answer.
func (b *bench) do(method, path, cookie string, body io.Reader, headers ...string) (int, string, http.Header) {
	b.Helper()
	r := httptest.NewRequestWithContext(b.Context(), method, path, body)
	if cookie != "" {
		r.AddCookie(&http.Cookie{Name: sessionCookie, Value: cookie})
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	b.console.ServeHTTP(w, r)
	return w.Code, w.Body.String(), w.Header()
}

// send posts a form.
func (b *bench) send(path, cookie string, form url.Values, headers ...string) (int, string, http.Header) {
	b.Helper()
	return b.do(http.MethodPost, path, cookie, strings.NewReader(form.Encode()),
		append([]string{"Content-Type", "application/x-www-form-urlencoded"}, headers...)...)
}

// login returns the cookie of a session.
func (b *bench) login(token string) string {
	b.Helper()
	status, said, header := b.send("/console/login", "", url.Values{"token": {token}})
	if status != http.StatusSeeOther {
		b.Fatalf("the login is answered %d: %s", status, said)
	}
	cookie := cookieOf(b, header)
	return cookie.Value
}

func cookieOf(t testing.TB, header http.Header) *http.Cookie {
	t.Helper()
	cookies := (&http.Response{Header: header}).Cookies()
	if len(cookies) != 1 || strings.TrimPrefix(cookies[0].Name, hostPrefix) != sessionCookie {
		t.Fatalf("the cookies are %v", cookies)
	}
	return cookies[0]
}

// shows gets a page that must be answered with a status, and returns it.
func (b *bench) shows(status int, path, cookie string) string {
	b.Helper()
	got, said, _ := b.do(http.MethodGet, path, cookie, nil)
	if got != status {
		b.Fatalf("%s is answered %d, not %d: %s", path, got, status, said)
	}
	return said
}

// paths are pages of the stack.
var paths = []string{"/console/acme/shop/dev", "/console/acme/shop/dev/resources", "/console/acme/shop/dev/graph",
	"/console/acme/shop/dev/outputs", "/console/acme/shop/dev/updates", "/console/acme/shop/dev/updates/1",
	"/console/acme/shop/dev/updates/1/log"}

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// succeeded has the stack have an update that has ended, with a log.
func (b *bench) succeeded(version string, events ...apitype.EngineEvent) {
	info := deployments.UpdateInfo{Update: deployments.UpdateName{StackName: dev, Version: version}, Kind: "up",
		Status: deployments.StatusSucceeded, Started: began, Ended: began.Add(time.Minute), Initiator: "ann"}
	b.service.infos[version] = info
	var log []deployments.WatchEvent
	for i := range events {
		log = append(log, deployments.WatchEvent{Event: &events[i]})
	}
	b.service.logs[version] = append(log, deployments.WatchEvent{End: &info})
}

func TestWhoIsNotLoggedInIsLedToThePageByTheLogin(t *testing.T) {
	b := newBench(t)
	for _, path := range append([]string{"/console/", "/console/?organization=acme"}, paths...) {
		status, _, header := b.do(http.MethodGet, path, "", nil)
		to, err := url.Parse(header.Get("Location"))
		if err != nil || status != http.StatusSeeOther || to.Path != "/console/login" || to.Query().Get("to") != path {
			t.Fatalf("%s is answered %d, to %q", path, status, header.Get("Location"))
		}
		form := b.shows(http.StatusOK, to.String(), "")
		if !strings.Contains(form, `name="to" value="`+path+`"`) {
			t.Errorf("the form does not lead to %s: %s", path, form)
		}
		status, _, header = b.send("/console/login", "", url.Values{"token": {"viewer"}, "to": {path}},
			"Sec-Fetch-Site", "same-origin")
		if status != http.StatusSeeOther || header.Get("Location") != path {
			t.Errorf("the login leads to %q, with %d", header.Get("Location"), status)
		}
	}
}

func TestALoginLeadsNowhereElse(t *testing.T) {
	b := newBench(t)
	for _, to := range []string{"", "https://evil.example/", "//evil.example/console/", "/\\evil.example",
		"/console/\\evil.example", "/console/..//evil.example", "/console/../api/user", "javascript:alert(1)",
		"/console/%2e%2e/x", "/console/\r\nSet-Cookie: x=y", "/api/user", "console/", "/console/" + strings.Repeat("a",
			3000)} {
		_, _, header := b.send("/console/login", "", url.Values{"token": {"viewer"}, "to": {to}})
		if header.Get("Location") != "/console/" {
			t.Errorf("%q leads to %q", to, header.Get("Location"))
		}
	}
}

func TestAPageIsShownByTheRulesOfTheAPI(t *testing.T) {
	b := newBench(t)
	b.succeeded("1")
	viewer, admin, other, stranger := b.login("viewer"), b.login("admin"), b.login("other"), b.login("stranger")
	for _, path := range paths {
		for name, cookie := range map[string]string{"viewer": viewer, "admin": admin} {
			if said := b.shows(http.StatusOK, path, cookie); !strings.Contains(said, "dev") {
				t.Errorf("%s does not show the stack to %s", path, name)
			}
		}
		for name, cookie := range map[string]string{"other": other, "stranger": stranger} {
			said := b.shows(http.StatusNotFound, path, cookie)
			absent := b.shows(http.StatusNotFound, strings.Replace(path, "dev", "gone", 1), cookie)
			if strings.ReplaceAll(said, "shop/dev", "shop/gone") != absent && withoutTime(strings.ReplaceAll(said,
				"shop/dev", "shop/gone")) != withoutTime(absent) {
				t.Errorf("%s tells %s that there is such a stack:\n%s\n%s", path, name, said, absent)
			}
		}
	}
	if home := b.shows(http.StatusOK, "/console/", stranger); strings.Contains(home, "shop/dev") {
		t.Error("the home shows a stack to a stranger")
	}
	if home := b.shows(http.StatusOK, "/console/", viewer); !strings.Contains(home, "acme/shop/dev") {
		t.Error("the home does not show a stack to a viewer")
	}
	status, said, header := b.send("/console/login", "", url.Values{"token": {"nobody"}})
	if status != http.StatusForbidden || len(header.Values("Set-Cookie")) != 0 {
		t.Errorf("who may see nothing is answered %d: %s", status, said)
	}
}

// withoutTime returns a page without the time at which it was made.
func withoutTime(page string) string {
	before, _, _ := strings.Cut(page, "<footer>")
	return before
}

func TestEveryPageOfTheTableNamesAMethodOfTheAPI(t *testing.T) {
	open := map[string]bool{"GET /console/style.css": true, "GET /console/script.js": true, "GET /console/icon.svg": true,
		"GET /console/login":  true,
		"POST /console/login": true, "POST /console/logout": true, "GET /console": true, "GET /{$}": true}
	for _, r := range routes() {
		if err := r.resolve(); err != nil {
			t.Error(err)
		}
		if (len(r.does) == 0) != open[r.name()] {
			t.Errorf("%s has %d rules", r.name(), len(r.does))
		}
		if r.method != http.MethodGet && !open[r.name()] {
			t.Errorf("%s changes something", r.name())
		}
	}
}

func TestEveryAnswerHasTheHeaders(t *testing.T) {
	b := newBench(t)
	b.succeeded("1")
	viewer := b.login("viewer")
	check := func(what string, header http.Header) {
		t.Helper()
		for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'; style-src 'self'; " +
			"script-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
			"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store", "Referrer-Policy": "no-referrer",
			"X-Frame-Options": "DENY"} {
			if header.Get(name) != want {
				t.Errorf("%s has %s: %q", what, name, header.Get(name))
			}
		}
	}
	for _, path := range append([]string{"/console", "/console/", "/console/login", "/console/style.css",
		"/console/script.js",
		"/console/nothing", "/console/acme/shop/dev/nothing", "/console/../x", "/console//", "/console/acme/shop/gone"},
		paths...) {
		for _, cookie := range []string{"", viewer, "forged"} {
			_, said, header := b.do(http.MethodGet, path, cookie, nil)
			check(path, header)
			if strings.Contains(said, "style=") || strings.Contains(said, "<style") || strings.Contains(said, "javascript:") {
				t.Errorf("%s has a style or a script of its own: %s", path, said)
			}
		}
	}
	_, _, header := b.send("/console/login", "", url.Values{"token": {"wrong"}})
	check("a wrong login", header)
	_, _, header = b.do(http.MethodPut, "/console/", viewer, nil)
	check("another method", header)
}

func TestTheCookieIsForTheConsoleAlone(t *testing.T) {
	b := newBench(t)
	for proxied, secure := range map[string]bool{"": false, "https": true} {
		_, _, header := b.send("/console/login", "", url.Values{"token": {"viewer"}}, "X-Forwarded-Proto", proxied)
		c := cookieOf(t, header)
		name, path := sessionCookie, "/console"
		if secure {
			name, path = "__Host-"+sessionCookie, "/"
		}
		if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Name != name || c.Path != path || c.Secure != secure ||
			c.MaxAge <= 0 || c.MaxAge > int(24*time.Hour/time.Second) || c.Domain != "" ||
			strings.Contains(c.Value, "viewer") {
			t.Errorf("the cookie is %+v", c)
		}
	}
}

func TestACookieOfASiblingDomainIsNotTakenOverTLS(t *testing.T) {
	b := newBench(t)
	_, _, header := b.send("/console/login", "", url.Values{"token": {"other"}}, "X-Forwarded-Proto", "https")
	planted := sessionCookie + "=" + cookieOf(t, header).Value // no sibling can set one with the prefix
	_, _, header = b.send("/console/login", "", url.Values{"token": {"viewer"}}, "X-Forwarded-Proto", "https")
	own := hostPrefix + sessionCookie + "=" + cookieOf(t, header).Value
	for cookies, want := range map[string]int{planted: http.StatusSeeOther, own: http.StatusOK,
		own + "; " + planted: http.StatusOK, planted + "; " + own: http.StatusOK} {
		status, said, _ := b.do(http.MethodGet, "/console/acme/shop/dev", "", nil, "X-Forwarded-Proto", "https", "Cookie",
			cookies)
		if status != want {
			t.Errorf("with %s, it is answered %d: %s", cookies, status, said)
		}
	}
	_, _, header = b.send("/console/logout", "", nil, "X-Forwarded-Proto", "https", "Cookie", own)
	if c := cookieOf(t, header); c.Name != hostPrefix+sessionCookie || c.Path != "/" || c.MaxAge >= 0 || !c.Secure {
		t.Errorf("the logout sets %+v", c)
	}
}

func TestASessionEndsWithItsTokenItsTimeAndTheLogout(t *testing.T) {
	b := newBench(t)
	grant := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
	text, err := b.store.Access.CreateToken(t.Context(), deployments.Token{Name: "ann", Grant: &grant})
	if err != nil {
		t.Fatal(err)
	}
	revoked, viewer := b.login(text), b.login("viewer")
	b.shows(http.StatusOK, "/console/acme/shop/dev", revoked)
	if err := b.store.Access.RemoveToken(t.Context(), "ann"); err != nil {
		t.Fatal(err)
	}
	b.console.now = func() time.Time { return time.Now().Add(sessionFor) }
	for name, cookie := range map[string]string{"of a revoked token": revoked, "that is over": viewer,
		"that is forged": "x"} {
		if name == "of a revoked token" {
			b.console.now = time.Now
		}
		status, _, header := b.do(http.MethodGet, "/console/acme/shop/dev", cookie, nil)
		if status != http.StatusSeeOther || !strings.HasPrefix(header.Get("Location"), "/console/login?") ||
			cookieOf(t, header).MaxAge >= 0 {
			t.Errorf("a session %s is answered %d, %v", name, status, header)
		}
		b.console.now = func() time.Time { return time.Now().Add(sessionFor) }
		status, _, _ = b.do(http.MethodGet, "/console/acme/shop/dev", cookie, nil, liveHeader, "1")
		if status != http.StatusUnauthorized {
			t.Errorf("the script is answered %d with a session %s", status, name)
		}
	}
	_, _, header := b.send("/console/logout", viewer, nil)
	if c := cookieOf(t, header); c.MaxAge >= 0 || c.Value != "" {
		t.Errorf("after the logout the cookie is %+v", c)
	}
}

func TestASessionEndsWithItsMember(t *testing.T) {
	b := newBench(t)
	grant := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
	if err := b.store.Access.GrantMember(t.Context(), "ann", grant); err != nil {
		t.Fatal(err)
	}
	text, err := b.store.Access.CreateToken(t.Context(), deployments.Token{Name: "anns", Member: "ann",
		Organization: "acme"})
	if err != nil {
		t.Fatal(err)
	}
	cookie := b.login(text)
	b.shows(http.StatusOK, "/console/acme/shop/dev", cookie)
	if err := b.store.Access.RemoveMember(t.Context(), "ann", "acme"); err != nil {
		t.Fatal(err)
	}
	status, said, _ := b.do(http.MethodGet, "/console/acme/shop/dev", cookie, nil)
	if status == http.StatusOK || strings.Contains(said, "Resources") {
		t.Errorf("a removed member is answered %d: %s", status, said)
	}
}

func TestAFormOfAnotherSiteLogsNobodyInOrOut(t *testing.T) {
	b := newBench(t)
	for _, headers := range [][]string{{"Sec-Fetch-Site", "cross-site"}, {"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"}, {"Origin", "null"}} {
		for _, path := range []string{"/console/login", "/console/logout"} {
			status, _, header := b.send(path, "", url.Values{"token": {"viewer"}}, headers...)
			if status != http.StatusForbidden || len(header.Values("Set-Cookie")) > 0 {
				t.Errorf("%s with %q is answered %d, %v", path, headers, status, header)
			}
		}
	}
	status, said, _ := b.send("/console/login", "", url.Values{"token": {strings.Repeat("x", 1<<20)}})
	if status != http.StatusBadRequest {
		t.Errorf("a large form is answered %d: %s", status, said)
	}
}

func TestALinkOfAnotherSiteIsFollowedWithTheSession(t *testing.T) {
	b := newBench(t)
	_, said, header := b.do(http.MethodGet, "/console/acme/shop/dev?x=%22", "", nil, "Sec-Fetch-Site", "cross-site",
		"Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document")
	if !strings.Contains(said, `http-equiv="refresh" content="0; url=/console/acme/shop/dev?x=%22"`) ||
		header.Get("Location") != "" {
		t.Errorf("it is answered %s", said)
	}
}

func TestAPageOfAnotherSiteReadsNothing(t *testing.T) {
	b := newBench(t)
	viewer := b.login("viewer")
	for _, site := range []string{"cross-site", "same-site"} {
		for mode, dest := range map[string]string{"cors": "empty", "no-cors": "image", "navigate": "iframe", "": ""} {
			status, _, _ := b.do(http.MethodGet, "/console/acme/shop/dev", viewer, nil, "Sec-Fetch-Site", site, "Sec-Fetch-Mode",
				mode, "Sec-Fetch-Dest", dest)
			if status != http.StatusForbidden {
				t.Errorf("%s, %s, %s is answered %d", site, mode, dest, status)
			}
		}
	}
	for _, site := range []string{"same-origin", "none"} {
		status, _, _ := b.do(http.MethodGet, "/console/acme/shop/dev", viewer, nil, "Sec-Fetch-Site", site)
		if status != http.StatusOK {
			t.Errorf("%s is answered %d", site, status)
		}
	}
}

func TestATokenIsInNoPageAndInNoLog(t *testing.T) {
	var log strings.Builder
	b := newBench(t)
	b.config.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b.serve()
	const secret = "dctl.ann.a-guess-at-a-token"
	status, said, header := b.send("/console/login", "", url.Values{"token": {secret}, "to": {"/console/acme/shop/dev"}})
	if status != http.StatusUnauthorized || strings.Contains(said+fmt.Sprint(header)+log.String(), "a-guess-at") {
		t.Errorf("a wrong token is answered %d: %s %v\n%s", status, said, header, log.String())
	}
	if !strings.Contains(said, `value="/console/acme/shop/dev"`) {
		t.Error("after a wrong token the form leads elsewhere")
	}
	if len(b.audit.entries) != 1 || !b.audit.entries[0].Refused ||
		b.audit.entries[0].Code != deployments.CodeUnauthorized {
		t.Errorf("the audit log has %+v", b.audit.entries)
	}
}

func TestWrongTokensAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		began := time.Now()
		for range 60 {
			status, _, _ := b.send("/console/login", "", url.Values{"token": {"guess"}})
			if status != http.StatusUnauthorized {
				t.Errorf("a guess is answered %d", status)
			}
		}
		if took := time.Since(began); took < 10*time.Second {
			t.Errorf("60 guesses took %s", took)
		}
		b.stop()
	})
}

func TestAReadOfTheStateIsInTheAuditLogAsAnExportIs(t *testing.T) {
	b := newBench(t)
	viewer := b.login("viewer")
	b.shows(http.StatusOK, "/console/acme/shop/dev", viewer)
	if len(b.audit.entries) != 0 {
		t.Fatalf("the audit log has %+v", b.audit.entries)
	}
	b.shows(http.StatusOK, "/console/acme/shop/dev/outputs", viewer)
	if e := b.audit.entries; len(e) != 1 || e[0].Method != "Stacks/Export" || e[0].Token != "viewer" ||
		e[0].Stack != "shop/dev" || e[0].Refused {
		t.Errorf("the audit log has %+v", e)
	}
}

var _ grpcapi.Authority = tokens{}
