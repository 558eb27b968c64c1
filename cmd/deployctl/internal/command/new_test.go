package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const shopTemplate = `name: ${PROJECT}
runtime: yaml
description: ${DESCRIPTION}
template:
  description: A shop
  quickstart: "Open it.\e[2J"
  config:
    size: {description: How large, default: "3"}
    aws:region: {description: Where}
    password: {description: Who may enter, secret: true}
`

// emptied returns a desk in an empty directory, with a template beside it.
func emptied(t *testing.T) *desk {
	d := newDesk(t, map[string]string{"shop/.deployctlignore": ".git\n", "shop/Pulumi.yaml": shopTemplate})
	root := d.dir
	for _, name := range []string{"shop", "x"} {
		if err := os.Rename(filepath.Join(root, name), filepath.Join(filepath.Dir(root), name)); err != nil {
			t.Fatal(err)
		}
	}
	return d
}

func TestAProjectIsMadeFromATemplateWithoutQuestions(t *testing.T) {
	d := emptied(t)
	out := d.must("new", "../shop", "--yes", "--name", "corner", "--config", "aws:region=eu-central-1",
		"--config", "password=sesame")
	for _, part := range []string{"Created project corner", "Created stack organization/corner/dev", "deployctl up",
		"Open it."} {
		if !strings.Contains(out, part) {
			t.Errorf("it does not say %q but\n%s", part, out)
		}
	}
	if got := d.read("Pulumi.yaml"); got != "name: corner\nruntime: yaml\ndescription: A shop\n" {
		t.Errorf("Pulumi.yaml is\n%s", got)
	}
	for key, want := range map[string]string{"size": "3", "aws:region": "eu-central-1", "password": "sesame"} {
		if got := strings.TrimSpace(d.must("config", "get", key)); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	if strings.Contains(d.read("Pulumi.dev.yaml"), "sesame") {
		t.Error("the secret is stored in plaintext")
	}
}

func TestAProjectIsMadeFromTheAnswersOfAUser(t *testing.T) {
	d := emptied(t)
	d.person, d.input, d.hidden = true, "not/a/name\ncorner\nBread\nprod\n\n5\n", []string{"sesame"}
	out := d.must("new", "../shop")
	if !strings.Contains(out, "deployctl config set aws:region   # Where") || strings.Contains(out, "sesame") ||
		strings.Contains(out, "\x1b[2J") {
		t.Errorf("it says\n%s", out)
	}
	if got := d.read("Pulumi.yaml"); !strings.Contains(got, "name: corner\nruntime: yaml\ndescription: Bread\n") {
		t.Errorf("Pulumi.yaml is\n%s", got)
	}
	for key, want := range map[string]string{"size": "5", "password": "sesame"} {
		if got := strings.TrimSpace(d.must("config", "get", key, "--stack", "prod")); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
}

func TestTheFirstStackMayHaveAPassphrase(t *testing.T) {
	d := emptied(t)
	d.environ = append(d.environ, "PULUMI_CONFIG_PASSPHRASE=open")
	d.must("new", "../shop", "--yes", "--name", "corner", "--config", "password=sesame", "--secrets-provider",
		"passphrase")
	if got := d.read("Pulumi.dev.yaml"); !strings.Contains(got, "encryptionsalt") || strings.Contains(got, "sesame") {
		t.Errorf("the configuration is\n%s", got)
	}
}

func TestAProjectIsNotMadeWhereItDoesNotBelong(t *testing.T) {
	d := emptied(t)
	d.write("kept.txt", "kept")
	d.refused(2, "is not empty (it has kept.txt)", "new", "website", "--yes")
	d.must("new", "website", "--yes", "--dir", "site", "--generate-only")
	if _, err := os.Stat(filepath.Join(d.dir, "site", "www", "index.html")); err != nil {
		t.Error(err)
	}
	d.must("new", "../shop", "--yes", "--force", "--generate-only", "--name", "corner")
	if d.read("kept.txt") != "kept" || !strings.Contains(d.read("Pulumi.yaml"), "corner") {
		t.Error("--force did not make the project beside the file")
	}
}

func TestATemplateThatCannotBeUsedMakesNothing(t *testing.T) {
	d := emptied(t)
	d.refused(2, `did you mean website`, "new", "websitee", "--yes")
	d.refused(2, "name a template", "new", "--yes")
	d.refused(2, "needs confirmation", "new", "website")
	d.refused(2, "not from http://", "new", "http://example.com/a/b", "--yes")
	d.refused(2, "cannot be the name of a project", "new", "website", "--yes", "--name", "a/b")
	d.refused(2, "takes KEY=VALUE", "new", "website", "--yes", "--config", "x")
	d.refused(2, "is not a secrets provider", "new", "website", "--yes", "--secrets-provider", "x")
	if entries, err := os.ReadDir(d.dir); err != nil || len(entries) > 0 {
		t.Errorf("it left %v (%v)", entries, err)
	}
	if out := d.must("new", "--list"); !strings.Contains(out, "go-provider") || !strings.Contains(out, "website") {
		t.Errorf("the list is\n%s", out)
	}
}
