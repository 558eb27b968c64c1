package pulumiapi

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestMembersAndTeamsAreListedChangedAndRemoved(t *testing.T) {
	b := newBench(t)
	shop := []string{"shop/*"}
	for _, err := range []error{
		b.store.Access.GrantMember(t.Context(), "ann", deployments.Grant{Role: deployments.RoleViewer, Organization: "acme",
			Stacks: shop}),
		b.store.Access.GrantTeam(t.Context(), "web", deployments.Grant{Role: deployments.RoleViewer, Organization: "acme",
			Stacks: shop}),
		b.store.Access.JoinTeam(t.Context(), "acme", "web", "bob"),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	listed := func() string {
		var list apitype.ListOrganizationMembersResponse
		if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, "/api/orgs/acme/members?type=frontend",
			"token admin", "")), &list); err != nil {
			t.Fatal(err)
		}
		var texts []string
		for _, m := range list.Members {
			texts = append(texts, m.User.GitHubLogin+" "+m.Role+" "+m.FGARole.Name)
		}
		return strings.Join(texts, ", ")
	}
	if got := listed(); got != "ann member viewer shop/*, bob member viewer shop/*" {
		t.Errorf("at first: %s", got)
	}
	as := "token " + b.created(deployments.Token{Name: "bob-laptop", Member: "bob", Organization: "acme"})
	tags := "/api/stacks/acme/shop/dev/tags"
	b.want(http.StatusForbidden, http.MethodPatch, tags, as, "{}")
	b.want(http.StatusNoContent, http.MethodPost, "/api/orgs/acme/teams/web/roles/deployer", "token admin", "")
	b.want(http.StatusNoContent, http.MethodPatch, tags, as, "{}")
	b.want(http.StatusNoContent, http.MethodPatch, "/api/orgs/acme/members/ann", "token admin", `{"role":"admin"}`)
	if got := listed(); got != "ann admin admin shop/*, bob member deployer shop/*" {
		t.Errorf("after the changes: %s", got)
	}
	b.want(http.StatusNoContent, http.MethodPatch, "/api/orgs/acme/members/ann", "token admin", `{"fgaRoleId":"viewer"}`)
	for _, body := range []string{`{}`, `{"role":"billing-manager"}`, `{"fgaRoleId":"root"}`} {
		b.want(http.StatusBadRequest, http.MethodPatch, "/api/orgs/acme/members/ann", "token admin", body)
	}
	b.want(http.StatusNotFound, http.MethodPatch, "/api/orgs/acme/members/eve", "token admin", `{"role":"admin"}`)
	b.want(http.StatusNotFound, http.MethodPost, "/api/orgs/acme/teams/web/roles/root", "token admin", "")
	b.want(http.StatusForbidden, http.MethodPost, "/api/orgs/other/teams/web/roles/admin", "token admin", "")
	b.want(http.StatusNotFound, http.MethodPost, "/api/orgs/acme/roles", "token admin", "{}")
	if said := b.want(http.StatusOK, http.MethodGet, "/api/orgs/acme/roles", "token viewer", ""); strings.Count(said,
		`"id"`) != 3 {
		t.Errorf("the roles are %s", said)
	}
	b.want(http.StatusNoContent, http.MethodDelete, "/api/orgs/acme/members/bob", "token admin", "")
	b.want(http.StatusUnauthorized, http.MethodGet, "/api/user", as, "")
	if got := listed(); got != "ann member viewer shop/*" {
		t.Errorf("at the end: %s", got)
	}
}

