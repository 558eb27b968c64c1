package command

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
)

type memoryScript = memory.Script

func link(t *testing.T, to, at string) {
	t.Helper()
	if err := os.Symlink(to, at); err != nil {
		t.Fatal(err)
	}
}

func TestASecretFlagAfterTheArgumentsEncryptsTheValue(t *testing.T) {
	for _, args := range [][]string{
		{"config", "set", "password", "hunter2", "--secret"},
		{"config", "set", "--secret", "password", "hunter2"},
		{"config", "--secret", "set", "password", "hunter2"},
		{"config", "set", "password", "--secret", "--", "hunter2"},
	} {
		t.Run(strings.Join(args, " "), func(t *testing.T) {
			d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
			d.stack("dev")
			d.must(args...)
			file := d.read("Pulumi.dev.yaml")
			if strings.Contains(file, "hunter2") || !strings.Contains(file, "secure:") {
				t.Fatalf("the file says\n%s", file)
			}
			if got := d.must("config", "get", "password"); got != "hunter2\n" {
				t.Errorf("get says %q", got)
			}
			if got := d.must("config"); strings.Contains(got, "hunter2") || !strings.Contains(got, "[secret]") {
				t.Errorf("config says %q", got)
			}
			if got := d.must("config", "ls", "--show-secrets"); !strings.Contains(got, "hunter2") {
				t.Errorf("config ls --show-secrets says %q", got)
			}
		})
	}
}

func TestConfigurationIsKeptInTheFormOfTheField(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.write("Pulumi.dev.yaml", "# sizes\nconfig:\n  shop:size: 3 # small\n")
	d.must("config", "set", "aws:region", "eu-west-1")
	d.must("config", "set", "servers[0].port", "80", "--path")
	d.must("config", "set", "list,with,commas", "a,b")
	file := d.read("Pulumi.dev.yaml")
	for _, want := range []string{
		"# sizes\nconfig:\n", " # small\n", "  aws:region: eu-west-1\n", "  shop:list,with,commas: a,b\n",
		"  shop:servers:\n    - port: 80\n",
	} {
		if !strings.Contains(file, want) {
			t.Errorf("the file lacks %q:\n%s", want, file)
		}
	}
	if got := d.must("config", "get", "servers[0].port", "--path"); got != "80\n" {
		t.Errorf("get says %q", got)
	}
	d.must("config", "rm", "aws:region")
	d.refused(2, "aws:region is not set in", "config", "get", "aws:region")
	d.refused(2, "aws:region is not set in", "config", "rm", "aws:region")
}

// Whatever reads or writes a stack's configuration takes a name without a file for a typing error, unless the service
// knows the stack: a file of that name would be read by nobody.
func TestAStackThatIsNotThereGetsNoConfigurationFile(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("prod")
	for _, args := range [][]string{
		{"config", "set", "k", "v"},
		{"config", "set", "--secret", "k", "v"},
		{"config", "set-all", "--plaintext", "k=v"},
		{"config", "rm", "k"},
		{"config", "rm-all", "k"},
		{"config", "get", "k"},
		{"config"},
		{"config", "ls", "--json"},
		{"config", "cp", "--dest", "prod"},
		{"stack", "change-secrets-provider", "passphrase"},
		{"stack", "tag", "set", "k", "v"},
		{"up", "--yes", "--config", "k=v"},
		{"preview", "--config", "k=v"},
		{"settle", "explain", "fake:index:Named"},
	} {
		d.refused(2, "there is no stack organization/shop/prdo; did you mean prod?", append(args, "--stack", "prdo")...)
		if _, err := os.Stat(filepath.Join(d.dir, "Pulumi.prdo.yaml")); !os.IsNotExist(err) {
			t.Fatalf("%q has made a file", args)
		}
	}
	d.must("config", "set", "k", "v", "--stack", "prod")
	d.write("Pulumi.later.yaml", "config:\n  shop:size: 3\n")
	d.must("config", "set", "k", "v", "--stack", "later") // its file is there before it, as from a repository
}

