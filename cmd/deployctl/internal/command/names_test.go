package command

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/urfave/cli/v2"
)

func TestTwoPartsAreOrganizationAndStackInEveryCommand(t *testing.T) {
	d := inProject(t)
	d.must("stack", "init", "acme/shop/dev")
	d.must("stack", "init", "acme/qa") // the organization is known now
	for _, name := range []string{"acme/dev", "acme/qa"} {
		if got := d.must("stack", "--stack", name); !strings.HasPrefix(got, strings.Replace(name, "/", "/shop/", 1)+"\n") {
			t.Errorf("--stack %s is %s", name, got)
		}
	}
	d.must("stack", "select", "acme/dev")
	d.must("stack", "rename", "--stack", "organization/dev", "acme/prod")
	d.must("stack", "--stack", "acme/shop/prod")

	d.must("stack", "init", "organization/net/dev")
	for _, args := range [][]string{
		{"stack", "rename", "net/qa"}, {"stack", "init", "net/qa"}, {"stack", "select", "--create", "net/qa"},
		{"stack", "--stack", "net/qa"}, {"stack", "select", "net/qa"}, {"up", "--yes", "--stack", "net/qa"},
		{"state", "move", "site", "--yes", "--dest", "net/qa"},
		{"stack", "rm", "--yes", "net/qa"},
	} {
		o := d.run(args...)
		if o.code != 2 || !strings.Contains(o.err, "organization/net/qa") {
			t.Errorf("deployctl %s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.out, o.err)
		}
	}
	if got := d.must("stack", "ls", "--all"); strings.Contains(got, "net/shop") {
		t.Errorf("made\n%s", got)
	}
	d.refused(2, "write all three parts, such as organization/shop/dev", "audit", "--stack", "shop/dev")
}

func TestWhatBelongsToAStackFollowsItToAnotherProject(t *testing.T) {
	d := newDesk(t, map[string]string{
		"Pulumi.yaml":     "name: shop\nruntime: yaml\nconfig: {database: {type: string, default: none}}\n",
		"Pulumi.dev.yaml": "# ours\nconfig:\n  shop:database: real # the old one\n  fake:region: eu\n",
	})
	d.stack("dev")
	got := d.must("stack", "rename", "organization/store/live")
	for _, want := range []string{"is now organization/store/live", "store:database", `name: store`} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	d.refused(2, "correct the name in Pulumi.yaml if you have renamed the project", "preview")
	d.write("Pulumi.yaml", "name: store\nruntime: yaml\nconfig: {database: {type: string, default: none}}\n")
	if got := d.must("config", "get", "database"); got != "real\n" {
		t.Errorf("the configuration is %q", got)
	}
	if text := d.read("Pulumi.live.yaml"); !strings.Contains(text, "# ours\n") ||
		!strings.Contains(text, "store:database: real") || !strings.Contains(text, "fake:region: eu") ||
		strings.Contains(text, "shop") {
		t.Errorf("the file is\n%s", text)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "Pulumi.dev.yaml")); err == nil {
		t.Error("the old file is still there")
	}

	// the name in Pulumi.yaml may also be changed first
	d.write("Pulumi.yaml", yamlProject)
	d.must("stack", "rename", "--stack", "organization/store/live", "organization/shop/dev")
	if got := d.must("config", "get", "database"); got != "real\n" {
		t.Errorf("database is %q", got)
	}
	if got := d.must("stack"); !strings.HasPrefix(got, "organization/shop/dev\n") {
		t.Errorf("selected is %s", got)
	}
}

func TestARenameTakesTheFileOfNoOtherStack(t *testing.T) {
	d := inProject(t)
	d.must("config", "set", "size", "3")
	d.write("Pulumi.prod.yaml", "config:\n  shop:size: \"4\"\n")
	d.refused(2, "exists already, and Pulumi.dev.yaml would take its place", "stack", "rename", "prod")
	if err := os.Remove(filepath.Join(d.dir, "Pulumi.prod.yaml")); err != nil {
		t.Fatal(err)
	}
	d.write("Pulumi.dev.yaml", "config:\n  shop:size: \"3\"\n  store:size: \"4\"\n")
	d.refused(2, "has both shop:size and store:size", "stack", "rename", "organization/store/dev")
	d.must("stack", "--stack", "dev")
}

