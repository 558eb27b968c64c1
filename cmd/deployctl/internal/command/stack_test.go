package command

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/edge/grpcapi/memory"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
	"github.com/urfave/cli/v2"
)

const exported = `{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"","version":""},"resources":[
{"urn":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev",
"type":"pulumi:pulumi:Stack","outputs":{"url":"http://a/?x=<y>","size":3,
"later":["04da6b54-80e4-46f7-96ec-b56ff0331ba9"],
"password":{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","ciphertext":"m1:zzz"},
"pin":{"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270","plaintext":"\"1234\""}}}]}}`

func TestOutputsAreReadOutOfTheDeployment(t *testing.T) {
	d := inProject(t)
	d.write("state.json", exported)
	d.must("stack", "import", "--file", "state.json")
	if got := d.must("stack", "output", "url"); got != "http://a/?x=<y>\n" {
		t.Errorf("url is %q", got)
	}
	if got := d.must("stack", "output", "password"); got != "[secret]\n" {
		t.Errorf("password is %q", got)
	}
	if got := d.must("stack", "output", "--json", "--show-secrets"); !strings.Contains(got, `"pin": "1234"`) ||
		!strings.Contains(got, `"size": 3`) {
		t.Errorf("outputs are %s", got)
	}
	if got := d.must("stack", "output", "later"); got != "[\"(unknown)\"]\n" {
		t.Errorf("a value that was not known is %q", got)
	}
	d.refused(2, `has no output "nothing"`, "stack", "output", "nothing")
	if got := d.must("stack", "export"); !strings.Contains(got, "m1:zzz") {
		t.Errorf("exported %s", got)
	}
}

func TestAStackIsListedSelectedTaggedRenamedAndRemoved(t *testing.T) {
	d := inProject(t)
	d.must("config", "set", "size", "3")
	d.must("stack", "init", "prod")
	if got := d.must("stack", "ls"); !strings.Contains(got, "prod*") || !strings.Contains(got, "dev ") {
		t.Errorf("listed\n%s", got)
	}
	d.must("stack", "select", "dev")
	d.must("stack", "tag", "set", "owner", "ann lee")
	d.must("stack", "tag", "set", "tier", "web")
	if got := d.must("stack", "tag", "get", "owner"); got != "ann lee\n" {
		t.Errorf("owner is %q", got)
	}
	d.must("stack", "tag", "rm", "owner")
	d.refused(2, `has no tag "owner"`, "stack", "tag", "get", "owner")
	d.must("stack", "rename", "test")
	if got := d.must("config", "get", "size"); got != "3\n" {
		t.Errorf("size is %q", got)
	}
	if got := d.must("stack"); !strings.HasPrefix(got, "organization/shop/test\n") ||
		!strings.Contains(got, "tier: web") {
		t.Errorf("the stack is\n%s", got)
	}
	d.person, d.input = true, "test\n"
	d.must("stack", "rm")
	d.refused(2, "there is no stack", "stack", "--stack", "test")
}

func TestAStackMayBeNamedWholeOutsideItsProject(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes")
	d.dir += "/x/../.."
	if got := d.must("stack", "history", "--stack", "organization/shop/dev"); !strings.Contains(got, "create 1") {
		t.Errorf("history is\n%s", got)
	}
	d.refused(2, "there is no Pulumi.yaml", "stack", "history", "--stack", "dev")
	d.refused(2, "there is no Pulumi.yaml", "up", "--yes", "--stack", "organization/shop/dev")
}

