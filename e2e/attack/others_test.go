//go:build unix

package attack

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// ask calls the Pulumi Service API of the field, and returns the status of the answer.
func (f *field) ask(ctx context.Context, t *testing.T, method, path, token string, body io.Reader) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, "http://"+f.status(t).PulumiAddress+path, body)
	harness.Must(t, err)
	if token != "" {
		r.Header.Set("Authorization", "token "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	harness.Must(t, err)
	_ = answer.Body.Close()
	return answer.StatusCode
}

// logOfOthers has an admin of another organization fill the audit log of the victim's: with calls that are refused,
// with a huge one, and with calls about organizations that do not exist.
func logOfOthers(t *testing.T, f *field) {
	rival := f.holder(t, "rival-logger", "--role", "admin", "--organization", "rival")
	logged := func() int {
		return strings.Count(f.victim.Must(t, "audit", "--since", "1h", "--json"), "\"request\"")
	}
	before, begun := logged(), time.Now()
	var calling sync.WaitGroup
	for i := range size(500, 2000) {
		calling.Go(func() {
			_, err := api.NewMembersClient(f.conn).RemoveMember(rival.calls, &api.RemoveMemberRequest{Name: "!",
				Organization: "organization"})
			answered(t, "a name that nobody has", err, codes.PermissionDenied)
			_, err = f.stacks().GetStack(rival.calls, &api.GetStackRequest{Stack: &api.StackName{
				Organization: fmt.Sprint("none-", i), Project: "p", Stack: "s"}})
			answered(t, "a stack that nobody has", err, codes.NotFound)
		})
	}
	calling.Wait()
	_, err := api.NewWebhooksClient(f.conn).RemoveWebhook(rival.calls, &api.RemoveWebhookRequest{Name: &api.WebhookName{
		Scope: &api.WebhookScope{Organization: "organization"}, Name: strings.Repeat("x", 8<<20)}})
	answered(t, "a huge name", err, codes.PermissionDenied)
	f.victim.Must(t, "stack", "tag", "set", "logged", "yes") // it is in the log when it is answered
	seconds := int(time.Since(begun).Seconds()) + 2
	if more := logged() - before; more < 1 || more > 100*seconds { // at all organizations together
		t.Errorf("in %d seconds %d entries are added", seconds, more)
	}
	if said := f.victim.Must(t, "audit", "--since", "1h"); len(said) > 4<<20 || !strings.Contains(said, "TagStack") {
		t.Errorf("the log has %d bytes, or not what was accepted", len(said))
	}
}

// bodiesAtOthers sends bodies that never end to the victim's organization.
func bodiesAtOthers(t *testing.T, f *field) {
	viewer := f.holder(t, "rival-viewer", "--role", "viewer", "--organization", "rival")
	ctx, cancel := context.WithCancel(patient(t))
	defer cancel()
	for _, path := range []string{"/api/stacks/organization/precious", "/api/orgs/organization/hooks"} {
		body, never := io.Pipe()
		if got := f.ask(ctx, t, http.MethodPost, path, viewer.token, body); got != http.StatusForbidden {
			t.Errorf("%s is answered %d", path, got)
		}
		_ = never.Close()
	}
	if got := f.ask(ctx, t, http.MethodGet, "/api/orgs/organization/auditlogs", viewer.token,
		nil); got != http.StatusForbidden {
		t.Errorf("the log is answered %d", got)
	}
}

// manyTokens begins calls with many tokens of another organization, and sends no message.
func manyTokens(t *testing.T, f *field) {
	a := f.apart()
	admin := &harness.Tool{Path: a.tool.Path, Dir: a.tool.Dir, Env: a.Env}
	var tokens []string
	for i := range size(10, 100) {
		tokens = append(tokens, strings.TrimSpace(admin.Must(t, "token", "create", fmt.Sprint("many-", i), "--role",
			"viewer", "--organization", "rival")))
	}
	a.endure(t, func(ctx context.Context) {
		ctx, cancel := context.WithTimeout(ctx, time.Duration(size(5, 60))*time.Second)
		defer cancel()
		var calls sync.WaitGroup
		for _, token := range tokens {
			conn := a.connect(t)
			for range 4 {
				calls.Go(func() {
					stream, err := conn.NewStream(as(ctx, token), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true},
						api.Stacks_GetStack_FullMethodName)
					if err == nil {
						_ = stream.RecvMsg(&api.GetStackResponse{}) // it gives way, or the attack ends
					}
				})
			}
		}
		calls.Wait()
	})
}
