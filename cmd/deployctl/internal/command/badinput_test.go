package command

import (
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestBadInputIsRefusedWithASentenceAndANonZeroExit(t *testing.T) {
	long := strings.Repeat("a", 300)
	cases := []struct {
		name     string
		files    map[string]string
		args     []string
		code     int
		sentence string
	}{
		{"no Pulumi.yaml", nil, []string{"up", "--yes"}, 2, "there is no Pulumi.yaml in "},
		{"a malformed Pulumi.yaml", map[string]string{"Pulumi.yaml": "name: shop\nruntime: [yaml\n"},
			[]string{"up", "--yes"}, 2, "yaml: line 1: did not find expected"},
		{"a program that runs elsewhere", map[string]string{"Pulumi.yaml": "name: shop\nruntime: client\n"},
			[]string{"up", "--yes"}, 2, "could not be started again after a loss"},
		{"a project name with a slash", map[string]string{"Pulumi.yaml": "name: a/b\nruntime: yaml\n"},
			[]string{"up", "--yes"}, 2, "cannot be the name of a project"},
		{"a directory that does not exist", nil, []string{"up", "--cwd", "nowhere"}, 2, "nowhere is not a directory"},
		{"a stack name with three slashes", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"stack", "init", "a/b/c/d"}, 2, `"a/b/c/d" is not a stack name`},
		{"a stack name of 300 characters", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"stack", "init", long}, 2, "300 bytes long"},
		{"a stack name that is not ASCII", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"stack", "init", "bücher"}, 2, `"bücher" cannot be the name of a stack`},
		{"an empty stack name", map[string]string{"Pulumi.yaml": yamlProject}, []string{"stack", "init", ""}, 2,
			"the stack needs a name"},
		{"up without any stack", map[string]string{"Pulumi.yaml": yamlProject}, []string{"up", "--yes"}, 2,
			"create one with deployctl stack init"},
		{"up of an unknown stack", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"up", "--yes", "--stack", "prod"}, 2, "create it with deployctl stack init prod"},
		{"up without a stack", map[string]string{"Pulumi.yaml": yamlProject}, []string{"up"}, 2, "project shop has no stack"},
		{"selecting an unknown stack", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"stack", "select", "prod"}, 2, "there is no stack organization/shop/prod"},
		{"removing an unknown stack", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"stack", "rm", "prod", "--yes"}, 2, "there is no stack organization/shop/prod"},
		{"a stray flag", nil, []string{"version", "--loud"}, 2, "deployctl version has no flag --loud"},
		{"a flag of another command", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"stack", "ls", "--secret"}, 2, "deployctl stack ls has no flag --secret"},
		{"secrets of an update, which are blinded before they are stored", nil, []string{"up", "--show-secrets"}, 2,
			"deployctl up has no flag --show-secrets"},
		{"a flag without its value", nil, []string{"up", "--stack"}, 2, "--stack needs a value"},
		{"a flag with a value of another kind", nil, []string{"up", "--parallel", "many"}, 2,
			`--parallel takes a whole number, not "many"; see deployctl up --help`},
		{"a template that does not exist", nil, []string{"new", "websit", "--dir", "fresh"}, 2, `"websit" is no template of deployctl`},
		{"a word of another tool for a command", nil, []string{"stack", "delete"}, 2, "did you mean rm?"},
		{"a stack of another organization", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"up", "--yes", "--stack", "a/shop/b"}, 2, "deployctl stack init a/shop/b"},
		{"a project name of 300 characters", map[string]string{"Pulumi.yaml": "name: " + long + "\nruntime: yaml\n"},
			[]string{"up", "--yes"}, 2, "300 bytes long"},
		{"a project name that is not ASCII", map[string]string{"Pulumi.yaml": "name: bücher\nruntime: yaml\n"},
			[]string{"up", "--yes"}, 2, "cannot be the name of a project"},
		{"an unknown command", nil, []string{"launch"}, 2, `deployctl has no command "launch"`},
		{"an unknown command of a group", nil, []string{"stack", "explode"}, 2,
			`deployctl stack has no command "explode"`},
		{"an argument too many", nil, []string{"up", "now"}, 2, "deployctl up takes no argument, not 1 argument;"},
		{"an argument too few", nil, []string{"config", "get"}, 2, "deployctl config get takes KEY"},
		{"a negative number that looks like a flag", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"config", "set", "n", "-5"}, 2, "write -- before it"},
		{"resolve with two answers", nil, []string{"resolve", "urn:pulumi:a::b::c:d:e::f", "--absent", "--created",
			"x"}, 2, "either --created ID or --absent"},
		{"resolve with no answer", nil, []string{"resolve", "urn:pulumi:a::b::c:d:e::f"}, 2,
			"either --created ID or --absent"},
		{"a message that is not UTF-8", nil, []string{"up", "-m", "caf\xe9"}, 2,
			"the value of -m is not UTF-8 (its byte 4 is 0xe9)"},
		{"a tag that is not UTF-8", nil, []string{"stack", "tag", "set", "owner", "\xe9"}, 2, "VALUE is not UTF-8"},
		{"a webhook that is not UTF-8", nil, []string{"webhook", "new", "https://hooks.example/\xe9"}, 2,
			"is not UTF-8 (its byte"},
		{"a configuration value that is not UTF-8", nil, []string{"config", "set", "k", "a\xe9b"}, 2,
			"VALUE is not UTF-8"},
		{"one of --config that is not UTF-8", nil, []string{"up", "-c", "k=a\xe9b"}, 2, "the value of -c is not UTF-8"},
		{"a file whose name is not UTF-8 is only a file", map[string]string{"Pulumi.yaml": yamlProject},
			[]string{"config", "--stack", "dev", "--config-file", "\xe9/x.yaml", "get", "none"}, 2,
			"create the file first"},
		{"a shell without completion", nil, []string{"completion", "tcsh"}, 2, "bash, zsh or fish"},
		{"a settings file that does not exist", nil, []string{"settings", "--settings", "/nowhere.yaml"}, 2,
			"cannot read the configuration file"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) { newDesk(t, c.files).refused(c.code, c.sentence, c.args...) })
	}
}