func TestAnEarlierVersionIsRestoredAfterAQuestion(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes")
	d.must("up", "--yes")
	if got := d.must("stack", "history"); !strings.Contains(got, "newest") || !strings.Contains(got, "kept") {
		t.Errorf("history is\n%s", got)
	}
	d.refused(2, `"x" is not a version`, "stack", "restore", "x")
	d.refused(2, "no earlier version 7", "stack", "restore", "7", "--yes")
	d.refused(2, "--yes", "stack", "restore", "1")
	if got := d.must("stack", "restore", "1", "--yes"); !strings.Contains(got,
		"Version 3 of organization/shop/dev restores version 1.") {
		t.Errorf("it says\n%s", got)
	}
	d.person, d.input = true, "no\n"
	if o := d.run("stack", "restore", "2"); o.code != 3 {
		t.Errorf("declined: %+v", o)
	}
}

func TestARestoreThatForgetsEverythingAsksOrTakesForce(t *testing.T) {
	d := inProject(t)
	resources := 0
	d.service.Play = func(deployments.UpdateRequest) memory.Script { return memory.Script{Resources: resources} }
	d.must("up", "--yes")
	resources = 3
	d.must("up", "--yes")
	d.refused(2, "would be forgotten; pass --force if this is intended", "stack", "restore", "1", "--yes")
	d.person, d.input = true, "no\n"
	if o := d.run("stack", "restore", "1", "--yes"); o.code != 3 ||
		!strings.Contains(o.out, "Forget them?") {
		t.Errorf("declined: %+v", o)
	}
	d.person, d.input = false, ""
	d.must("stack", "restore", "1", "--yes", "--force")
}

func TestAnUpdateWhoseWorkflowIsClosedIsRecovered(t *testing.T) {
	d := inProject(t)
	if got := d.must("stack", "recover"); !strings.Contains(got, "nothing to recover") {
		t.Errorf("it says\n%s", got)
	}
	script := memory.Script{Hold: make(chan struct{}), Error: "its workflow was ended from outside", Resources: 3}
	d.service.Play = func(deployments.UpdateRequest) memory.Script { return script }
	submit := func() {
		name := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
		if _, err := d.service.Submit(t.Context(), deployments.UpdateRequest{Stack: name, RequestID: t.Name() +
			script.Error, Kind: "up"}); err != nil {
			t.Fatal(err)
		}
	}
	script.Lost = true
	submit()
	got := d.must("stack", "recover")
	if !strings.Contains(got, "organization/shop/dev/1 has ended failed: its workflow was ended from outside") ||
		!strings.Contains(got, "3 resources") {
		t.Errorf("it says\n%s", got)
	}
	script.Lost, script.Error = false, ""
	submit()
	d.refused(4, "is running", "stack", "recover")
}

func TestAStackNamesWhatIsPendingAndAnAnswerThatNothingWaitsForRunsAnUpdate(t *testing.T) {
	d := inProject(t)
	const bucket = "urn:pulumi:dev::shop::deployctl:s3:Bucket::site"
	name := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
	state := `{"pending_operations": [{"type": "creating", "resource": {"urn": "` + bucket +
		`", "type": "deployctl:s3:Bucket"}}]}`
	if _, err := d.service.Import(t.Context(), deployments.ImportRequest{
		Stack: name, Deployment: apitype.UntypedDeployment{Version: 3, Deployment: []byte(state)},
	}); err != nil {
		t.Fatal(err)
	}
	d.service.Play = func(deployments.UpdateRequest) memory.Script {
		return memory.Script{Status: "failed", Error: "nobody can tell"}
	}
	d.run("up", "--yes", "--skip-preview")
	if got := d.must("stack"); !strings.Contains(got, "pending: creating site") {
		t.Errorf("it says\n%s", got)
	}
	d.refused(2, "nothing of "+bucket+"2 is pending", "resolve", bucket+"2", "--absent")
	d.refused(2, "did you mean site?", "resolve", "stie", "--absent")
	var asked deployments.UpdateRequest
	d.service.Play = func(r deployments.UpdateRequest) memory.Script {
		asked = r
		return memory.Script{Status: "succeeded"}
	}
	d.must("resolve", "site", "--created", "b-1")
	want := &engine.Settling{Answers: []engine.Resolved{{URN: bucket, ID: "b-1"}}}
	if asked.Kind != engine.KindRefresh || !reflect.DeepEqual(asked.Settle, want) {
		t.Errorf("it asked for a %s with %+v", asked.Kind, asked.Settle)
	}
}

