package deployments

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

func TestAMergePatchChangesWhatItNames(t *testing.T) {
	for name, c := range map[string]struct{ before, patch, want string }{
		"a value is added":         {`{}`, `{"a":{"b":1}}`, `{"a":{"b":1}}`},
		"null removes a value":     {`{"a":{"b":1,"c":2}}`, `{"a":{"b":null}}`, `{"a":{"c":2}}`},
		"a list is replaced":       {`{"a":[1,2]}`, `{"a":[3]}`, `{"a":[3]}`},
		"nothing is merged into 1": {`{"a":1}`, `{"a":{"b":null,"c":2}}`, `{"a":{"c":2}}`},
		"a secret is one value":    {`{"e":{"A":{"ciphertext":"x"}}}`, `{"e":{"A":{"secret":"y"}}}`, `{"e":{"A":{"secret":"y"}}}`},
		"without a document":       {``, `{"a":1}`, `{"a":1}`},
	} {
		got, err := MergePatch(json.RawMessage(c.before), json.RawMessage(c.patch))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	for _, patch := range []string{`[]`, `1`, `null`, `{`, ``} {
		if _, err := MergePatch(nil, json.RawMessage(patch)); CodeOf(err) != CodeInvalid {
			t.Errorf("the patch %q: %v", patch, err)
		}
	}
}

func TestAPatchReplacesTheVersionControlSourceAsAWhole(t *testing.T) {
	for stored, want := range map[string]string{
		`{"vcs":{"provider":"gitlab","repository":"a/b","deployCommits":true,"paths":["x"]},"tag":"t"}`: `{"tag":"t","vcs":` +
			`{"provider":"gitlab","repository":"a/c"}}`,
		`{"gitHub":{"repository":"a/b","deployCommits":true}}`: `{"vcs":{"provider":"gitlab","repository":"a/c"}}`,
		`null`: `{"vcs":{"provider":"gitlab","repository":"a/c"}}`,
	} {
		got, err := MergePatch([]byte(stored), []byte(`{"vcs":{"provider":"gitlab","repository":"a/c"}}`))
		if err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v", stored, got, err)
		}
	}
	if got, err := MergePatch([]byte(`{"vcs":{"provider":"gitlab"}}`), []byte(`{"tag":"t"}`)); err != nil ||
		string(got) != `{"tag":"t","vcs":{"provider":"gitlab"}}` {
		t.Errorf("a patch of something else makes %s, %v", got, err)
	}
}

func TestARepositoryOfAKnownServerNeedsNoURL(t *testing.T) {
	for text, want := range map[string]string{
		`{"gitHub":{"repository":"acme/shop"}}`:                     "https://github.com/acme/shop.git",
		`{"vcs":{"provider":"github","repository":"acme/shop"}}`:    "https://github.com/acme/shop.git",
		`{"vcs":{"provider":"gitlab","repository":"acme/shop"}}`:    "https://gitlab.com/acme/shop.git",
		`{"vcs":{"provider":"bitbucket","repository":"acme/shop"}}`: "https://bitbucket.org/acme/shop.git",
		`{"vcs":{"provider":"custom","repository":"acme/shop"}}`:    "",
		`{"vcs":{"provider":"github"}}`:                             "",
		`{"sourceContext":{"git":{"repoUrl":"https://git.acme/x"}},` +
			`"vcs":{"provider":"github","repository":"a/b"}}`: "https://git.acme/x",
	} {
		var s DeploymentSettings
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.Git().RepoURL; got != want {
			t.Errorf("%s is of %q", text, got)
		}
	}
}