func TestFlagsOfAnUpdateThatMakeNoSenseAreRefusedBeforeItIsSubmitted(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	for _, c := range []struct{ flag, value, sentence string }{
		{"--parallel", "0", "--parallel must be from 1 to 500, not 0"},
		{"--parallel", "501", "--parallel must be from 1 to 500, not 501"},
		{"--plan", "nope.json", "there is no file nope.json; make a plan with deployctl preview --save-plan nope.json"},
		{"--on-busy", "panic", `--on-busy takes queue, fail or supersede, not "panic"`},
		{"--on-unknown", "guess", `--on-unknown takes wait or fail, not "guess"`},
	} {
		d.refused(2, c.sentence, "up", "--yes", c.flag, c.value)
	}
	if len(d.service.Requests) != 0 {
		t.Error("an update was submitted")
	}
}

func TestAnUnreachableServiceIsSaid(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.fail = deployments.Errorf(deployments.CodeUnavailable, "the service at 127.0.0.1:1 cannot be reached")
	d.refused(5, "cannot be reached", "up", "--yes")
}

func TestAStackThatExistsIsNotMadeAgain(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.refused(2, "stack organization/shop/dev already exists; select it with deployctl stack select dev", "stack",
		"init", "dev")
}

func TestAStackWithResourcesIsNotRemovedWithoutForce(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.service.Play = func(deployments.UpdateRequest) memoryScript { return memoryScript{Resources: 3} }
	d.must("up", "--yes")
	d.refused(2, "still has 3 resources; destroy them first", "stack", "rm", "--yes")
	d.must("stack", "rm", "--force", "--yes")
	d.refused(2, "there is no stack", "stack", "rm", "dev", "--yes")
}

func TestMissingRequiredConfigurationIsNamedBeforeAnythingRuns(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject +
		"config:\n  size:\n    type: integer\n  color:\n    default: red\n"})
	d.stack("dev")
	d.refused(2, "stack dev needs a value for shop:size; set it with deployctl config set shop:size VALUE", "up",
		"--yes")
	d.write("Pulumi.dev.yaml", "config:\n  shop:size: large\n")
	d.refused(2, "shop:size of stack dev must be of type integer", "config", "set", "size", "big")
	d.refused(2, "shop:size of stack dev must be of type integer; set it with deployctl config set shop:size VALUE", "up",
		"--yes")
	d.must("config", "set", "size", "3")
	d.must("up", "--yes")
	if got := d.service.Requests[0].Config["shop:color"].Value; got != "red" {
		t.Errorf("the default was not applied: %q", got)
	}
}

func TestAStackThatIsUnknownAndConfiguredMayBeLost(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject, "Pulumi.prod.yaml": "config: {}\n"})
	const lost = "Pulumi.prod.yaml is there: if the service has lost the stack, deployctl up --adopt"
	d.refused(2, lost, "up", "--yes", "--stack", "prod")
	if said := d.run("up", "--yes", "--stack", "test").err; strings.Contains(said, "--adopt") {
		t.Errorf("of a stack without configuration it says %s", said)
	}
}

func TestASecretThatCannotBeDecryptedIsNamed(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.write("Pulumi.dev.yaml", "config:\n  shop:password:\n    secure: nonsense\n")
	d.refused(2, "cannot decrypt shop:password in", "up", "--yes")
	if said := d.run("up", "--yes").err; strings.Contains(said, "(: ") {
		t.Errorf("it says %s", said)
	}
	if len(d.service.Requests) != 0 {
		t.Error("an update was submitted")
	}
}

func TestAWrongPassphraseIsRefused(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	environ := d.environ
	d.refused(2, "set PULUMI_CONFIG_PASSPHRASE", "stack", "init", "dev", "--secrets-provider", "passphrase")
	d.environ = append(environ, "PULUMI_CONFIG_PASSPHRASE=right")
	d.must("stack", "init", "dev", "--secrets-provider", "passphrase")
	d.must("config", "set", "password", "hunter2", "--secret")
	d.environ = append(environ, "PULUMI_CONFIG_PASSPHRASE=wrong")
	d.refused(2, "the passphrase is not this stack's", "config", "get", "password")
	d.refused(2, "the passphrase is not this stack's", "up", "--yes")
	d.environ = append(environ, "PULUMI_CONFIG_PASSPHRASE=right")
	if got := d.must("config", "get", "password"); got != "hunter2\n" {
		t.Errorf("got %q", got)
	}
}

func TestASymbolicLinkOutOfTheProjectIsRefused(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	link(t, "/etc/hostname", d.dir+"/hostname")
	d.refused(2, "outside the project; add that to deploy.include", "up", "--yes")
}

func TestImportingSomethingElseIsRefused(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject, "state.json": "{}"})
	d.stack("dev")
	d.refused(2, "this is not an exported deployment", "stack", "import", "--file", "state.json")
}
