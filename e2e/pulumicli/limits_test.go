//go:build unix

package pulumicli

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/client"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// TestALimitHoldsAtBothEdges reaches each limit of what is kept for a stack, an organization or a token, and asks for
// one more at the edge of deployctl and at that of the stock CLI. What is removed makes room.
func TestALimitHoldsAtBothEdges(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	s := serviceOf(t, h)
	p, _, _ := gitStack(t, h, s, "many")
	ours := h.Deployctl(p.Dir)
	ours.Must(t, "stack", "select", "many")
	l := limited{s, p, ours, dial(t, h)}
	t.Run("webhooks", func(t *testing.T) { t.Parallel(); l.webhooks(t) })
	t.Run("schedules", func(t *testing.T) { t.Parallel(); l.schedules(t) })
	t.Run("tokens", func(t *testing.T) { t.Parallel(); l.tokens(t) })
	t.Run("teams", func(t *testing.T) { t.Parallel(); l.teams(t) })
	t.Run("imports", func(t *testing.T) { t.Parallel(); l.imports(t) })
}

// dial connects to the edge of deployctl.
func dial(t *testing.T, h *harness.Home) *client.Client {
	t.Helper()
	var status struct{ APIAddress, Certificate, TokenFile string }
	harness.Must(t, json.Unmarshal([]byte(h.Deployctl(h.Dir).Must(t, "dev", "status", "--json")), &status))
	token, err := os.ReadFile(status.TokenFile)
	harness.Must(t, err)
	c, err := client.Dial(client.Options{Address: status.APIAddress, CAFile: status.Certificate,
		Token: strings.TrimSpace(string(token))})
	harness.Must(t, err)
	t.Cleanup(func() { harness.Must(t, c.Close()) })
	return c
}

// limited is a stack, and what asks for more of it: the stock CLI, deployctl, and its client.
type limited struct {
	service
	p, ours *harness.Tool
	client  *client.Client
}

var many = deployments.StackName{Organization: "organization", Project: "shop", Stack: "many"}

const manyPath = "/api/stacks/organization/shop/many"

// asked makes a call with the service's token that must be answered with a status, and a text.
func (l limited) asked(t *testing.T, path, body string, status int, says string) string {
	t.Helper()
	got, text := l.post(t, path, body, "Authorization", "token "+l.token)
	if got != status || !strings.Contains(text, says) {
		t.Fatalf("%s is answered %d, %s; it should be %d, with %q", path, got, text, status, says)
	}
	return text
}

func (l limited) webhooks(t *testing.T) {
	const body = `{"displayName":"one of many","payloadUrl":"https://example.com","active":true}`
	for path, whose := range map[string][]string{manyPath + "/hooks": {"stack"}, "/api/orgs/organization/hooks": {"org",
		"--all-stacks"}} {
		var made struct{ ID, Name string }
		for range deployments.MaxWebhooks {
			harness.Must(t, json.Unmarshal([]byte(l.asked(t, path, body, http.StatusOK, "")), &made))
		}
		l.asked(t, path, body, http.StatusConflict, "20 webhooks already: remove one")
		one := append([]string{"webhook", "new", "https://example.com"}, whose[1:]...)
		failed(t, l.ours, "20 webhooks already: remove one", one...)
		failed(t, l.p, "20 webhooks already: remove one", append([]string{whose[0], "webhook", "new", "--yes", "--name", "x",
			"--url", "https://example.com"}, map[string][]string{"org": {"--org", "organization"}}[whose[0]]...)...)
		l.ours.Must(t, append([]string{"webhook", "rm", made.Name}, whose[1:]...)...)
		l.ours.Must(t, one...)
	}
}

