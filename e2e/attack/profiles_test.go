//go:build unix

package attack

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// borrowedProfile has an admin of another organization, a deployer of another stack, a viewer and the admin of some
// stacks look at a profile and change it, and stacks name it that it is not for.
func borrowedProfile(t *testing.T, f *field) {
	f.victim.Must(t, "profile", "set", "keys", "--secret", "KEY="+needles[0], "--stacks", "precious/*", "--aws-role",
		"arn:aws:iam::123456789012:role/taken")
	profiles := api.NewProfilesClient(f.conn)
	const theirs = "organization"
	colleague := f.holder(t, "borrows", "--role", "deployer", "--organization", theirs, "--stacks", "borrowed/*")
	rival := f.holder(t, "rival-borrows", "--role", "admin", "--organization", "rival")
	for name, h := range map[string]holder{"a rival": rival, "a colleague": colleague,
		"a viewer":     f.holder(t, "borrow-viewer", "--role", "viewer", "--organization", theirs),
		"a deployer":   f.holder(t, "borrow-deployer", "--role", "deployer", "--organization", theirs),
		"a part of it": f.holder(t, "borrow-part", "--role", "admin", "--organization", theirs, "--stacks", "precious/*"),
	} {
		changed, err := profiles.ChangeProfile(h.calls, &api.ChangeProfileRequest{Organization: theirs, Name: "keys",
			Stacks: &api.ProfileStacks{Stacks: []string{"*/*"}}})
		answered(t, name+" changes it", err, codes.PermissionDenied)
		shown, err := profiles.GetProfile(h.calls, &api.GetProfileRequest{Organization: theirs, Name: "keys"})
		answered(t, name+" looks at it", err, codes.PermissionDenied)
		_, err = profiles.RemoveProfile(h.calls, &api.RemoveProfileRequest{Organization: theirs, Name: "keys"})
		answered(t, name+" removes it", err, codes.PermissionDenied)
		list, err := profiles.ListProfiles(h.calls, &api.ListProfilesRequest{Organization: theirs})
		if name == "a rival" {
			answered(t, name+" lists them", err, codes.NotFound)
		} else {
			answered(t, name+" lists them", err, codes.OK)
		}
		said := changed.String() + shown.String() + list.String()
		noSecrets(t, name+"'s answers", said)
		if strings.Contains(said, "precious") || strings.Contains(said, "KEY") || strings.Contains(said, "role/taken") {
			t.Errorf("%s sees what is in it: %s", name, said)
		}
	}
	for of, h := range map[string]holder{theirs: colleague, "rival": rival} {
		tool := f.tool(t, h, t.TempDir())
		harness.Files{"Pulumi.yaml": "name: borrowed\nruntime: scenario\n", "scenario.yaml": "steps: []\n"}.Write(t, tool.Dir)
		name := of + "/borrowed/dev"
		tool.Must(t, "stack", "init", name)
		tool.Must(t, "config", "set", "deployctl:profile", "keys", "--stack", name)
		for _, command := range []string{"preview", "up", "refresh", "destroy"} {
			args := []string{command, "--stack", name}
			if command != "preview" {
				args = append(args, "--yes", "--skip-preview")
			}
			end := tool.Run(t, args...)
			noSecrets(t, command+" of "+name, end.Said())
			if strings.Contains(end.Said(), "role/taken") {
				t.Errorf("%s of %s has the role: %s", command, name, end.Said())
			}
			if end.Code == 0 || !strings.Contains(end.Said(), "rofile keys") && !strings.Contains(end.Said(),
				`the profile "keys"`) {
				t.Errorf("%s of %s ends with %d: %s", command, name, end.Code, end.Said())
			}
		}
	}
	_, err := f.stacks().RenameStack(colleague.calls, &api.RenameStackRequest{
		From: &api.StackName{Organization: theirs, Project: "borrowed", Stack: "dev"},
		To:   &api.StackName{Organization: theirs, Project: "precious", Stack: "borrowed"}})
	answered(t, "renaming a stack into those that may use it", err, codes.PermissionDenied)
	if shown := f.victim.Must(t, "profile", "show", "keys"); !strings.Contains(shown, "version 1") ||
		!strings.Contains(shown, "stacks: precious/*") {
		t.Errorf("it is changed: %s", shown)
	}
	if log := f.victim.Must(t, "audit"); strings.Count(log, "Profiles/Use") < 4 || strings.Contains(log, needles[0]) {
		t.Errorf("the audit log has not each use that was refused: %s", log)
	}
	f.victim.Must(t, "profile", "rm", "keys")
}
