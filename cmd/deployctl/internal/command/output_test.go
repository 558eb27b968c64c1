package command

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// deploy gives the stack dev this state.
func (d *desk) deploy(deployment string) {
	d.t.Helper()
	if _, err := d.service.Import(context.Background(), deployments.ImportRequest{
		Stack: deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}, Forget: true,
		Deployment: apitype.UntypedDeployment{Version: 3, Deployment: json.RawMessage(deployment)},
	}); err != nil {
		d.t.Fatal(err)
	}
}

// printed returns rows as a screen of some columns shows them; 0 is a pipe.
func printed(t *testing.T, columns int, rows ...[]string) string {
	t.Helper()
	var out syncBuffer
	s := &console.Session{Env: &console.Env{Out: &out}}
	if columns > 0 {
		s.Screen = &display.Screen{Size: func() (int, int) { return columns, 24 }}
	}
	if err := s.SayTable(rows); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestTheCellsOfATableAreBelowTheirHeadings(t *testing.T) {
	long := strings.Repeat("n", 300)
	got := printed(t, 0, []string{"NAME", "TYPE", "ID", "NOTES"}, []string{"shop-dev", "pulumi:pulumi:Stack", "", ""},
		[]string{"世界", "aws:Bucket", "b-1", "protected"}, []string{long, "aws:Bucket", "b-2", ""})
	if want := `NAME       TYPE                  ID    NOTES
shop-dev   pulumi:pulumi:Stack
世界       aws:Bucket            b-1   protected
` + long + `   aws:Bucket            b-2
`; got != want {
		t.Errorf("\n%s", got)
	}
}

func TestALongLastCellLeavesATableATable(t *testing.T) {
	value := strings.Repeat("v", 100)
	rows := [][]string{{"OUTPUT", "VALUE"}, {"bucket", "site-bc34995"}, {"json", value}}
	if got, want := printed(t, 80, rows...), "OUTPUT   VALUE\nbucket   site-bc34995\njson     "+value+"\n"; got != want {
		t.Errorf("\n%s", got)
	}
	wide := [][]string{{"A", "B", "C"}, {strings.Repeat("a", 30), strings.Repeat("b", 30), "c"}, {"a", "b", value}}
	if got, want := printed(t, 80, wide...), strings.Repeat("a", 30)+"\n  b  "+strings.Repeat("b", 30)+
		"\n  c  c\na\n  b  b\n  c  "+value+"\n"; got != want {
		t.Errorf("\n%s", got)
	}
}

func TestWhatIsWrongHereIsSaidBeforeAServiceIsStarted(t *testing.T) {
	d := newDesk(t, nil)
	d.fail = errors.New("the service is asked")
	for _, line := range []string{"stack", "stack history", "stack export", "stack export --raw x", "stack output",
		"attach", "attach 3", "cancel --yes", "state ls", "stack rm --yes", "drift", "schedule ls", "refresh --yes",
		"plugin ls"} {
		if o := d.run(strings.Fields(line)...); strings.Contains(o.err, d.fail.Error()) {
			t.Errorf("deployctl %s: %s", line, o.err)
		}
	}
}

// queuing is a service with an update that waits.
type queuing struct{ deployments.Service }

func (q queuing) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	info, err := q.Service.Stack(ctx, name)
	info.Queued = []deployments.UpdateInfo{{Update: deployments.UpdateName{StackName: name, Version: "q-1"},
		Status: "queued"}}
	return info, err
}

func TestAHistoryHasNoMoreRowsThanItsLimit(t *testing.T) {
	d := inProject(t)
	for range 4 {
		d.must("up", "--yes", "--skip-preview")
	}
	for line, want := range map[string]int{"--limit 2": 2, "--limit 1": 1, "--page-size 3": 3, "--page 2 --page-size 3": 2,
		"--page 3 --page-size 3": 0, "": 5} {
		var out, errs syncBuffer
		s := d.env(&out, &errs)
		s.Connect = func(context.Context, settings.Settings, console.Notifier) (console.Connection, error) {
			return console.Connection{Service: queuing{d.service}}, nil
		}
		Main(context.Background(), s, append([]string{"deployctl", "stack", "history"}, strings.Fields(line)...))
		if got := strings.Count(out.String(), "\n") - 1; got != want {
			t.Errorf("%s: %d rows, not %d\n%s%s", line, got, want, out.String(), errs.String())
		}
	}
}

func TestASecretThatCannotBeCopiedSaysWhyInOneSentence(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.must("config", "set", "apiKey", "hunter2", "--secret")
	d.refused(2, "there is no stack organization/shop/prod", "config", "cp", "apiKey", "--dest", "prod")
	if _, err := os.Stat(filepath.Join(d.dir, "Pulumi.prod.yaml")); err == nil {
		t.Error("a stack that does not exist has a configuration")
	}
	d.write("Pulumi.prod.yaml", "config: {}\n") // which is to be a stack
	o := d.run("config", "cp", "apiKey", "--dest", "prod")
	if o.code != 2 || strings.Contains(o.err, ": :") || !strings.Contains(o.err, "cannot copy shop:apiKey: ") {
		t.Errorf("exit code %d, %s", o.code, o.err)
	}
}

