package command

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// offered returns the completions of the last of some words.
func (d *desk) offered(words ...string) string {
	d.t.Helper()
	var values []string
	for _, found := range strings.Split(strings.TrimSuffix(d.must(append(words, completionFlag)...), "\n"), "\n") {
		value, _, _ := strings.Cut(found, "\t")
		values = append(values, value)
	}
	return strings.Join(values, " ")
}

func TestWhatMayStandAtTheCursorIsOffered(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("prod")
	d.stack("dev")
	d.must("config", "set", "region", "eu")
	d.must("config", "set", "other:size", "3")
	d.must("up", "--yes")
	d.must("token", "create", "ci", "--role", "viewer")
	d.must("member", "add", "ann", "--role", "viewer")
	for _, c := range []struct {
		name, want string
		words      []string
	}{
		{"commands", "cancel config completion", []string{"c"}},
		{"commands of a command", "ls", []string{"stack", "l"}},
		{"flags", "--target --target-dependents", []string{"up", "--ta"}},
		{"all flags after two dashes", "--help --path --plaintext", []string{"config", "set", "--pl"}},
		{"stacks as a flag's value", "dev prod", []string{"up", "--stack", ""}},
		{"stacks behind the short flag", "prod", []string{"up", "-s", "p"}},
		{"stacks as an argument", "dev prod", []string{"stack", "select", ""}},
		{"stacks as a flag's value before the command", "dev prod", []string{"--stack", ""}},
		{"values before the command behind an equals sign", "--on-busy=queue", []string{"--on-busy=q"}},
		{"tokens", "ci", []string{"token", "rm", ""}},
		{"members", "ann", []string{"member", "rm", ""}},
		{"keys of the configuration", "other:size region", []string{"config", "get", ""}},
		{"keys of the stack that is named", "", []string{"config", "get", "-s", "prod", ""}},
		{"no value of a key", "", []string{"config", "set", "region", ""}},
		{"versions", "1", []string{"attach", ""}},
		{"values of a flag that takes one of a few", "queue", []string{"up", "--on-busy", "q"}},
		{"values behind an equals sign", "--kind=refresh", []string{"preview", "--kind=r"}},
		{"shells", "bash fish zsh", []string{"completion", ""}},
		{"files where one is named", "<files>", []string{"stack", "export", "--file", ""}},
		{"nothing where nobody can know", "", []string{"up", "--message", ""}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d.t = t
			got := d.offered(c.words...)
			if c.name == "all flags after two dashes" {
				if got != "--plaintext" {
					t.Errorf("offered %q", got)
				}
				return
			}
			if got != c.want {
				t.Errorf("offered %q, want %q", got, c.want)
			}
		})
	}
}

func TestCompletionOffersTheURNsOfTheStack(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	const one = "urn:pulumi:dev::shop::deployctl:s3:Bucket::site"
	d.write("state.json", `{"version":3,"deployment":{"manifest":{"time":"0001-01-01T00:00:00Z","magic":"","version":""},"resources":[`+
		`{"urn":"`+one+`","type":"deployctl:s3:Bucket","custom":true,"id":"b"}]}}`)
	d.must("stack", "import", "--file", "state.json")
	if got := d.offered("up", "--target", "urn:"); got != one {
		t.Errorf("offered %q", got)
	}
	for _, words := range [][]string{{"state", "show", "si"}, {"state", "delete", "other", "si"}} {
		if got := d.offered(words...); !strings.HasPrefix(got, "site") {
			t.Errorf("%q: offered %q", words, got)
		}
	}
}

func TestCompletionStartsNoServiceAndSaysNothing(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.fail = deployments.Errorf(deployments.CodeUnavailable, "it does not run")
	if o := d.run("stack", "select", "", completionFlag); o.code != 0 || o.out != "" || o.err != "" {
		t.Errorf("%+v", o)
	}
}

// TestBashCompletesWordsWithColons runs the script in a real bash, with a deployctl that lists URNs.
func TestBashCompletesWordsWithColons(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("there is no bash")
	}
	dir := t.TempDir()
	stub := "#!/bin/sh\nprintf 'urn:pulumi:dev::shop::a:b:C$d::x\\tsomething\\n'\n"
	if err := os.WriteFile(filepath.Join(dir, "deployctl"), []byte(stub), 0o755); err != nil {
		t.Fatal(err)
	}
	play := completions["bash"] + `COMP_LINE="deployctl up --target urn:pulumi:d"; COMP_POINT=${#COMP_LINE}; _deployctl; printf '%s|' "${COMPREPLY[@]}"`
	command := exec.Command(bash, "-c", play)
	command.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	out, err := command.CombinedOutput()
	if want := `dev::shop::a:b:C\$d::x|`; err != nil || string(out) != want {
		t.Errorf("%v: got %q, want %q", err, out, want)
	}
}