func TestAValueIsStoredAsItsDeclarationOrTheUserSays(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject + `config:
  accounts: {type: array, items: {type: string}}
  ports: {type: array, items: {type: integer}}
  grid: {type: array, items: {type: array, items: {type: string}}}
  service: {type: object}
`})
	d.stack("dev")
	d.write("Pulumi.dev.yaml", "")
	d.must("config", "set", "--path", "accounts[0]", "123")
	d.must("config", "set-all", "--path", "--plaintext", "accounts[1]=456", "--plaintext", "ports[0]=80")
	d.must("config", "set", "--path", "grid[0][0]", "1")
	d.must("config", "set", "service", `{"replicas": 5}`)
	d.must("up", "--yes", "--path", "-c", "accounts[2]=789")
	d.must("config", "set", "--path", "free[0]", "123", "--type", "string")
	d.must("config", "set", "--path", "free[1]", "123")
	if got, want := d.read("Pulumi.dev.yaml"), `config:
  shop:accounts:
    - "123"
    - "456"
    - "789"
  shop:ports:
    - 80
  shop:grid:
    - - "1"
  shop:service: '{"replicas": 5}'
  shop:free:
    - "123"
    - 123
`; got != want {
		t.Errorf("the file says\n%s", got)
	}
	d.must("config", "set", "accounts", `["007","123"]`)
	d.must("up", "--yes")
	d.refused(2, "must be of type array<string>; set it with deployctl config set shop:accounts '[…]', as JSON",
		"config", "set", "accounts", "[007]")
	d.refused(2, "the value is no int", "config", "set", "size", "much", "--type", "int")
	d.refused(2, "--type takes", "config", "set", "size", "much", "--type", "text")
	d.refused(2, "exclude each other", "config", "set", "size", "1", "--type", "int", "--secret")
}

func TestAFileWhoseLastKeyIsRemovedIsFilledAgainLineByLine(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	for before, after := range map[string]string{
		"# of the team\nconfig:\n  shop:only: 1\n": "# of the team\nconfig:\n  shop:a: \"1\"\n  shop:b: \"2\"\n",
		"{}\n":                  "config:\n  shop:a: \"1\"\n  shop:b: \"2\"\n",
		"config: {}\n":          "config:\n  shop:a: \"1\"\n  shop:b: \"2\"\n",
		"# none yet\n":          "# none yet\nconfig:\n  shop:a: \"1\"\n  shop:b: \"2\"\n",
		"config: {shop:c: 3}\n": "config: {'shop:c': \"3\", 'shop:a': \"1\", 'shop:b': \"2\"}\n",
	} {
		d.write("Pulumi.dev.yaml", before)
		if strings.Contains(before, "only") {
			d.must("config", "rm", "only")
			if got := d.read("Pulumi.dev.yaml"); got != "# of the team\n" {
				t.Errorf("without its last key it says\n%s", got)
			}
		}
		d.must("config", "set", "a", "1")
		d.must("config", "set", "b", "2")
		if got := d.read("Pulumi.dev.yaml"); got != after {
			t.Errorf("%q becomes\n%s", before, got)
		}
	}
}

func TestAValueMayComeFromStandardInput(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.input = "line one\nline two\n"
	d.must("config", "set", "motd")
	d.input = ""
	if got := d.must("config", "get", "motd"); got != "line one\nline two\n" {
		t.Errorf("get says %q", got)
	}
}

func TestASecretIsTypedUnseen(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.person, d.hidden = true, []string{"hunter2"}
	if out := d.must("config", "set", "password", "--secret"); strings.Contains(out, "hunter2") {
		t.Error("it was shown")
	}
	if got := d.must("config", "get", "password"); got != "hunter2\n" {
		t.Errorf("get says %q", got)
	}
}

func TestAKeyOrAValueThatIsAMistakeIsNotSet(t *testing.T) {
	d := inProject(t)
	d.refused(2, `key and value are two arguments: deployctl config set a "b"`, "config", "set", "a=b")
	d.refused(2, "cannot be a configuration key", "config", "set", "a b:c d", "x")
	d.refused(2, "no value was given", "config", "set", "size")
	d.refused(2, "no value was given", "config", "set", "pw", "--secret")
	if got := d.must("config"); strings.Contains(got, "size") || strings.Contains(got, "pw") ||
		strings.Contains(got, "a") && strings.Contains(got, "=") {
		t.Errorf("set all the same:\n%s", got)
	}
	d.must("config", "set", "size", "")
	d.input = "3\n"
	d.must("config", "set", "size")
	if got := d.must("config", "get", "size"); got != "3\n" {
		t.Errorf("size is %q", got)
	}
	d.must("config", "set", "--path", "object.with some[0]", "x")
}

