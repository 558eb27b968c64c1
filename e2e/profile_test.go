package e2e

import (
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// profiled prints a variable of a profile to a file, and another one to its output.
const profiled = `
name: NAME
runtime: yaml
resources:
  said:
    type: deployctl:command:Run
    properties:
      create: 'printf "%s" "$PROFILE_REGION" > region; echo "key=$PROFILE_KEY region=$PROFILE_REGION"'
      triggers: [1]
outputs:
  said: ${said.stdout}
`

// TestAStackUsesTheNewestVersionOfItsProfileAndShowsNoSecretOfIt sets a profile, uses it in a command whose output has
// its secret, and changes it.
func TestAStackUsesTheNewestVersionOfItsProfileAndShowsNoSecretOfIt(t *testing.T) {
	t.Parallel()
	h := running(t)
	p := h.in(t.TempDir(), "PROFILE_REGION=of-the-shell")
	name := projectName(t)
	p.write(t, "Pulumi.yaml", strings.Replace(profiled, "NAME", name, 1))
	p.must(t, "stack", "init", "dev")
	const hush = "hush-hush-of-the-profile"
	profile := name[max(0, len(name)-40):]
	profile = strings.Trim(profile, "-")
	p.must(t, "profile", "set", profile, "PROFILE_REGION=north", "--secret", "PROFILE_KEY="+hush)
	p.must(t, "config", "set", "deployctl:profile", profile)
	refused := p.run(t, "up", "--yes")
	if refused.code == 0 || !strings.Contains(refused.stdout.String()+refused.stderr.String(), "is not for the stack") {
		t.Fatalf("a profile for no stack: %d\n%s%s", refused.code, &refused.stdout, &refused.stderr)
	}
	p.must(t, "profile", "set", profile, "--stacks", name+"/*")
	seen := p.must(t, "up", "--yes")
	seen += p.must(t, "profile", "set", profile, "PROFILE_REGION=south")
	p.replaceIn(t, "Pulumi.yaml", "triggers: [1]", "triggers: [2]")
	seen += p.must(t, "up", "--yes")
	state := p.must(t, "stack", "export", "--show-secrets")
	for text, in := range map[string]bool{"region=south": true, "key=" + hush: true, "of-the-shell": false,
		"region=north": false} {
		if strings.Contains(state, text) != in {
			t.Errorf("%q in the state: %t, want %t\n%s", text, !in, in, state)
		}
	}
	seen += p.must(t, "logs") + p.must(t, "stack", "export") + p.must(t, "stack", "output") +
		p.must(t, "attach") + p.must(t, "profile", "show", profile, "--json") + p.must(t, "config") +
		p.must(t, "audit")
	if strings.Contains(seen, hush) || !strings.Contains(seen, "[secret]") {
		t.Errorf("the secret of the profile is seen:\n%s", seen)
	}
	for _, text := range []string{"The update uses version 3 of the profile " + profile, "Profiles/Use",
		"profile=" + profile + " version=3 kind=up"} {
		if !strings.Contains(seen, text) {
			t.Errorf("nothing says %q:\n%s", text, seen)
		}
	}
	p.must(t, "schedule", "new", "update", "--name", "again", "--every", "24h")
	p.must(t, "profile", "set", profile, "PROFILE_REGION=west")
	if run := (&scene{stage: &stage{project: p}}).now(t, "again"); run.Status != "succeeded" {
		t.Errorf("its schedule came to %+v", run)
	}
	var used []int
	for _, u := range told[[]deployments.UpdateInfo](t, p, "stack", "history") {
		if u.Profile == nil || u.Profile.Name != profile {
			t.Fatalf("the history says %+v", u)
		}
		used = append(used, u.Profile.Version)
	}
	if !slices.Equal(used, []int{4, 3, 2}) {
		t.Errorf("the updates used the versions %d, the latest first", used)
	}
	p.must(t, "destroy", "--yes")
	p.must(t, "profile", "rm", profile)
}