func (l limited) schedules(t *testing.T) {
	sched := deployments.Schedule{Kind: deployments.ScheduleRefresh, Every: 100 * time.Hour}
	for n := range deployments.MaxSchedules {
		sched.Name = deployments.ScheduleName{StackName: many, Name: fmt.Sprint("s", n)}
		harness.Must(t, l.client.CreateSchedule(t.Context(), sched))
	}
	harness.Eventually(t, "all are listed", func() bool {
		list, err := l.client.Schedules(t.Context(), many)
		return err == nil && len(list) == deployments.MaxSchedules
	})
	failed(t, l.ours, "100 schedules already: remove one", "schedule", "new", "drift", "--every", "1h")
	l.asked(t, manyPath+"/deployments/drift/schedules", `{"scheduleCron":"@every 1h"}`, http.StatusConflict,
		"100 schedules already: remove one")
	l.ours.Must(t, "schedule", "rm", "s0")
	harness.Eventually(t, "there is room", func() bool {
		return l.ours.Run(t, "schedule", "new", "drift", "--every", "1h").Code == 0
	})
}

func (l limited) tokens(t *testing.T) {
	const most = 100
	for n := range most - 1 { // the stock CLI has one
		_, err := l.client.DeriveToken(t.Context(), deployments.Token{Name: fmt.Sprint("t", n)})
		harness.Must(t, err)
	}
	if _, err := l.client.DeriveToken(t.Context(), deployments.Token{Name: "more"}); err == nil ||
		deployments.CodeOf(err) != deployments.CodeConflict || !strings.Contains(err.Error(), "deployctl token rm") {
		t.Errorf("one more: %v", err)
	}
	cli, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	defer func() { _ = cli.Close() }()
	_, port, _ := net.SplitHostPort(cli.Addr().String())
	page := l.address + "/cli-login?cliSessionPort=" + port + "&cliSessionNonce=0123456789abcdef0123456789abcdef"
	if status, text := fillIn(t, page, l.token); status != http.StatusConflict || !strings.Contains(text,
		"deployctl token rm") {
		t.Errorf("the login page is answered %d: %s", status, text)
	}
	l.ours.Must(t, "token", "rm", "local.t0")
	_, err = l.client.DeriveToken(t.Context(), deployments.Token{Name: "more"})
	harness.Must(t, err)
}

// teams has no counterpart for the stock CLI, and neither has imports.
func (l limited) teams(t *testing.T) {
	const most, member = 20, "ann"
	on := deployments.Grant{Role: deployments.RoleViewer, Organization: "organization"}
	join := func(n int) error {
		team := fmt.Sprint("team", n)
		harness.Must(t, l.client.GrantTeam(t.Context(), team, on))
		return l.client.JoinTeam(t.Context(), on.Organization, team, member)
	}
	for n := range most {
		harness.Must(t, join(n))
	}
	const says = "ann is in 20 teams, and can be in no more"
	if err := join(most); deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), says) {
		t.Errorf("one more: %v", err)
	}
	failed(t, l.ours, says, "team", "join", fmt.Sprint("team", most), member, "--organization",
		on.Organization)
	harness.Must(t, join(0)) // again
	harness.Must(t, l.client.LeaveTeam(t.Context(), on.Organization, "team0", member))
	harness.Must(t, join(most))
}

// imports asks for a stack that is not there, which is only looked for when the request is valid.
func (l limited) imports(t *testing.T) {
	const most = 10_000
	r := deployments.UpdateRequest{Stack: many, RequestID: "many", Kind: engine.KindImport}
	r.Stack.Stack = "none"
	for n := range most {
		r.Imports = append(r.Imports, deployments.Import{Type: "fake:index:Named", Name: fmt.Sprint(n), ID: "x"})
	}
	if _, err := l.client.Submit(t.Context(), r); deployments.CodeOf(err) != deployments.CodeNotFound {
		t.Errorf("as many as are possible: %v", err)
	}
	r.Imports = append(r.Imports, deployments.Import{Type: "fake:index:Named", Name: "more", ID: "x"})
	if _, err := l.client.Submit(t.Context(), r); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "imports 10001 resources; at most 10000 are possible") {
		t.Errorf("one more: %v", err)
	}
}
