//go:build unix

package pulumicli

import (
	"bytes"
	"encoding/json"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/creack/pty"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/service/identity/identitytest"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

func TestTheStockCLILogsInWithoutAStoredToken(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Env = append(h.Env, "DEPLOYCTL_PULUMI_LISTEN=") // the usual address, if nobody has it
	h.Start(t)
	s := serviceOf(t, h)
	t.Run("with a browser", func(t *testing.T) { logsInWithBrowser(t, h, s) })
	t.Run("with an identity token", func(t *testing.T) { logsInWithIdentity(t, h, s) })
}

// TestTheStockCLIFindsTheLoginPageOfAnotherAddress has the service listen where the CLI looks for the pages elsewhere.
func TestTheStockCLIFindsTheLoginPageOfAnotherAddress(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	if _, console := addresses(t, h); console != "" {
		t.Fatalf("the pages are at %s", console)
	}
	logsInWithBrowser(t, h, serviceOf(t, h))
}

// addresses returns where the service listens, and where the CLI looks for its pages; empty when it is not there.
func addresses(t *testing.T, h *harness.Home) (pulumi, console string) {
	t.Helper()
	var status struct{ PulumiAddress, ConsoleAddress string }
	harness.Must(t, json.Unmarshal([]byte(h.Deployctl(h.Dir).Must(t, "dev", "status", "--json")), &status))
	return status.PulumiAddress, status.ConsoleAddress
}

// loggedOut returns the stock CLI without a token.
func (s service) loggedOut(t *testing.T, project *harness.Tool, env ...string) *harness.Tool {
	t.Helper()
	p := s.login(t, project)
	p.Must(t, "logout", "--all")
	p.Env = append(slices.DeleteFunc(p.Env, func(variable string) bool {
		return strings.HasPrefix(variable, "PULUMI_ACCESS_TOKEN=")
	}), env...)
	return p
}

// logsInWithBrowser plays the browser: it opens the page that the CLI names, fills in its form, and follows where the
// answer leads.
func logsInWithBrowser(t *testing.T, h *harness.Home, s service) {
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	harness.Must(t, os.WriteFile(filepath.Join(dir, "xdg-open"), []byte("#!/bin/sh\nprintf %s \"$1\" >"+opened+".new && "+
		"mv "+opened+".new "+opened+"\n"), 0o700))
	work := t.TempDir()
	plain.Write(t, work)
	h.Deployctl(work).Must(t, "stack", "init", "earlier") // else the CLI asks what to begin with
	p := s.loggedOut(t, h.Deployctl(work), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"),
		"TERM=xterm", "PULUMI_DISABLE_CI_DETECTION=true")
	if address, console := addresses(t, h); console == "" {
		p.Env = append(p.Env, "PULUMI_CONSOLE_DOMAIN="+address)
	}
	at := openTerminal(t, p, "login", s.address)
	at.shows(t, "paste an access token")
	at.types(t, "\r")
	harness.Eventually(t, "the CLI opens a browser", func() bool {
		_, err := os.Stat(opened)
		return err == nil
	})
	page, err := os.ReadFile(opened)
	harness.Must(t, err)
	if status, text := fillIn(t, string(page), s.token); status != http.StatusOK ||
		!strings.Contains(text, "The Pulumi CLI is logged in") {
		t.Fatalf("the browser is shown %d: %s", status, text)
	}
	at.ends(t)
	said(t, p, "", "whoami")
	said(t, p, "Created stack", "stack", "init", "browsed")
	stored := credentials(t, p)
	if strings.Contains(stored, s.token) || !strings.Contains(stored, s.address) {
		t.Errorf("the CLI has not got a token of its own: %s", stored)
	}
	said(t, h.Deployctl(h.Dir), "pulumi-", "token", "ls")
}

// credentials are what the CLI has stored.
func credentials(t *testing.T, p *harness.Tool) string {
	t.Helper()
	for _, variable := range p.Env {
		if home, is := strings.CutPrefix(variable, "PULUMI_HOME="); is {
			if text, err := os.ReadFile(filepath.Join(home, "credentials.json")); err == nil {
				return string(text)
			}
		}
	}
	t.Fatal("the CLI has stored no credentials")
	return ""
}

var hiddenField = regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`)

// fillIn sends the form of a page with a token, as a browser does, and returns where that leads in the end.
func fillIn(t *testing.T, page, token string) (int, string) {
	t.Helper()
	read := func(r *http.Request) (int, string) {
		answer, err := http.DefaultClient.Do(r)
		harness.Must(t, err)
		defer func() { _ = answer.Body.Close() }()
		text, err := io.ReadAll(answer.Body)
		harness.Must(t, err)
		return answer.StatusCode, string(text)
	}
	get, err := http.NewRequestWithContext(t.Context(), http.MethodGet, page, nil)
	harness.Must(t, err)
	status, text := read(get)
	if status != http.StatusOK || !strings.Contains(text, `<form method="post" action="/cli-login">`) {
		t.Fatalf("%s is answered %d: %s", page, status, text)
	}
	form := url.Values{"token": {token}}
	for _, field := range hiddenField.FindAllStringSubmatch(text, -1) {
		form.Set(field[1], html.UnescapeString(field[2]))
	}
	send, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+get.URL.Host+"/cli-login",
		strings.NewReader(form.Encode()))
	harness.Must(t, err)
	send.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	send.Header.Set("Sec-Fetch-Site", "same-origin")
	return read(send)
}

// logsInWithIdentity exchanges the identity token of a job for one of the service.
func logsInWithIdentity(t *testing.T, h *harness.Home, s service) {
	issuer, key := identitytest.New(t), identitytest.RSA(t, "one")
	issuer.Publish(key)
	ours := h.Deployctl(h.Dir)
	ours.Must(t, "trust", "add", "ci", "--organization", "organization", "--issuer", issuer.URL, "--claim",
		"sub=repo:acme/shop:*", "--role", "deployer")
	job := func(claims map[string]any) string {
		claims["aud"] = "urn:pulumi:org:organization"
		return issuer.Sign(key, issuer.Claims(claims))
	}
	work := t.TempDir()
	plain.Write(t, work)
	p := s.loggedOut(t, h.Deployctl(work))
	login := func(token string) []string {
		return []string{"login", s.address, "--oidc-org", "organization", "--oidc-token", token}
	}
	failed(t, p, "no trust of the organization", login(job(map[string]any{"sub": "repo:eve/shop:ref:refs/heads/main"}))...)
	failed(t, p, "", login(issuer.Sign(identitytest.RSA(t, "one"), issuer.Claims(map[string]any{
		"aud": "urn:pulumi:org:organization"})))...)
	file := filepath.Join(t.TempDir(), "identity.jwt")
	token := job(map[string]any{})
	harness.Must(t, os.WriteFile(file, []byte(token), 0o600))
	said(t, p, "Logged in", login("file://"+file)...)
	said(t, p, "Created stack", "stack", "init", "job")
	if stored := credentials(t, p); strings.Contains(stored, token) {
		t.Errorf("the CLI has kept the identity token: %s", stored)
	}
	copied := s.loggedOut(t, h.Deployctl(work))
	failed(t, copied, "exchanged before", login(token)...)
	ours.Must(t, "trust", "rm", "ci", "--organization", "organization")
	failed(t, p, "requires logging in", "stack", "ls", "--all")
}

// terminal is a command that runs in a terminal of its own.
type terminal struct {
	file *os.File
	cmd  *exec.Cmd
	done chan struct{} // is closed when all that it writes was read
	mu   sync.Mutex
	said bytes.Buffer
}

// openTerminal starts a command in a terminal.
func openTerminal(t *testing.T, p *harness.Tool, args ...string) *terminal {
	t.Helper()
	at := &terminal{cmd: exec.CommandContext(waittest.Context(t), p.Path, args...), done: make(chan struct{})}
	at.cmd.Dir, at.cmd.Env = p.Dir, p.Env
	var err error
	at.file, err = pty.StartWithSize(at.cmd, &pty.Winsize{Rows: 50, Cols: 200})
	harness.Must(t, err)
	t.Cleanup(func() {
		if _ = at.file.Close(); t.Failed() {
			t.Logf("the terminal shows %q", at.text())
		}
	})
	go func() {
		defer close(at.done)
		_, _ = io.Copy(at, at.file) // fails at its end
	}()
	return at
}

// Write keeps what the command writes.
func (at *terminal) Write(p []byte) (int, error) {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.said.Write(p)
}

func (at *terminal) text() string {
	at.mu.Lock()
	defer at.mu.Unlock()
	return at.said.String()
}

// shows waits for a text.
func (at *terminal) shows(t *testing.T, text string) {
	t.Helper()
	harness.Eventually(t, "the terminal shows "+text, func() bool { return strings.Contains(at.text(), text) })
}

func (at *terminal) types(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(at.file, text)
	harness.Must(t, err)
}

// ends waits for the end of the command, which must succeed.
func (at *terminal) ends(t *testing.T) {
	t.Helper()
	<-at.done
	if err := at.cmd.Wait(); err != nil {
		t.Errorf("it ends with %v: %s", err, at.text())
	}
}
