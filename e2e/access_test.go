package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
)

// apart starts a service on the shared home's servers with a state of its own, and gives its address; stop ends it.
func apart(t *testing.T, prefix string) (served *ran, address string, stop func()) {
	t.Helper()
	h := running(t)
	good, _ := h.parts(t)
	settings := h.namespaced(t, good, strings.TrimSuffix(prefix, "/"))
	address = porttest.Address(t)
	served = h.in(t.TempDir(), append(settings, "DEPLOYCTL_S3_PREFIX="+prefix)...).start(t, "serve", "--listen",
		address)
	served.says(t, "serving")
	return served, address, func() {
		served.interrupt(t)
		served.mustEnd(t, 0)
	}
}

func TestWhoMayDoWhatOnAServiceOfManyOrganizations(t *testing.T) {
	t.Parallel()
	_, address, stop := apart(t, "access/")
	defer stop()
	with := func(token string) *project {
		p := running(t).in(t.TempDir(), "DEPLOYCTL_SERVER="+address, "DEPLOYCTL_TOKEN="+token)
		p.write(t, "Pulumi.yaml", "name: shop\nruntime: scenario\n")
		return p
	}
	create := func(by *project, args ...string) *project {
		return with(strings.TrimSpace(by.must(t, append([]string{"token", "create"}, args...)...)))
	}
	first := with("the-first-token")
	root := create(first, "root", "--role", "admin", "--organization", "*")
	root.must(t, "stack", "init", "acme/shop/dev")
	root.must(t, "stack", "init", "initech/shop/dev")
	root.must(t, "config", "set", "--secret", "password", "needle-77", "--stack", "acme/shop/dev")
	eventually(t, "the first token manages tokens only", func() bool {
		return strings.Contains(first.run(t, "stack", "ls", "--all").said(), "may only manage tokens and members")
	})

	root.must(t, "member", "add", "ann", "--role", "viewer", "--organization", "acme")
	viewer := create(root, "ann-laptop", "--member", "ann", "--organization", "acme")
	if got := viewer.must(t, "stack", "ls", "--all", "--organization", "acme", "--json"); !strings.Contains(got,
		"acme") || strings.Contains(got, "initech") {
		t.Errorf("a viewer of acme sees %s", got)
	}
	viewer.fails(t, 2, []string{"there is no stack initech/shop/dev"}, "stack", "history", "--stack",
		"initech/shop/dev")
	viewer.fails(t, 6, []string{"needs the role deployer on acme/shop/dev"}, "stack", "tag", "--stack", "acme/shop/dev",
		"set", "a", "b")
	viewer.fails(t, 6, []string{"needs the role admin"}, "token", "ls")
	foreign := create(root, "initech-ci", "--role", "deployer", "--organization", "initech", "--stacks", "shop/*",
		"--expires", "1h")
	foreign.fails(t, 2, []string{"there is no stack acme/shop/dev"}, "stack", "rm", "acme/shop/dev", "--force", "--yes")
	foreign.fails(t, 6, []string{"needs the role admin on initech/shop/dev"}, "stack", "rm", "initech/shop/dev",
		"--force", "--yes")
	foreign.must(t, "stack", "rm", "initech/shop/dev", "--yes")
	if got := viewer.must(t, "whoami"); got != "ann\n" {
		t.Errorf("a viewer is %q", got)
	}
	if got := viewer.must(t, "whoami", "-v"); !strings.Contains(got, "ann-laptop") ||
		!strings.Contains(got, "viewer of acme") || strings.Contains(got, "initech") {
		t.Errorf("a viewer of acme is\n%s", got)
	}
	if got := foreign.must(t, "whoami", "--json"); !strings.Contains(got, `"initech-ci"`) ||
		!strings.Contains(got, `"shop/*"`) || strings.Contains(got, "acme") {
		t.Errorf("a token of initech is\n%s", got)
	}

	// What is refused, and what only reads, is in the log within a second.
	eventually(t, "the audit log has the calls of both organizations", func() bool {
		log := root.must(t, "audit", "--organization", "*")
		return !slices.ContainsFunc([]string{
			"bootstrap", "Tokens/CreateToken", "ann (ann-laptop)", "Stacks/GetStack", "not-found", "initech-ci",
			"Stacks/RemoveStack", "forbidden", "Members/GrantMember",
		}, func(want string) bool { return !strings.Contains(log, want) })
	})
	eventually(t, "the audit log has the two removals that initech-ci has tried", func() bool {
		log := root.must(t, "audit", "--organization", "initech", "--user", "initech-ci", "--stack", "initech/shop/dev")
		if strings.Contains(log, "acme") {
			t.Errorf("what initech-ci did to initech/shop/dev:\n%s", log)
		}
		return strings.Count(log, "Stacks/RemoveStack") == 2
	})
	viewer.fails(t, 6, []string{"needs the role admin"}, "audit", "--organization", "acme")
	root.must(t, "member", "rm", "ann", "--organization", "acme")
	viewer.fails(t, 6, []string{"the access token is not valid"}, "stack", "ls", "--all")
}
