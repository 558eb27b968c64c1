package command

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/build"
)

func TestAMistypedWordIsAnsweredWithWhatIsMeant(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("prod")
	d.must("config", "set", "region", "eu")
	d.refused(2, `has no command "pu"; did you mean up?`, "pu")
	d.refused(2, `has no command "lst"; did you mean ls?`, "stack", "lst")
	d.refused(2, "has no flag --yse; did you mean --yes?", "up", "--yse")
	d.refused(2, "has no flag --mesage; did you mean --message?", "up", "--mesage=secret")
	d.refused(2, "there is no stack organization/shop/prdo; did you mean prod?", "preview", "-s", "prdo")
	d.refused(2, "did you mean prod?", "stack", "select", "prdo")
	d.refused(2, "did you mean shop:region?", "config", "get", "regoin")
	if o := d.run("up", "--mesage=secret"); strings.Contains(o.err, "secret") {
		t.Errorf("a value is repeated: %s", o.err)
	}
	if o := d.run("frobnicate"); strings.Contains(o.err, "did you mean") {
		t.Errorf("what is like nothing is taken for something: %s", o.err)
	}
}

func TestAMistypedStackIsNotOfferedToBeCreated(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("prod")
	d.person, d.input = true, "yes\n"
	d.refused(2, "did you mean prod?", "up", "--stack", "prdo")
	if list := d.must("stack", "ls"); strings.Contains(list, "prdo") {
		t.Error(list)
	}
}

func TestTheVersionNamesItsCommitAndTheRevisionOfItsWorkflows(t *testing.T) {
	d := newDesk(t, nil)
	if got := d.must("version"); got != "deployctl test, commit 0123abc, of 2026-01-02T03:04:05Z, workflow revision 7 "+
		"(go1, linux/amd64)\n" {
		t.Errorf("it says %q", got)
	}
	var b build.Info
	if got := d.must("version", "--json"); json.Unmarshal([]byte(got), &b) != nil || b.Version != "test" ||
		b.Commit != "0123abc" || b.Date != "2026-01-02T03:04:05Z" || b.Revision != "7" {
		t.Errorf("as JSON it is %s", got)
	}
	if got := d.must("about"); !strings.Contains(got, "0123abc") || !strings.Contains(got, "workflow revision") {
		t.Errorf("about says\n%s", got)
	}
}

func TestTheVersionIsAFlagToo(t *testing.T) {
	d := newDesk(t, nil)
	want := d.must("version")
	for _, flag := range []string{"--version", "-v"} {
		if got := d.must(flag); got != want {
			t.Errorf("%s: %q", flag, got)
		}
	}
}

func TestDriftAloneShowsTheStatusAndStacksShowThatTheyHaveDrifted(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	name := d.stack("dev")
	d.service.Drifted[name] = deployments.Drift{At: time.Now().Add(time.Hour),
		Resources: []deployments.DriftedResource{{URN: "urn:pulumi:dev::shop::a:b:C::x", Gone: true}}}
	if alone, status := d.must("drift"), d.must("drift", "status"); alone != status ||
		!strings.Contains(alone, "it is gone") {
		t.Errorf("%s\n%s", alone, status)
	}
	if got := d.must("stack"); !strings.Contains(got, "1 resource has drifted: see deployctl drift") {
		t.Error(got)
	}
	if got := d.must("stack", "ls"); !strings.Contains(got, "DRIFTED") || !strings.Contains(got, "1") {
		t.Error(got)
	}
}

func TestARemovedKeyThatIsNotSetSuggestsTheOneThatIs(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.must("config", "set", "greeting", "hello")
	d.refused(2, "did you mean shop:greeting?", "config", "rm", "greting")
}

func TestTheAuditLogOfAllOrganizationsNamesThem(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.service.Audited = []deployments.AuditEntry{{Time: time.Now(), Organization: "acme", Token: "ci",
		Method: "Stacks/Export", Stack: "shop/dev"}}
	if got := d.must("audit", "--organization", "*"); !strings.Contains(got, "ORGANIZATION") ||
		!strings.Contains(got, "acme") {
		t.Error(got)
	}
	d.must("audit", "--since", "2026-01-02T15:04:05Z")
	d.refused(2, "--since takes a time such as", "audit", "--since", "yesterday")
	if got := d.must("audit", "--organization", "acme"); strings.Contains(got, "ORGANIZATION") ||
		!strings.Contains(got, "shop/dev") {
		t.Error(got)
	}
}

func TestAnotherAnswerIsToldWhatIsExpected(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.person, d.input, d.service.Play = true, "maybe\nno\n", creating
	if o := d.run("up"); o.code != 3 || !strings.Contains(o.out, "Please type yes or no or details.") {
		t.Errorf("%d %s", o.code, o.out)
	}
}

func TestATableThatIsTooWideForTheScreenIsBlocks(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.must("up", "--yes", "-m", strings.Repeat("a long message ", 5))
	if wide := d.must("stack", "history"); !strings.HasPrefix(wide, "VERSION") {
		t.Errorf("in a pipe it is no table: %s", wide)
	}
	d.person = true
	if got := d.must("stack", "history"); !strings.HasPrefix(got, "1\n  kind ") ||
		!strings.Contains(got, "\n  message  a long message") {
		t.Error(got)
	}
}

func TestOnATerminalNothingOfOthersIsObeyed(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	name := d.stack("dev")
	d.service.Drifted[name] = deployments.Drift{At: time.Now(), Resources: []deployments.DriftedResource{{
		URN: "urn:pulumi:dev::shop::a:b:C::x",
		Properties: []deployments.DriftedProperty{{Path: "\x1b]0;PWNED\asafe", Expected: "\u009b31mred",
			Actual: "\x1b[31mred"}},
	}}}
	d.person = true
	for _, out := range []string{d.must("drift"), d.run("stack", "select", "x\x1b[31my").err} {
		if strings.ContainsAny(out, "\x1b\a\u009b") {
			t.Errorf("%q", out)
		}
	}
}

func TestWhatOnlyTheStockCLIHasIsAnsweredWithWhatToDoInstead(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.refused(2, "has no command \"convert\", which only the stock CLI has; use `pulumi convert`", "convert")
	d.refused(2, "deployctl stack has no command \"graph\", which only the stock CLI has; use `deployctl graph`",
		"stack", "graph", "f")
	d.refused(2, "deployctl has no command \"env\", which only the stock CLI has; there is no replacement yet", "env")
	d.refused(2, "deployctl up has no flag --run-program, which only the stock CLI has", "up", "--run-program")
	page, err := os.ReadFile("../../../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	app := NewApp(&console.Env{})
	for words := range stockOnly {
		if !strings.Contains(string(page), "`"+words+"`") {
			t.Errorf("docs/compatibility.md does not name `%s`", words)
		}
		if _, err := Parse(app, append([]string{"deployctl"}, strings.Fields(words)...)); err == nil ||
			!strings.Contains(err.Error(), "stock CLI") {
			t.Errorf("deployctl %s: %v", words, err)
		}
	}
	for flag := range stockEverywhere {
		if !strings.Contains(string(page), "`"+flag+"`") {
			t.Errorf("docs/compatibility.md does not name `%s`", flag)
		}
		_, err := Parse(app, []string{"deployctl", "up", flag})
		if err == nil || !strings.Contains(err.Error(), "stock CLI") {
			t.Errorf("deployctl up %s: %v", flag, err)
		}
	}
}