func TestKeysOfProjectFilesThatAskForMoreAreObeyedOrNamed(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject + "options: {refresh: always}\n" +
		"backend: {url: s3://our-state}\n"})
	d.stack("dev")
	d.service.Play = creating
	for _, args := range [][]string{{"preview"}, {"up", "--yes"}, {"up", "--yes", "--skip-preview"}} {
		d.refused(2, "the project's stacks are in s3://our-state (backend), and organization/shop/dev is new", args...)
	}
	d.write("Pulumi.yaml", yamlProject+"options: {refresh: always}\n")
	d.must("up", "--yes")
	d.write("Pulumi.yaml", yamlProject+"options: {refresh: always}\nbackend: {url: s3://our-state}\n")
	if o := d.run("preview"); o.code != 0 || !strings.Contains(o.err, "warning: ") ||
		!strings.Contains(o.err, "s3://our-state (backend)") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	for _, c := range []struct {
		refresh bool
		args    []string
	}{
		{true, []string{"preview"}}, {true, []string{"up", "--yes", "--skip-preview"}},
		{false, []string{"up", "--yes", "--skip-preview", "--refresh=false"}},
		{false, []string{"refresh", "--yes", "--skip-preview"}}, {true, []string{"destroy", "--yes", "--skip-preview"}},
	} {
		d.must(c.args...)
		if got := d.service.Requests[len(d.service.Requests)-1].Refresh; got != c.refresh {
			t.Errorf("deployctl %s: refresh is %v", strings.Join(c.args, " "), got)
		}
	}
	d.write("Pulumi.dev.yaml", "environment: [aws-prod]\n")
	d.refused(2, "Pulumi ESC (environment)", "preview")
	d.write("Pulumi.dev.yaml", "configs: {}\nconfig: {'pulumi:tags': {team: 7}}\n")
	if o := d.run("preview"); !strings.Contains(o.err, `has the key "configs"`) {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestWordsOfOtherToolsAreAnsweredWithOurs(t *testing.T) {
	d := newDesk(t, nil)
	for word, advice := range foreign {
		d.refused(2, advice, word)
	}
	for word, want := range map[string]string{"apply": "`deployctl up`", "diff": "`deployctl preview`",
		"rollback": "check out the earlier program", "force-unlock": "`deployctl cancel`"} {
		d.refused(2, want, word, "--yes")
	}
	for _, c := range NewApp(d.env(&syncBuffer{}, &syncBuffer{})).Commands {
		for _, name := range c.Names() {
			if foreign[name] != "" {
				t.Errorf("%s is a command of its own", name)
			}
		}
	}
}

func TestWhatIsDeclinedSaysWhatWasKept(t *testing.T) {
	d := inProject(t)
	d.person, d.input = true, "no\n"
	o := d.run("up", "--config", "size=9")
	if o.code != 3 || !strings.Contains(o.out, "Pulumi.dev.yaml keeps what --config has set") ||
		strings.Contains(o.out, "Nothing was changed") ||
		!strings.Contains(o.out, "Perform this update of organization/shop/dev?") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestConfigurationOfTheProjectIsShownWithTheStacks(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject +
		"config: {greeting: {default: hi, type: string}, 'fake:account': acct, zones: {value: [a, b]}}\n"})
	d.stack("dev")
	d.must("config", "set", "size", "3")
	if got := d.must("config", "get", "greeting") + d.must("config", "get", "fake:account") +
		d.must("config", "get", "zones"); got != "hi\nacct\n[\"a\",\"b\"]\n" {
		t.Errorf("got %q", got)
	}
	if got := d.must("config"); !strings.Contains(got, "greeting") || !strings.Contains(got, "acct") ||
		!strings.Contains(got, "size") {
		t.Errorf("listed\n%s", got)
	}
	d.must("config", "set", "greeting", "hello")
	if got := d.must("config", "get", "greeting") + d.must("config", "ls"); !strings.HasPrefix(got, "hello\n") ||
		strings.Contains(got, "hi") {
		t.Errorf("got\n%s", got)
	}
	d.refused(2, "is not set", "config", "get", "nothing")
}