func TestANameMeansTheOnlyResourceThatHasIt(t *testing.T) {
	d := inProject(t)
	const one, other = "urn:pulumi:dev::shop::a:b:C::item05", "urn:pulumi:dev::shop::a:b:D::two"
	d.deploy(`{"resources":[{"urn":"` + one + `"},{"urn":"` + other + `"},{"urn":"urn:pulumi:dev::shop::a:b:C::two"}]}`)
	d.must("up", "--yes", "--skip-preview", "--target", "item05", "--target", other, "--target", "**::new",
		"--target", "new", "--replace", "item05")
	r := d.service.Requests[len(d.service.Requests)-1]
	if !slices.Equal(r.Targets, []string{one, other, "**::new", "new"}) || !slices.Equal(r.Replace, []string{one}) {
		t.Errorf("targets %q, replaced %q", r.Targets, r.Replace)
	}
	d.refused(2, "--exclude: 2 resources are named two", "up", "--yes", "--exclude", "two")
	d.must("schedule", "new", "update", "--every", "1h", "--target", "item05")
	if got := d.must("schedule", "show", "update", "--json"); !strings.Contains(got, one) {
		t.Error(got)
	}
}

func TestAStackSaysHowItsLastUpdateEnded(t *testing.T) {
	d := inProject(t)
	d.service.Play = func(deployments.UpdateRequest) memoryScript {
		return memoryScript{Status: "failed", Error: "the command exited with code 7", Resources: 1}
	}
	d.run("up", "--yes", "--skip-preview")
	if got := d.must("stack"); !strings.Contains(got, ", 1 resource with the stack itself and its providers\n") ||
		!strings.Contains(got, "\n  last: up failed, by ") ||
		!strings.Contains(got, ": the command exited with code 7\n") {
		t.Error(got)
	}
}

func TestAStackShowsItsOutputsAndWhatItsUpdateWaitsFor(t *testing.T) {
	d := inProject(t)
	long := `{"first":"` + strings.Repeat("x", 60) + `","second":[1,2]}`
	d.deploy(`{"resources":[{"urn":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev","type":"pulumi:pulumi:Stack",
		"outputs":{"website":"http://a/","settings":` + long + `}}]}`)
	if got := d.must("stack"); !strings.Contains(got, "\nOUTPUT     VALUE\nsettings   "+long+"\nwebsite    http://a/\n") {
		t.Errorf("in a pipe it is\n%s", got)
	}
	if got := d.must("stack", "output", "settings"); got != long+"\n" {
		t.Errorf("a script reads %q", got)
	}
	d.person = true
	for _, line := range []string{"stack", "stack output", "stack output settings"} {
		if got := d.must(strings.Fields(line)...); !strings.Contains(got, "{\n  \"first\": \"xxx") {
			t.Errorf("deployctl %s on a screen:\n%s", line, got)
		}
	}
}

// leasing is a service with an update of the stock CLI.
type leasing struct{ deployments.Service }

func (l leasing) Stack(ctx context.Context, name deployments.StackName) (deployments.StackInfo, error) {
	info, err := l.Service.Stack(ctx, name)
	info.Active = &deployments.UpdateInfo{Update: deployments.UpdateName{StackName: name, Version: "5"}, Kind: "up",
		Initiator: "ann", Lease: &deployments.ClientLease{Heard: time.Now(), Ends: time.Now()}}
	return info, err
}

func TestWhoMeetsAnUpdateOfTheStockCLIIsToldHowToEndIt(t *testing.T) {
	d := inProject(t)
	for _, line := range []string{"stack", "preview"} {
		var out, errs syncBuffer
		s := d.env(&out, &errs)
		s.Connect = func(context.Context, settings.Settings, console.Notifier) (console.Connection, error) {
			return console.Connection{Service: leasing{d.service}}, nil
		}
		Main(context.Background(), s, append([]string{"deployctl"}, strings.Fields(line)...))
		if got := out.String() + errs.String(); !strings.Contains(got, "The stock CLI executes update 5, and was last heard "+
			"of at ") || !strings.Contains(got, "deployctl cancel organization/shop/dev/5 frees the stack at once") {
			t.Errorf("deployctl %s:\n%s", line, got)
		}
	}
}

func TestAStackUnderAPassphraseGetsNoSchedule(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.environ = append(d.environ, "PULUMI_CONFIG_PASSPHRASE=p")
	d.must("stack", "init", "dev", "--secrets-provider", "passphrase")
	d.refused(2, "under a passphrase, which the service does not have", "schedule", "new", "drift", "--every", "1h")
}

func TestANameThatIsNearlyThatOfAStackOrAnOutputIsSuggested(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.stack("dev")
	d.refused(2, "did you mean dev?", "stack", "select", "devv")
	d.deploy(`{"resources":[{"urn":"urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev","type":"pulumi:pulumi:Stack",
		"outputs":{"website":"http://a/"}}]}`)
	d.refused(2, `has no output "websit"; did you mean website?`, "stack", "output", "websit")
}