func TestTheAdminOfAnotherOrganizationCannotTellWhichMembersThereAre(t *testing.T) {
	b := newBench(t)
	grant := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
	everywhere, other := grant, grant
	everywhere.Organization, other.Organization = deployments.AnyOrganization, "other"
	for name, g := range map[string]deployments.Grant{"ann": grant, "bob": other, "root": everywhere} {
		if err := b.store.Access.GrantMember(t.Context(), name, g); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.store.Access.GrantMember(t.Context(), "bob", grant); err != nil {
		t.Fatal(err)
	}
	for method, body := range map[string]string{http.MethodGet: "", http.MethodPatch: `{"role":"admin"}`,
		http.MethodDelete: ""} {
		answer := func(name string) string {
			status := http.StatusForbidden
			if method == http.MethodGet {
				status = http.StatusNotFound // it is not served
			}
			said := b.want(status, method, "/api/orgs/acme/members/"+name, "token stranger", body)
			return strings.ReplaceAll(said, name, "NAME")
		}
		nowhere := answer("eve")
		for _, name := range []string{"ann", "bob", "root"} {
			if there := answer(name); there != nowhere {
				t.Errorf("%s of %s: %s, and where there is none: %s", method, name, there, nowhere)
			}
		}
	}
	if list, err := b.store.Access.ListMembers(t.Context()); err != nil || len(list) != 4 {
		t.Errorf("%d members are left, %v", len(list), err)
	}
}

func TestTheAuditLogIsListedInPagesAndExported(t *testing.T) {
	b := newBench(t)
	audit := b.store.Access.OpenAudit(slog.New(slog.DiscardHandler))
	const entries = 250
	newest := time.Now().Add(-time.Minute).Truncate(time.Second)
	for i := entries - 1; i >= 0; i-- { // five at a time, over three weeks
		e := deployments.AuditEntry{Time: newest.Add(-time.Duration(i/5) * 9 * time.Hour), Request: fmt.Sprintf("r%03d", i),
			Organization: "acme", Token: "ci", Method: "Stacks/TagStack", Stack: "shop/dev", Peer: "192.0.2.1:5"}
		if err := audit.Record(t.Context(), e, true); err != nil {
			t.Fatal(err)
		}
	}
	pages, got, last := 0, 0, int64(1)<<62
	for next := ""; pages == 0 || next != ""; pages++ {
		var page apitype.ListAuditLogEventsResponse
		if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet,
			"/api/orgs/acme/auditlogs?continuationToken="+next, "token admin", "")), &page); err != nil {
			t.Fatal(err)
		}
		for _, e := range page.AuditLogEvents {
			if got++; e.Timestamp > last || e.SourceIP != "192.0.2.1" || e.User.GitHubLogin != "ci" {
				t.Errorf("the entry %d is %+v after %d", got, e, last)
			}
			last = e.Timestamp
		}
		next = page.ContinuationToken
	}
	if pages != 3 || got != entries {
		t.Errorf("%d pages have %d entries", pages, got)
	}
	text := b.want(http.StatusOK, http.MethodGet, "/api/orgs/acme/auditlogs/export?format=csv&eventType=Stacks/TagStack",
		"token admin", "")
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != entries+1 || rows[1][1] != "r245" {
		t.Errorf("%d rows are exported, the first is %v, %v", len(rows), rows[1], err)
	}
	for query, want := range map[string]int{"?format=cef": entries, "?format=cef&user=nobody": 0,
		"?format=cef&startTime=" + newest.Add(-time.Hour).UTC().Format(time.RFC3339): entries - 5} {
		if said := b.want(http.StatusOK, http.MethodGet, "/api/orgs/acme/auditlogs/export"+query, "token admin",
			""); strings.Count(said, "CEF:0|") != want {
			t.Errorf("%s exports %d entries, want %d", query, strings.Count(said, "CEF:0|"), want)
		}
	}
	since, until := newest.Add(-20*time.Hour).Unix(), newest.Add(-time.Hour).Unix() // two of the times
	for query, want := range map[string]int{"": entries, "&userFilter=nobody": 0, "&eventFilter=Stacks/TagStack": entries,
		fmt.Sprintf("&startTime=%d&endTime=%d", since, until): 10} {
		if said := b.want(http.StatusOK, http.MethodGet, "/api/orgs/acme/auditlogs/v2/export?format=cef"+query,
			"token admin", ""); strings.Count(said, "CEF:0|") != want {
			t.Errorf("version 2: %s exports %d entries, want %d", query, strings.Count(said, "CEF:0|"), want)
		}
	}
	var some apitype.ListAuditLogEventsResponse
	if err := json.Unmarshal([]byte(b.want(http.StatusOK, http.MethodGet, fmt.Sprintf(
		"/api/orgs/acme/auditlogs/v2?startTime=%d", since), "token admin", "")), &some); err != nil ||
		len(some.AuditLogEvents) != 15 || some.ContinuationToken != "" {
		t.Errorf("version 2 lists %d entries, %v", len(some.AuditLogEvents), err)
	}
	b.want(http.StatusBadRequest, http.MethodGet, "/api/orgs/acme/auditlogs?continuationToken=x", "token admin", "")
	b.want(http.StatusBadRequest, http.MethodGet, "/api/orgs/acme/auditlogs/export?format=xml", "token admin", "")
	b.want(http.StatusForbidden, http.MethodGet, "/api/orgs/acme/auditlogs", "token stranger", "")
}