func TestAPreviewSaysThatAnUpdateIsRunning(t *testing.T) {
	d := inProject(t)
	hold := make(chan struct{})
	defer close(hold)
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		if r.DryRun {
			return memoryScript{}
		}
		return memoryScript{Hold: hold}
	}
	if _, err := d.service.Submit(t.Context(), deployments.UpdateRequest{
		RequestID: "other", Stack: deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"},
	}); err != nil {
		t.Fatal(err)
	}
	if o := d.run("preview"); o.code != 0 || !strings.Contains(o.err, "is being changed by update 1") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// Each command with the flag --stack takes the same names by it: two parts are ORG/STACK, whatever the project is
// called.
func TestEveryCommandWithAStackTakesItsNameTheSameWay(t *testing.T) {
	d := inProject(t)
	d.environ = append(d.environ, "EDITOR=true")
	d.must("stack", "init", "organization/net/dev") // of a project that is called as an organization could be
	looked := 0
	var visit func(path []string, commands []*cli.Command)
	visit = func(path []string, commands []*cli.Command) {
		for _, c := range commands {
			at := append(slices.Clone(path), c.Name)
			visit(at, c.Subcommands)
			for _, f := range c.Flags {
				usage := f.(cli.DocGenerationFlag).GetUsage()
				if !strings.Contains(usage, "`STACK`") || f.Names()[0] == "stack" || elsewhere[strings.Join(at, " ")] {
					continue
				}
				flag := strings.Join(at, " ") + " --" + f.Names()[0]
				args, known := otherStacks[flag]
				if !known {
					t.Errorf("%s names a stack: say in otherStacks how it is called", flag)
					continue
				}
				o := d.run(append(append(at, "--"+f.Names()[0], "net/qa"), args...)...)
				if o.code != 2 || !strings.Contains(o.err, "organization/net/qa") && !strings.Contains(o.err, "net/shop/qa") {
					t.Errorf("%s: exit code %d\n%s%s", flag, o.code, o.out, o.err)
				}
			}
			if !slices.ContainsFunc(c.Flags, func(f cli.Flag) bool { return f.Names()[0] == "stack" }) || c.Action == nil ||
				elsewhere[strings.Join(at, " ")] {
				continue
			}
			looked++
			args := append(at, "--stack", "net/qa")
			for _, f := range c.Flags {
				if f.Names()[0] == "yes" {
					args = append(args, "--yes")
				}
			}
			if strings.Contains(c.ArgsUsage, "STACK") {
				d.refused(2, "the argument names the stack x, and --stack names net/qa", append(slices.Clone(args), "x")...)
			}
			further, given := furtherArguments[strings.Join(at, " ")]
			for _, word := range strings.Fields(c.ArgsUsage) {
				if word = strings.Trim(word, "[]."); !given && word != "STACK" && word == strings.ToUpper(word) {
					further = append(further, "x")
				}
			}
			args = append(args, further...)
			o := d.run(args...)
			if o.code == 0 || !strings.Contains(o.err, "organization/net/qa") && !strings.Contains(o.err, "net/shop/qa") {
				t.Errorf("deployctl %s: exit code %d\n%s%s", strings.Join(args, " "), o.code, o.out, o.err)
			}
		}
	}
	visit(nil, NewApp(d.env(&syncBuffer{}, &syncBuffer{})).Commands)
	if looked < 30 {
		t.Errorf("only %d commands were looked at", looked)
	}
}

// otherStacks are the flags that name a second stack, with what else their commands are given.
var otherStacks = map[string][]string{
	"state move --dest":   {"x", "--yes"},
	"state move --source": {"x", "--yes", "--dest", "dev"},
}

// furtherArguments are those of commands that check them before the name of the stack.
var furtherArguments = map[string][]string{
	"new":                           {"--dir", "fresh", "website"},
	"resolve":                       {"--absent", "urn:pulumi:qa::net::t:m:T::x"},
	"schedule new":                  {"drift", "--every", "1h"},
	"stack change-secrets-provider": {"default"},
	"stack rebuild":                 {"--dry-run"},
	"stack restore":                 {"1"},
	"stack tag set":                 {"x", "y"},
	"state move":                    {"--dest", "dev", "x"},
	"webhook new":                   {"https://hooks.example"},
	"webhook redeliver":             {"x", "0123456789abcdef"},
}

// elsewhere are commands that need no service: they know what files there are, and no organizations.
var elsewhere = map[string]bool{
	"config": true, "config ls": true, "config set": true, "config get": true, "config rm": true,
	"config set-all": true, "config rm-all": true, "config cp": true,
}