func TestTheStackOfTheFlagBeatsTheVariableBeatsTheSelection(t *testing.T) {
	d := inProject(t)
	d.stack("prod")
	if got := d.must("stack"); !strings.HasPrefix(got, "organization/shop/prod\n") {
		t.Errorf("the selected stack is not used: %s", got)
	}
	d.environ = append(d.environ, "DEPLOYCTL_STACK=dev")
	if got := d.must("stack"); !strings.HasPrefix(got, "organization/shop/dev\n") {
		t.Errorf("the variable is not used: %s", got)
	}
	if got := d.must("stack", "-s", "prod"); !strings.HasPrefix(got, "organization/shop/prod\n") {
		t.Errorf("the flag is not used: %s", got)
	}
}

func TestTokensAreShownOnce(t *testing.T) {
	d := newDesk(t, nil)
	text := strings.TrimSpace(d.must("token", "create", "ci", "--role", "deployer", "--stacks", "shop/*", "--expires",
		"90d"))
	if got := d.must("token", "ls"); strings.Contains(got, text) ||
		!strings.Contains(got, "deployer of organization: shop/*") {
		t.Errorf("listed\n%s", got)
	}
	d.refused(2, "cannot be the name of a token", "token", "create", "a/b", "--role", "viewer")
	d.refused(2, "a token needs a role (--role), or a member", "token", "create", "bare")
	d.refused(2, "is not a role", "token", "create", "root", "--role", "root")
	d.refused(2, "is not a glob of stacks", "token", "create", "x", "--role", "viewer", "--stacks", "dev")
	d.refused(2, "--stacks needs a role", "token", "create", "x", "--member", "ann", "--stacks", "shop/*")
	d.must("token", "rm", "ci")
}