func TestAKeyThatTheProjectDeclaresSecretIsNeverInClear(t *testing.T) {
	const declared = yamlProject + `config:
  token: {type: string, secret: true}
  bare: {secret: true}
  fallback: {type: string, secret: true, default: hunter4}
  keys: {type: object, secret: true, default: {}}
`
	const advice = "set it with deployctl config set shop:token --secret"
	d := newDesk(t, map[string]string{"Pulumi.yaml": declared})
	d.stack("dev")
	d.refused(2, "stack dev needs a value for shop:token; "+advice, "preview")
	d.must("config", "set", "size", "3")
	for _, plain := range [][]string{
		{"token", "hunter2"}, {"shop:token", "hunter2"}, {"token", "hunter2", "--plaintext"}, {"token"},
		{"shop:bare", "hunter2"}, {"--path", "keys.first", "hunter2"},
	} {
		d.input = "hunter2\n"
		o := d.run(append([]string{"config", "set"}, plain...)...)
		if o.code != 2 || !strings.Contains(o.err, "secret, so stack dev must have it encrypted") ||
			strings.Contains(o.err+d.read("Pulumi.dev.yaml"), "hunter2") {
			t.Errorf("config set %v: exit code %d, %s\nThe file says\n%s", plain, o.code, o.err,
				d.read("Pulumi.dev.yaml"))
		}
	}
	d.refused(2, "secret, so stack dev must have it encrypted", "up", "--yes", "-c", "token=hunter2")
	if file := d.read("Pulumi.dev.yaml"); strings.Contains(file, "hunter2") {
		t.Errorf("up --config has saved it in clear:\n%s", file)
	}
	d.write("Pulumi.dev.yaml", "config:\n  shop:token: hunter2\n  shop:bare: hunter3\n")
	for _, update := range [][]string{{"preview"}, {"up", "--yes"}, {"refresh", "--yes"}, {"destroy", "--yes"}} {
		d.refused(2, "declares shop:bare, shop:token secret, so stack dev must have it encrypted", update...)
	}
	if len(d.service.Requests) != 0 {
		t.Error("an update was submitted")
	}
	d.must("config", "set", "size", "3")
	for _, args := range [][]string{{"config", "ls"}, {"config"}, {"config", "ls", "--json"}} {
		o := d.run(args...)
		if strings.Contains(o.out+o.err, "hunter") || strings.Count(o.err,
			"secret, so stack dev must have it encrypted") != 2 || !strings.Contains(o.out, "3") {
			t.Errorf("%v: exit code %d\n%s%s", args, o.code, o.out, o.err)
		}
	}
	if o := d.run("config", "ls", "--show-secrets"); !strings.Contains(o.out, "hunter2") {
		t.Errorf("with --show-secrets it says\n%s", o.out)
	}
	d.must("config", "set", "token", "hunter2", "--secret")
	d.must("config", "set", "bare", "hunter3", "--secret")
	d.must("config", "set", "--path", "keys.first", "hunter5", "--secret")
	d.must("up", "--yes")
	for key, v := range d.service.Requests[0].Config {
		if !v.Secret && key != "shop:size" {
			t.Errorf("%s is in clear", key)
		}
	}
}

func TestAValueThatNobodyGaveIsNotSet(t *testing.T) {
	d := inProject(t)
	d.must("config", "set", "color", "red")
	before := d.read("Pulumi.dev.yaml")
	d.person, d.hidden = true, []string{""}
	for _, args := range [][]string{{"config", "set", "size"}, {"config", "set", "size", "--secret"}} {
		d.refused(2, "no value was given, and nothing was changed", args...)
	}
	if got := d.read("Pulumi.dev.yaml"); got != before {
		t.Errorf("the file has become\n%s", got)
	}
	d.person = false
	if got := d.must("schedule", "ls", "--json"); got != "[]\n" {
		t.Errorf("no schedules are %q", got)
	}
}
