package pulumiapi

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/deployments"
)

// TestWhoHasNothingInAnOrganizationIsRefusedThereBeforeAnythingIsReadOrTaken makes calls with a body that nobody may
// read, while the organization has all its places.
func TestWhoHasNothingInAnOrganizationIsRefusedThereBeforeAnythingIsReadOrTaken(t *testing.T) {
	b := newBench(t)
	for _, call := range []string{"POST /api/stacks/acme/shop", "GET /api/orgs/acme/auditlogs",
		"GET /api/orgs/acme/auditlogs/export", "PATCH /api/orgs/acme/members/ann", "POST /api/orgs/acme/hooks",
		"POST /api/orgs/acme/teams/web/roles/admin", "GET /api/orgs/acme/members"} {
		method, path, _ := strings.Cut(call, " ")
		for _, authorization := range []string{"token stranger", "token nobody"} {
			body := &unread{}
			if got, said, _ := b.do(method, path, authorization, body); got != http.StatusForbidden || body.read {
				t.Errorf("%s of %s is answered %d: %s; its body was read: %v", call, authorization, got, said, body.read)
			}
			last := b.log.entries[len(b.log.entries)-1]
			if party := map[string]string{"token stranger": "other", "token nobody": "nobody"}[authorization]; !last.Refused ||
				last.Party != party || last.Organization != "acme" {
				t.Errorf("%s of %s is noted as %+v", call, authorization, last)
			}
		}
	}
}

// unread is a body that says whether it was read.
type unread struct{ read bool }

func (u *unread) Read([]byte) (int, error) {
	u.read = true
	return 0, context.Canceled
}

func TestOnlyWhoIsKnownNamesAnOrganizationInItsLog(t *testing.T) {
	newBench(t) // the compressor of the process must not be of the bubble
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		for _, path := range []string{"/api/orgs/acme/members/%21", "/api/orgs/acme/members/ann",
			"/api/stacks/acme/shop/%21"} {
			b.want(http.StatusUnauthorized, http.MethodDelete, path, "token guess", "")
			b.want(http.StatusUnauthorized, http.MethodDelete, path, "", "")
		}
		b.want(http.StatusBadRequest, http.MethodDelete, "/api/orgs/acme/members/%21", "token stranger", "")
		for i, e := range b.log.entries {
			if !e.Refused || e.Organization != "" && i < 6 {
				t.Errorf("entry %d is %+v", i, e)
			}
		}
		if len(b.log.entries) != 7 {
			t.Errorf("%d entries are noted", len(b.log.entries))
		}
	})
}

func TestWhatACallTakesIsItsCallersAndNotThatOfWhomItNames(t *testing.T) {
	of := func(organizations ...string) deployments.Caller {
		c := deployments.Caller{Token: "t"}
		for _, o := range organizations {
			c.Grants = append(c.Grants, []deployments.Grant{{Role: deployments.RoleViewer, Organization: o}})
		}
		return c
	}
	for want, c := range map[string]struct {
		caller deployments.Caller
		about  string
	}{
		"own": {of("own"), "acme"}, "both": {of(deployments.AnyOrganization, "both"), "acme"},
		"acme": {of(deployments.AnyOrganization), "acme"}, "t": {of(), "acme"},
	} {
		if got := c.caller.Party(c.about); got != want {
			t.Errorf("who is of %s pays as %s", want, got)
		}
	}
}