func TestAMemberIsOneOfAnOrganizationOrOfAll(t *testing.T) {
	d := newDesk(t, nil)
	d.must("member", "add", "ann", "--role", "viewer")
	d.must("member", "add", "ann", "--role", "admin", "--organization", "acme")
	d.must("member", "add", "root", "--role", "admin", "--organization", "*")
	got := d.must("member", "ls")
	for _, want := range []string{"viewer of organization ", "admin of acme", "admin of every organization"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	d.refused(2, "a member needs a role", "member", "add", "bob")
	d.must("token", "create", "laptop", "--member", "ann", "--organization", "acme")
	if got := d.must("token", "ls"); !strings.Contains(got, "ann of acme") {
		t.Errorf("the token is of none:\n%s", got)
	}
	d.must("member", "rm", "ann", "--organization", "acme")
	if got := d.must("member", "ls"); strings.Contains(got, "acme") {
		t.Errorf("the role is still there:\n%s", got)
	}
	d.must("member", "rm", "ann")
	if got := d.must("member", "ls"); strings.Contains(got, "ann") {
		t.Errorf("the member is still there:\n%s", got)
	}
}

func TestSettingsNameTheirSourcesAndHideSecrets(t *testing.T) {
	d := newDesk(t, nil)
	d.environ = append(d.environ, "DEPLOYCTL_TOKEN=hunter2", "DEPLOYCTL_S3_BUCKET=state")
	got := d.must("settings", "--temporal-address", "t:1")
	for _, want := range []string{"[secret]", "DEPLOYCTL_TOKEN", "DEPLOYCTL_S3_BUCKET", "flag --temporal-address",
		"127.0.0.1:7460"} {
		if !strings.Contains(got, want) {
			t.Errorf("settings lack %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "hunter2") {
		t.Error("the token is shown")
	}
}

// TestEveryFlagMeansTheSameOnEveryCommand allows a few exceptions, which the stock CLI has, too, such as config set
// --secret and config set-all --secret KEY=VALUE: of these, the command decides.
func TestEveryFlagMeansTheSameOnEveryCommand(t *testing.T) {
	seen, excepted := map[string]bool{}, []string{"plaintext", "secret", "f", "p"}
	var visit func([]*cli.Command)
	visit = func(commands []*cli.Command) {
		for _, c := range commands {
			own := map[string]bool{}
			addValued(own, c)
			for name, takes := range own {
				if before, ok := seen[name]; ok && before != takes && !slices.Contains(excepted, name) {
					t.Errorf("--%s takes a value on some commands only", name)
				}
				seen[name] = takes
			}
			visit(c.Subcommands)
		}
	}
	app := NewApp(newDesk(t, nil).env(&syncBuffer{}, &syncBuffer{}))
	visit(app.Commands)
	for _, line := range []string{"config set-all --secret a=b", "config set a b --secret", "--secret config set a b",
		"config set-all --plaintext a=b --secret c=d", "up -p 4", "plugin ls -p", "stack rm -f dev", "up -f -p 4",
		"plugin install resource a 1.0.0 -f a"} {
		if _, err := Parse(app, append([]string{"deployctl"}, strings.Fields(line)...)); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
}

func TestEveryShellHasACompletion(t *testing.T) {
	d := newDesk(t, nil)
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if !strings.Contains(d.must("completion", shell), "--generate-bash-completion") {
			t.Error(shell)
		}
	}
}

func TestUnknownStacksAreNotMadeWithoutAQuestion(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.person, d.input = true, "no\n"
	if o := d.run("up", "--stack", "prod"); o.code != 3 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if list, _ := d.service.ListStacks(t.Context(), deployments.DefaultOrganization, ""); len(list) != 0 {
		t.Errorf("made %v", list)
	}
}

func TestAStackThatIsRenamedStaysInItsOrganizationAndProject(t *testing.T) {
	d := inProject(t)
	for _, stack := range []string{"acme/shop/dev", "organization/other/dev"} {
		d.must("stack", "init", stack)
		d.must("stack", "rename", "--stack", stack, "prod")
		d.must("stack", "--stack", strings.TrimSuffix(stack, "dev")+"prod")
	}
}

func TestAnImportThatForgetsEverythingAsksOrNeedsForce(t *testing.T) {
	d := inProject(t)
	d.service.Play = func(deployments.UpdateRequest) memoryScript { return memoryScript{Resources: 2} }
	d.must("up", "--yes", "--skip-preview")
	d.write("empty.json", `{"version":3,"deployment":null}`)
	d.refused(2, "would be forgotten; pass --force if this is intended", "stack", "import", "--file", "empty.json")
	d.person, d.input = true, "no\n"
	if o := d.run("stack", "import", "--file", "empty.json"); o.code != 3 ||
		!strings.Contains(o.out, "Forget them?") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	d.person = false
	d.must("stack", "import", "--file", "empty.json", "--force")
}

func TestAStackIsMadeWithTheIdentityOfOneThatIsGone(t *testing.T) {
	d := inProject(t)
	const identity = "organization/shop/old#2"
	d.refused(2, "is not the identity of a stack", "stack", "init", "live", "--identity", "old")
	d.must("stack", "init", "live", "--identity", identity)
	if said := d.must("stack", "--stack", "live"); !strings.Contains(said, identity) {
		t.Errorf("it says\n%s", said)
	}
	if said := d.must("stack", "--stack", "live", "--json"); !strings.Contains(said, `"identity": "`+identity+`"`) {
		t.Errorf("it prints\n%s", said)
	}
	if said := d.must("stack", "--stack", "dev"); strings.Contains(said, "identity") {
		t.Errorf("of a stack with its own it says\n%s", said)
	}
	d.refused(2, "already exists", "stack", "init", "live", "--identity", identity)
}
