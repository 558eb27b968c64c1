package command

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/command/console"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/terminal/display"
	"github.com/deployctl/deployctl/internal/terminal/settings"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// creating is a script that creates one bucket.
func creating(r deployments.UpdateRequest) memoryScript {
	m := apitype.StepEventMetadata{
		Op: apitype.OpCreate, URN: "urn:pulumi:dev::shop::deployctl:s3:Bucket::site", Type: "deployctl:s3:Bucket",
		New: &apitype.StepEventStateMetadata{Inputs: map[string]any{"name": "site"}},
	}
	return memoryScript{
		Items: []deployments.WatchEvent{
			{Event: &apitype.EngineEvent{ResourcePreEvent: &apitype.ResourcePreEvent{Metadata: m, Planning: r.DryRun}}},
			{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: m, Planning: r.DryRun}}},
		},
		Changes: map[string]int{"create": 1}, Resources: 2,
	}
}

// inProject returns a desk in a project with a stack, whose updates create a bucket.
func inProject(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject, "index.html": "hello", "node_modules/x/y.js": "no",
		".git/HEAD": "no"})
	d.stack("dev")
	d.service.Play = creating
	return d
}

func TestUpPreviewsThenUpdatesWithTheSameBundle(t *testing.T) {
	d := inProject(t)
	out := d.must("up", "--yes", "--message", "first")
	want := "Preview of up (organization/shop/dev):\n+ deployctl:s3:Bucket site create\nResources:\n  + 1 to " +
		"create\npreview succeeded in 2.5s\n" +
		"\nup (organization/shop/dev/1):\n" +
		"+ deployctl:s3:Bucket site creating\n+ deployctl:s3:Bucket site created\n" +
		"Resources:\n  + 1 created\nup succeeded in 2.5s (organization/shop/dev/1)\n"
	if out != want {
		t.Errorf("got\n%s\nwant\n%s", out, want)
	}
	requests := d.service.Requests
	if len(requests) != 2 || !requests[0].DryRun || requests[1].DryRun {
		t.Fatalf("submitted %+v", requests)
	}
	if requests[0].Bundle != requests[1].Bundle || requests[0].RequestID == requests[1].RequestID ||
		requests[1].Message != "first" {
		t.Errorf("submitted %+v", requests)
	}
	if files := d.service.Bundle(requests[1].Bundle); len(files) != 3 || files["index.html"] != "hello" {
		t.Errorf("the bundle holds %v", files)
	}
	if slices.ContainsFunc(requests[1].Environment, func(v string) bool {
		return !strings.HasPrefix(v, "HOME=") &&
			!strings.HasPrefix(v, "XDG_")
	}) {
		t.Errorf("the program gets %v", requests[1].Environment)
	}
}

