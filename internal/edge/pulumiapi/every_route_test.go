package pulumiapi

import (
	"bytes"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// sample puts values into a path that the bench has.
var sample = strings.NewReplacer("{org}", "acme", "{project}", "shop", "{stack}", "dev", "{id}", "1", "{version}", "1",
	"{member}", "ann", "{team}", "web", "{role}", "viewer")

// sampled returns the path of a route with values; each value that sample does not have is "x".
func sampled(r route) string { return placeholder.ReplaceAllString(sample.Replace(r.path), "x") }

// guarded returns the routes that need a credential in a header.
func guarded(t testing.TB) []route {
	t.Helper()
	var all []route
	for _, r := range routes() {
		if err := r.resolve(); err != nil {
			t.Fatal(err)
		}
		if r.by == byToken || r.by == byLease {
			all = append(all, r)
		}
	}
	return all
}

// asksTemporal reports whether a call that is admitted needs Temporal, which the bench does not have.
func asksTemporal(method, path string) bool {
	return method == http.MethodDelete || slices.ContainsFunc([]string{"/cancel", "/schedules", "/drift", "/update",
		"/begin-update", "/pause", "/resume", "/destroy", "/refresh", "/preview", "/rename"},
		func(part string) bool { return strings.Contains(path, part) })
}

func TestEachRouteRefusesWhoMayNotCallIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the delays after wrong tokens pass at once
		b := newBench(t)
		for _, r := range guarded(t) {
			path := sampled(r)
			b.want(http.StatusUnauthorized, r.method, path, "", "{}")
			b.want(http.StatusUnauthorized, r.method, path, "Bearer admin", "{}")
			b.want(http.StatusUnauthorized, r.method, path, "token wrong", "{}")
			switch {
			case r.by == byLease:
				b.want(http.StatusUnauthorized, r.method, path, "token admin", "{}")
				b.want(http.StatusUnauthorized, r.method, path, "update-token forged", "{}")
			case strings.Contains(r.path, "{stack}"):
				b.want(http.StatusNotFound, r.method, path, "token stranger", "{}")
				if got, said, _ := b.do(r.method, path, "token nobody", strings.NewReader("{}")); got != http.StatusNotFound &&
					got != http.StatusForbidden { // the latter where any stack is refused
					t.Errorf("%s %s by nobody is answered %d: %s", r.method, path, got, said)
				}
			}
		}
	})
}

// TestEachRouteIsForTheRolesOfItsRule plays every route as each role. What the roles may do is said in words by the
// tests of the rules in internal/edge/grpcapi.
func TestEachRouteIsForTheRolesOfItsRule(t *testing.T) {
	for _, r := range guarded(t) {
		if r.by == byLease {
			continue
		}
		b := newBench(t) // a call may remove the stack
		for _, role := range []deployments.Role{"nobody", deployments.RoleViewer, deployments.RoleDeployer,
			deployments.RoleAdmin} {
			who := caller(string(role), role, "acme")
			var stacks []deployments.StackName
			if strings.Contains(r.path, "{stack}") {
				stacks = append(stacks, dev)
			}
			refused := r.does.Allow(who, false, stacks...) != nil
			got, said, _ := b.do(r.method, sampled(r), "token "+string(role), strings.NewReader("{}"))
			switch {
			case refused && got != http.StatusForbidden && got != http.StatusNotFound:
				t.Errorf("%s %s by a %s is answered %d: %s", r.method, r.path, role, got, said)
			case !refused && got == http.StatusUnauthorized:
				t.Errorf("%s %s by a %s is refused: %s", r.method, r.path, role, said)
			}
		}
	}
}