func TestWhatADeploymentCannotDoIsRefused(t *testing.T) {
	for text, why := range map[string]string{
		`{"executorContext":{"executorImage":"alpine"}}`:                                   "image",
		`{"agentPoolID":"pool"}`:                                                           "pools",
		`{"operationContext":{"oidc":{"aws":{"roleArn":"x"}}}}`:                            "OIDC",
		`{"sourceContext":{"hg":{"repoUrl":"x"}}}`:                                         "git repositories only",
		`{"sourceContext":{"git":{"repoUrl":"file:///etc"}}}`:                              "https:// or ssh://",
		`{"sourceContext":{"git":{"repoUrl":"ext::sh -c x"}}}`:                             "not the URL",
		`{"sourceContext":{"git":{"repoUrl":"git://host/x"}}}`:                             "https:// or ssh://",
		`{"sourceContext":{"git":{"repoUrl":"https://u:p@host/x"}}}`:                       "credentials",
		`{"sourceContext":{"git":{"repoUrl":"--upload-pack=x"}}}`:                          "not the URL",
		`{"sourceContext":{"git":{"branch":"a","commit":"b"}}}`:                            "not both",
		`{"sourceContext":{"git":{"branch":"--x"}}}`:                                       "not the branch",
		`{"sourceContext":{"git":{"repoDir":"../x"}}}`:                                     "inside the repository",
		`{"executorContext":{"workingDirectory":"/etc"}}`:                                  "inside the repository",
		`{"operationContext":{"environmentVariables":{"A=B":"x"}}}`:                        "environment variable",
		`{"operationContext":{"options":{"shell":"sh -c x"}}}`:                             "not a shell",
		`{"webhook":{"secret":"short"}}`:                                                   "at least",
		`{"vcs":{"provider":"gitlab","paths":["a/["]}}`:                                    "not a path filter",
		`{"gitHub":{"paths":["a"]},"vcs":{"provider":"github","paths":["a/[b/c]"]}}`:       "not a path filter",
		`{"gitHub":{"pullRequestTemplate":true}}`:                                          "review stacks",
		`{"vcs":{"provider":"github","reviewStackLabels":["preview"]}}`:                    "review stacks",
		`{"vcs":{"provider":"gitlab","deployTags":true}}`:                                  "a pushed tag starts no deployment",
		`{"operationContext":{"preRunCommands":["` + strings.Repeat("x", 300<<10) + `"]}}`: "bytes",
	} {
		var s DeploymentSettings
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(); CodeOf(err) != CodeInvalid || !strings.Contains(err.Error(), why) {
			t.Errorf("%.80s: %v", text, err)
		}
	}
}

func TestCredentialsAreSecretsWhateverTheirSenderSays(t *testing.T) {
	var s DeploymentSettings
	if err := json.Unmarshal([]byte(`{"sourceContext":{"git":{"gitAuth":{"accessToken":"open",
		"sshAuth":{"sshPrivateKey":"open","password":"open"},"basicAuth":{"userName":"open","password":"open"}}}},
		"operationContext":{"environmentVariables":{"A":{"secret":"open"},"B":"shown"}},
		"webhook":{"secret":"open"}}`), &s); err != nil {
		t.Fatal(err)
	}
	err := s.MapSecrets(func(_ string, v apitype.SecretValue) (apitype.SecretValue, error) {
		return apitype.SecretValue{Secret: true, Ciphertext: "sealed"}, nil
	})
	text, _ := json.Marshal(s)
	if err != nil || strings.Contains(string(text), "open") || strings.Count(string(text), "sealed") != 7 ||
		!strings.Contains(string(text), "shown") {
		t.Errorf("%s, %v", text, err)
	}
}

func TestTheShortFormOfAnSSHAddressIsAURL(t *testing.T) {
	u, err := GitURL("git@example.com:acme/shop.git")
	if err != nil || u.String() != "ssh://git@example.com/acme/shop.git" ||
		ShownURL(u) != "ssh://example.com/acme/shop.git" {
		t.Errorf("%v, %v", u, err)
	}
}

func TestADeploymentIsKnownByItsIDAndItsNumber(t *testing.T) {
	s := StackName{"acme", "shop", "dev"}
	for _, id := range []string{"deployment-12", "12"} {
		if n, err := DeploymentOf(s, id); err != nil || n.Number != 12 || n.ID() != "deployment-12" {
			t.Errorf("%s: %v, %v", id, n, err)
		}
	}
	for _, id := range []string{"", "0", "-1", "deployment-", "deployment-x", "version", "../12"} {
		if _, err := DeploymentOf(s, id); CodeOf(err) != CodeNotFound {
			t.Errorf("%q: %v", id, err)
		}
	}
}