func TestJSONIsMadeOfEventsAndEndsInASummary(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes", "--json")
	out := d.must("up", "--yes", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	for _, line := range lines[:len(lines)-1] {
		var event apitype.EngineEvent
		if err := json.Unmarshal([]byte(line), &event); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	var summary display.Summary
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &summary); err != nil ||
		summary.Update != "organization/shop/dev/2" || summary.Changes["create"] != 1 {
		t.Errorf("the summary is %s", lines[len(lines)-1])
	}
}

func TestAnUpdateFromAnotherDirectoryOfTheSameProjectNameIsWarnedOf(t *testing.T) {
	d := inProject(t)
	d.write("copy/Pulumi.yaml", yamlProject)
	for _, step := range []struct {
		cwd  string
		warn bool
	}{{".", false}, {".", false}, {"copy", true}, {"copy", false}} {
		o := d.run("up", "--yes", "--stack", "dev", "--cwd", step.cwd)
		if warned := strings.Contains(o.err, "was last updated from"); o.code != 0 || warned != step.warn {
			t.Errorf("up in %s: exit code %d, warned: %v\n%s", step.cwd, o.code, warned, o.err)
		}
	}
	d.write("copy/Pulumi.yaml", strings.Replace(yamlProject, "shop", "other", 1))
	if o := d.run("up", "--yes", "--stack", "dev"); o.code != 0 || strings.Contains(o.err, "was last updated from") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

func TestADeclinedPreviewChangesNothing(t *testing.T) {
	d := inProject(t)
	d.person, d.input = true, "what?\ndetails\nno\n"
	o := d.run("up")
	if o.code != 3 || !strings.Contains(o.out, `+ name: "site"`) || !strings.Contains(o.out, "Nothing was changed.") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if len(d.service.Requests) != 1 {
		t.Errorf("submitted %+v", d.service.Requests)
	}
}

func TestTheEndOfInputDeclines(t *testing.T) {
	d := inProject(t)
	d.person = true
	if o := d.run("up"); o.code != 3 {
		t.Errorf("exit code %d\n%s", o.code, o.out)
	}
}

func TestAConfirmedPreviewIsCarriedOut(t *testing.T) {
	d := inProject(t)
	d.person, d.input = true, "yes\n"
	d.must("up")
	if n := len(d.service.Requests); n != 2 || !d.service.Requests[1].WaitOnUnknown {
		t.Errorf("submitted %+v", d.service.Requests)
	}
}

func TestAStackThatMovedAfterThePreviewIsPreviewedAgain(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes")
	moved := false
	d.service.BeforeSubmit = func(r deployments.UpdateRequest) {
		if !r.DryRun && !moved {
			moved = true
			d2 := *d
			d2.must("up", "--yes", "--skip-preview")
		}
	}
	o := d.run("up", "--yes")
	if o.code != 0 || !strings.Contains(o.err, "previewing again") || strings.Count(o.out, "preview succeeded") != 2 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	if last := d.service.Requests[len(d.service.Requests)-1]; last.BaseVersion == nil || *last.BaseVersion != 2 {
		t.Errorf("submitted %+v", last)
	}
}

func TestOfTwoFirstUpdatesOnePreviewsAgain(t *testing.T) {
	d := inProject(t)
	first := true
	d.service.BeforeSubmit = func(r deployments.UpdateRequest) {
		if !r.DryRun && first {
			first = false
			d2 := *d
			d2.must("up", "--yes", "--skip-preview")
		}
	}
	o := d.run("up", "--yes")
	if o.code != 0 || !strings.Contains(o.err, "previewing again") || strings.Count(o.out, "preview succeeded") != 2 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestAConfirmedUpdateWaitsForTheOneThatIsChangingTheStack(t *testing.T) {
	d := inProject(t)
	hold := make(chan struct{})
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		if r.RequestID == "other" {
			return memoryScript{Hold: hold}
		}
		return creating(r)
	}
	other := deployments.UpdateRequest{
		RequestID: "other", Stack: deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"},
	}
	var once sync.Once
	d.service.BeforeSubmit = func(r deployments.UpdateRequest) {
		if !r.DryRun && r.RequestID != "other" {
			once.Do(func() {
				if _, err := d.service.Submit(context.Background(), other); err != nil {
					t.Error(err)
				}
			})
		}
	}
	r := d.begin("up", "--yes")
	r.errs.shows(t, "Waiting for update 1")
	close(hold)
	o := r.end(t)
	if o.code != 0 || strings.Count(o.out, "preview succeeded") != 2 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestTheExitCodeTellsHowAnUpdateEnded(t *testing.T) {
	for status, code := range map[string]int{"succeeded": 0, "failed": 1, "cancelled": 3} {
		d := inProject(t)
		d.service.Play = func(deployments.UpdateRequest) memoryScript {
			return memoryScript{Status: status, Error: "the program exited with code 7"}
		}
		o := d.run("up", "--yes", "--skip-preview")
		if o.code != code || o.err != "" || strings.Count(o.out, "code 7") != 1 {
			t.Errorf("%s: exit code %d\n%s%s", status, o.code, o.out, o.err)
		}
	}
}

func TestABusyStackIsRefusedOnRequest(t *testing.T) {
	d := inProject(t)
	hold := make(chan struct{})
	defer close(hold)
	d.service.Play = func(deployments.UpdateRequest) memoryScript { return memoryScript{Hold: hold} }
	if _, err := d.service.Submit(context.Background(), deployments.UpdateRequest{
		RequestID: "other", Stack: deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"},
	}); err != nil {
		t.Fatal(err)
	}
	d.refused(4, "is busy with update 1", "up", "--yes", "--skip-preview", "--on-busy", "fail")
	d.refused(4, "is busy with update 1", "up", "--yes", "--on-busy", "fail")
	if len(d.service.Requests) != 1 {
		t.Error("a preview was made though it is known that the update would be refused")
	}
}

// running is a command line that runs.
type running struct {
	out, errs syncBuffer
	code      chan int
}

// begin starts a command line.
func (d *desk) begin(args ...string) *running {
	d.t.Helper()
	r := &running{code: make(chan int, 1)}
	s := d.env(&r.out, &r.errs)
	if d.person {
		reader, writer, err := os.Pipe()
		if err != nil {
			d.t.Fatal(err)
		}
		d.t.Cleanup(func() { _ = writer.Close() })
		s.In = reader // the user types nothing
	}
	go func() { r.code <- Main(context.Background(), s, append([]string{"deployctl"}, args...)) }()
	return r
}

// end waits for the end of the command line.
func (r *running) end(t *testing.T) outcome {
	t.Helper()
	return outcome{waittest.For(t, "the command ends", r.code), r.out.String(), r.errs.String()}
}

// interrupted runs a command line, waits until it shows something, and presses Ctrl-C.
func (d *desk) interrupted(shows string, args ...string) outcome {
	d.t.Helper()
	r := d.begin(args...)
	r.out.shows(d.t, shows)
	d.signals <- os.Interrupt
	return r.end(d.t)
}

func TestAnInterruptAfterTheConfirmationDetaches(t *testing.T) {
	d := inProject(t)
	hold := make(chan struct{})
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		script := creating(r)
		script.Hold = hold
		return script
	}
	o := d.interrupted("site created", "up", "--yes", "--skip-preview")
	if o.code != 130 || !strings.Contains(o.err, "deployctl attach organization/shop/dev/1") ||
		d.service.Cancelled("organization/shop/dev/1") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	d.refused(2, "pass --yes to confirm", "cancel")
	if d.service.Cancelled("organization/shop/dev/1") {
		t.Error("it is cancelled without a question")
	}
	d.must("cancel", "--yes")
	if got := d.run("attach"); got.code != 3 || !strings.Contains(got.out, "cancelled") {
		t.Errorf("attach: exit code %d\n%s%s", got.code, got.out, got.err)
	}
}

// unanswered is a service with which Ctrl-C arrives before the answer to the submission of an update.
type unanswered struct {
	deployments.Service
	interrupt func()
}

func (u unanswered) Submit(ctx context.Context, r deployments.UpdateRequest) (deployments.Accepted, error) {
	accepted, err := u.Service.Submit(ctx, r)
	if r.DryRun || err != nil {
		return accepted, err
	}
	u.interrupt()
	<-ctx.Done()
	return deployments.Accepted{}, ctx.Err()
}

func TestAnInterruptOfTheSubmissionSaysThatTheUpdateMayGoOn(t *testing.T) {
	d := inProject(t)
	var out, errs syncBuffer
	s := d.env(&out, &errs)
	s.Connect = func(context.Context, settings.Settings, console.Notifier) (console.Connection, error) {
		return console.Connection{Service: unanswered{d.service, func() { d.signals <- os.Interrupt }}}, nil
	}
	code := Main(context.Background(), s, []string{"deployctl", "up", "--yes"})
	if code != 130 || !strings.Contains(errs.String(), "may have been accepted") ||
		!strings.Contains(errs.String(), "deployctl attach --stack organization/shop/dev ") ||
		strings.Contains(errs.String(), "nothing was changed") {
		t.Errorf("exit code %d\n%s", code, errs.String())
	}
	d.must("attach", "--stack", "organization/shop/dev")
}

// forgetful is a service whose stack loses every waiting update.
type forgetful struct {
	deployments.Service
	watched atomic.Int32
}

func (f *forgetful) Watch(
	ctx context.Context, u deployments.UpdateName, send func(deployments.WatchEvent) error,
) error {
	if u.Number() == 0 {
		return f.Service.Watch(ctx, u, send)
	}
	f.watched.Add(1)
	return deployments.Errorf(deployments.CodeNotFound, "%s is not waiting any more", u)
}

func TestAnUpdateThatLosesItsPlaceAgainAndAgainIsGivenUp(t *testing.T) {
	d := inProject(t)
	var out, errs syncBuffer
	s := d.env(&out, &errs)
	service := &forgetful{Service: d.service}
	s.Connect = func(context.Context, settings.Settings, console.Notifier) (console.Connection, error) {
		return console.Connection{Service: service}, nil
	}
	code := Main(context.Background(), s, []string{"deployctl", "up", "--yes"})
	if code == 0 || service.watched.Load() != 3 || !strings.Contains(errs.String(), "is not waiting any more") {
		t.Errorf("exit code %d after %d tries\n%s", code, service.watched.Load(), errs.String())
	}
}

func TestAnInterruptBeforeTheConfirmationEndsThePreviewToo(t *testing.T) {
	d := inProject(t)
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		script := creating(r)
		script.Hold = make(chan struct{})
		return script
	}
	o := d.interrupted("Bucket site create", "up", "--yes")
	if o.code != 3 || !strings.Contains(o.err, "interrupted; nothing was changed") ||
		!d.service.Cancelled("organization/shop/dev/p1") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestAnUpThatChangesNothingIsNotConfirmedAndMayDoNothing(t *testing.T) {
	d := inProject(t)
	d.person, d.service.Play = true, nil
	o := d.run("up")
	last := d.service.Requests[len(d.service.Requests)-1]
	if o.code != 0 || strings.Contains(o.out+o.err, "[yes/no") || last.DryRun || last.Plan == nil ||
		len(last.Plan.Steps) != 0 {
		t.Errorf("exit code %d, plan %+v\n%s%s", o.code, last.Plan, o.out, o.err)
	}
	d.must("up", "--yes")
	if last := d.service.Requests[len(d.service.Requests)-1]; last.Plan != nil {
		t.Error("what is confirmed beforehand is limited")
	}
}

func TestARefreshThatWouldWriteNothingIsNotConfirmed(t *testing.T) {
	d := inProject(t)
	d.person, d.service.Play = true, nil
	o := d.run("refresh")
	if n := len(d.service.Requests); o.code != 0 || strings.Contains(o.out+o.err, "[yes/no") || n != 2 ||
		d.service.Requests[1].DryRun || d.service.Requests[1].Plan != nil {
		t.Errorf("exit code %d, requests %+v\n%s%s", o.code, d.service.Requests, o.out, o.err)
	}
	drifted := apitype.StepEventMetadata{Op: apitype.OpUpdate, URN: "urn:pulumi:dev::shop::deployctl:s3:Bucket::site",
		Type: "deployctl:s3:Bucket"}
	d.service.Play = func(deployments.UpdateRequest) memoryScript {
		return memoryScript{Items: []deployments.WatchEvent{
			{Event: &apitype.EngineEvent{ResOutputsEvent: &apitype.ResOutputsEvent{Metadata: drifted, Planning: true}}}},
			Changes: map[string]int{"update": 1}}
	}
	d.input = "no\n"
	if o := d.run("refresh"); o.code != 3 || !strings.Contains(o.out, "Write this to the state of") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
	d.service.Play = nil
	if o := d.run("destroy"); o.code != 3 || !strings.Contains(o.out, "Destroy all of this") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

// TestWhatIsWrongIsSaidBeforeTheMissingConfirmation runs the commands that ask where nobody can be asked.
func TestWhatIsWrongIsSaidBeforeTheMissingConfirmation(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes")
	submitted := len(d.service.Requests)
	d.environ = append(d.environ, "EDITOR=true")
	_, before := os.Stat(filepath.Join(d.dir, "Pulumi.dev.yaml"))
	const noStack, confirm = "there is no stack organization/shop/nowhere", "pass --yes to confirm"
	for _, args := range [][]string{{"up"}, {"refresh"}, {"destroy"}, {"import", "deployctl:s3:Bucket", "b", "id"},
		{"cancel", "1"}, {"stack", "rm"}, {"stack", "restore", "1"}, {"stack", "recover", "--discard"}, {"state", "edit"},
		{"state", "move", "site", "--dest", "prod"}} {
		d.refused(2, noStack, append(args, "--stack", "nowhere")...)
	}
	for sentence, args := range map[string][]string{
		"update organization/shop/dev/99 neither runs nor waits": {"cancel", "99"},
		"update organization/shop/dev/1 neither runs nor waits":  {"cancel", "1"},
		"has no version 99":               {"stack", "restore", "99"},
		"--on-busy takes queue":           {"up", "--on-busy", "sometimes"},
		"--parallel must be":              {"up", "--parallel", "0"},
		"--policy-pack-config: ":          {"up", "--policy-pack", "p", "--policy-pack-config", "nofile"},
		"there is no stack organization/": {"state", "move", "site", "--dest", "prod"},
	} {
		d.refused(2, sentence, args...)
	}
	for _, args := range [][]string{{"up", "--config", "a=b"}, {"refresh"}, {"destroy"}, {"stack", "restore", "1"},
		{"stack", "rm", "--force"}, {"stack", "recover", "--discard"}, {"state", "edit"}} {
		d.refused(2, confirm, args...)
	}
	if _, after := os.Stat(filepath.Join(d.dir, "Pulumi.dev.yaml")); len(d.service.Requests) != submitted ||
		os.IsNotExist(after) != os.IsNotExist(before) {
		t.Errorf("something was done: %+v", d.service.Requests[submitted:])
	}
}

func TestAnInterruptAtTheQuestionEndsEverything(t *testing.T) {
	d := inProject(t)
	d.person = true
	if o := d.interrupted("Perform this update of organization/shop/dev?", "up"); o.code != 3 ||
		len(d.service.Requests) != 1 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestUpOnATerminalOffersToCreateTheFirstStack(t *testing.T) {
	d := newDesk(t, map[string]string{"Pulumi.yaml": yamlProject})
	d.person, d.input = true, "\nyes\n"
	o := d.run("up")
	if o.code != 0 || !strings.Contains(o.err, "Created stack organization/shop/dev.") {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}

func TestResolveTellsTheRunningUpdate(t *testing.T) {
	d := inProject(t)
	hold := make(chan struct{})
	d.service.Play = func(deployments.UpdateRequest) memoryScript { return memoryScript{Hold: hold} }
	name := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
	if _, err := d.service.Submit(context.Background(), deployments.UpdateRequest{RequestID: "x",
		Stack: name}); err != nil {
		t.Fatal(err)
	}
	urn := "urn:pulumi:dev::shop::deployctl:s3:Bucket::site"
	d.must("resolve", urn, "--created", "bucket-17")
	d.must("resolve", "--absent", urn)
	want := []string{`organization/shop/dev/1 ` + urn + ` "bucket-17"`, `organization/shop/dev/1 ` + urn + ` ""`}
	if !slices.Equal(d.service.Resolved, want) {
		t.Errorf("resolved %q", d.service.Resolved)
	}
}

func TestExpectNoChangesFailsWhenThereAreSome(t *testing.T) {
	d := inProject(t)
	d.refused(4, "no changes were expected", "preview", "--expect-no-changes")
	d.service.Play = nil
	d.must("preview", "--expect-no-changes")
}
