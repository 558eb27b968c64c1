package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSeveralValuesAreSetAndRemovedAtOnce(t *testing.T) {
	d := inProject(t)
	d.must("config", "set-all", "--plaintext", "size=3", "--secret", "password=a=b", "--plaintext", "empty=")
	for key, want := range map[string]string{"size": "3", "password": "a=b", "empty": ""} {
		if got := strings.TrimSuffix(d.must("config", "get", key), "\n"); got != want {
			t.Errorf("%s is %q", key, got)
		}
	}
	if strings.Contains(d.read("Pulumi.dev.yaml"), "a=b") {
		t.Error("the secret is stored in plaintext")
	}
	d.must("config", "set-all", "--path", "--plaintext", `names["a=b"].c=d`)
	if got := d.must("config", "get", "--path", `names["a=b"].c`); got != "d\n" {
		t.Errorf("the path has %q", got)
	}
	before := d.read("Pulumi.dev.yaml")
	d.refused(2, "takes KEY=VALUE", "config", "set-all", "--plaintext", "x=1", "--secret", "y")
	d.refused(2, "no value was given", "config", "set-all")
	d.refused(2, "zise is not set", "config", "rm-all", "size", "zise")
	if d.read("Pulumi.dev.yaml") != before {
		t.Error("a command that failed changed the file")
	}
	d.must("config", "rm-all", "size", "password", "names")
	if got := d.must("config"); strings.Contains(got, "size") || !strings.Contains(got, "empty") {
		t.Errorf("left is\n%s", got)
	}
}

func TestTheConfigurationIsCopiedToAnotherStack(t *testing.T) {
	d := inProject(t)
	d.environ = append(d.environ, "PULUMI_CONFIG_PASSPHRASE=open")
	d.must("stack", "init", "prod", "--secrets-provider", "passphrase", "--no-select")
	d.must("config", "set-all", "--plaintext", "size=3", "--secret", "password=sesame", "--path", "--secret", "deep.one=x")
	d.must("config", "cp", "size", "--dest", "prod")
	d.refused(2, "is not set", "config", "get", "password", "--stack", "prod")
	d.must("config", "cp", "--dest", "prod")
	if got := d.must("config", "get", "password", "--stack", "prod"); got != "sesame\n" {
		t.Errorf("the password is %q", got)
	}
	if got := d.must("config", "get", "--path", "deep.one", "--stack", "prod"); got != "x\n" {
		t.Errorf("the secret in an object is %q", got)
	}
	if file := d.read("Pulumi.prod.yaml"); strings.Contains(file, "sesame") || !strings.Contains(file, "encryptionsalt") {
		t.Errorf("the file is\n%s", file)
	}
	d.refused(2, "name another stack", "config", "cp", "--dest", "dev")
	d.refused(2, "is not set", "config", "cp", "none", "--dest", "prod")
}

func TestTheConfigurationIsReadFromAFile(t *testing.T) {
	d := inProject(t)
	d.write("ci/dev.yaml", "config:\n  shop:size: \"5\"\n")
	if got := d.must("config", "get", "size", "--config-file", "ci/dev.yaml"); got != "5\n" {
		t.Errorf("size is %q", got)
	}
	d.must("config", "set", "size", "6", "--config-file", "ci/dev.yaml")
	file := d.read("ci/dev.yaml")
	if _, err := os.Stat(filepath.Join(d.dir, "Pulumi.dev.yaml")); err == nil || !strings.Contains(file, "6") {
		t.Errorf("%v; the file is\n%s", err, file)
	}
	d.refused(2, "--config-file", "up", "--yes", "--config-file", "none.yaml")
}

func TestTheHistoryHasPages(t *testing.T) {
	d := inProject(t)
	for range 5 {
		d.must("up", "--yes", "--skip-preview")
	}
	versions := func(args ...string) (list string) {
		for _, line := range strings.Split(d.must(append([]string{"stack", "history"}, args...)...), "\n")[1:] {
			list += strings.SplitN(line, " ", 2)[0]
		}
		return list
	}
	for args, want := range map[string]string{
		"": "54321", "--page-size 2": "54", "--page 2 --page-size 2": "32", "--page 3 --page-size 2": "1",
		"--page 4 --page-size 2": "", "--page 1": "54321",
	} {
		if got := versions(strings.Fields(args)...); got != want {
			t.Errorf("%s: %s, not %s", args, got, want)
		}
	}
	d.refused(2, "exclude --limit", "stack", "history", "--page", "1", "--limit", "3")
	d.refused(2, "from 1 on", "stack", "history", "--page-size", "0")
}

func TestAboutNamesVersionsAndTheProject(t *testing.T) {
	d := inProject(t)
	d.environ = append(d.environ, "DEPLOYCTL_TOKEN=hunter2")
	for _, args := range [][]string{{"about"}, {"about", "--json"}} {
		out := d.must(args...)
		for _, part := range []string{"test", "embedded", "shop", "yaml", "organization/shop/dev"} {
			if !strings.Contains(out, part) || strings.Contains(out, "hunter2") {
				t.Errorf("%v does not say %q but\n%s", args, part, out)
			}
		}
	}
	d.must("stack", "unselect")
	if out := d.must("about"); strings.Contains(out, "organization/shop/dev") {
		t.Errorf("a stack is selected:\n%s", out)
	}
}