func TestTheRouteOfAnotherOrganizationChangesAndShowsNothing(t *testing.T) {
	b := newBench(t)
	grant := deployments.Grant{Role: deployments.RoleViewer, Organization: "acme"}
	for _, err := range []error{b.store.Access.GrantMember(t.Context(), "ann", grant),
		b.store.Access.GrantTeam(t.Context(), "web", grant)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range guarded(t) {
		if r.by == byLease {
			continue
		}
		got, said, _ := b.do(r.method, sampled(r), "token stranger", strings.NewReader(`{"stackName":"new","role":"admin"}`))
		if strings.Contains(r.path, "{org}") && (strings.Contains(said, `"ann"`) || strings.Contains(said, `"web"`) ||
			got < 300 && r.method != http.MethodGet) {
			t.Errorf("%s %s is answered %d: %s", r.method, r.path, got, said)
		}
	}
	if stacks, err := b.store.ListStacks(t.Context(), "", ""); err != nil || len(stacks) != 1 || len(stacks[0].Tags) != 0 {
		t.Errorf("the stacks are %+v, %v", stacks, err)
	}
	members, err := b.store.Access.ListMembers(t.Context())
	if err != nil || len(members) != 1 || members[0].Grant.Role != deployments.RoleViewer {
		t.Errorf("the members are %+v, %v", members, err)
	}
	teams, err := b.store.Access.ListTeams(t.Context())
	if err != nil || len(teams) != 1 || teams[0].Grant.Role != deployments.RoleViewer {
		t.Errorf("the teams are %+v, %v", teams, err)
	}
}

func TestTheTokenOfALeaseOpensNoRouteOfAnotherUpdateAndNoneAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the delays after wrong tokens pass at once
		b := newBench(t)
		l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
			Expires: time.Now().Add(time.Hour)}
		late := l
		late.Expires = time.Now().Add(-time.Second)
		for _, r := range guarded(t) {
			own := strings.Replace(sampled(r), "/update/1", "/update/mine", 1)
			if r.by != byLease {
				b.want(http.StatusUnauthorized, r.method, own, "update-token "+b.server.Leases.LeaseToken(l), "{}")
				continue
			}
			for _, other := range []string{sampled(r), strings.Replace(own, "/dev/", "/prod/", 1),
				strings.Replace(own, "/acme/", "/other/", 1)} {
				b.want(http.StatusForbidden, r.method, other, "update-token "+b.server.Leases.LeaseToken(l), "{}")
			}
			b.want(http.StatusForbidden, r.method, own, "update-token "+b.server.Leases.LeaseToken(late), "{}")
		}
	})
}

func TestATokenThatWasRemovedOrHasExpiredOpensNoRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the delays after wrong tokens pass at once
		b := newBench(t)
		all := deployments.Grant{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}
		removed, err := b.store.Access.CreateToken(t.Context(), deployments.Token{Name: "removed", Grant: &all})
		if err != nil {
			t.Fatal(err)
		}
		b.want(http.StatusOK, http.MethodGet, "/api/user", "token "+removed, "")
		if err := b.store.Access.RemoveToken(t.Context(), "removed"); err != nil {
			t.Fatal(err)
		}
		expired, err := b.store.Access.CreateToken(t.Context(), deployments.Token{Name: "expired", Grant: &all,
			Expires: time.Now().Add(time.Minute)})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		for _, r := range guarded(t) {
			if r.by == byToken {
				b.want(http.StatusUnauthorized, r.method, sampled(r), "token "+removed, "{}")
				b.want(http.StatusUnauthorized, r.method, sampled(r), "token "+expired, "{}")
			}
		}
	})
}

var hostileNames = []string{"%2e%2e", "a%2fb", "%00", "a%5cb", "%2e", "..%2f..%2ftokens%2fadmin", "%c0%ae%c0%ae",
	"a%0ab", "%ff", "*", "-x", "a%20b", strings.Repeat("x", 200)}

func TestANameInAPathLeavesItsPlaceOnNoRoute(t *testing.T) {
	b := newBench(t)
	named := regexp.MustCompile(`\{(org|project|stack|member|team|role)\}`)
	for _, r := range routes() {
		for _, value := range named.FindAllString(r.path, -1) {
			for _, name := range hostileNames {
				path := placeholder.ReplaceAllString(sample.Replace(strings.Replace(r.path, value, name, 1)), "x")
				got, said, _ := b.do(r.method, path, "token admin", strings.NewReader("{}"))
				if got != http.StatusBadRequest && got != http.StatusNotFound && got != http.StatusUnauthorized {
					t.Errorf("%s %s is answered %d: %s", r.method, path, got, said)
				}
			}
		}
	}
}

func TestABodyThatGrowsIsTooLargeOnEachRouteThatReadsOne(t *testing.T) {
	b := newBench(t)
	bomb := zipped(t, append([]byte(`{"x":"`), bytes.Repeat([]byte("A"), batchBody+1)...)).Bytes()
	l := deployments.Leased{ID: "mine", Update: deployments.UpdateName{StackName: dev, Version: "7"},
		Expires: time.Now().Add(time.Hour)}
	for _, r := range guarded(t) {
		if r.limit > batchBody || r.method == http.MethodGet || r.method == http.MethodHead ||
			r.by == byToken && asksTemporal(r.method, r.path) {
			continue // a deployment may be larger, and its memory is taken before it is read; others read no body
		}
		authorization, path := "token admin", sampled(r)
		if r.by == byLease {
			authorization = "update-token " + b.server.Leases.LeaseToken(l)
			path = strings.Replace(path, "/update/1", "/update/mine", 1)
		}
		got, said, _ := b.do(r.method, path, authorization, bytes.NewReader(bomb), "Content-Encoding", "gzip")
		if got < 400 && !strings.Contains(r.path, "log-") && !strings.Contains(r.path, "/teams/") ||
			got == http.StatusInternalServerError {
			t.Errorf("%s %s is answered %d: %s", r.method, r.path, got, said)
		}
	}
}
