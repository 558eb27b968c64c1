package command

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// stampedLine is a line of a log.
var stampedLine = regexp.MustCompile(`^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d .*$`)

func TestALogHasATimeOnEachLineAndTheEndOfItsUpdateIsNotItsOwn(t *testing.T) {
	d := inProject(t)
	d.must("up", "--yes", "--skip-preview")
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		script := creating(r)
		script.Status, script.Error = deployments.StatusFailed, "the disk is full"
		return script
	}
	d.run("up", "--yes", "--skip-preview")
	for args, wants := range map[string]string{"logs": "the disk is full", "logs 1": "site created"} {
		o := d.must(strings.Fields(args)...)
		if !strings.Contains(o, wants) {
			t.Errorf("%s does not say %q:\n%s", args, wants, o)
		}
		for line := range strings.Lines(o) {
			if !stampedLine.MatchString(strings.TrimSuffix(line, "\n")) {
				t.Errorf("%s: a line without a time: %q", args, line)
			}
		}
	}
	if o := d.must("logs", "1", "--json"); !strings.HasPrefix(o, "{") {
		t.Errorf("as JSON it is\n%s", o)
	}
	d.refused(2, "9", "logs", "9")
}

func TestCtrlCEndsTheLogOfAnUpdateThatRuns(t *testing.T) {
	d := inProject(t)
	hold := make(chan struct{})
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		script := creating(r)
		script.Hold = hold
		return script
	}
	defer close(hold)
	dev := deployments.StackName{Organization: "organization", Project: "shop", Stack: "dev"}
	if _, err := d.service.Submit(t.Context(), deployments.UpdateRequest{Stack: dev, Kind: engine.KindUp,
		RequestID: "1"}); err != nil {
		t.Fatal(err)
	}
	if o := d.interrupted("site created", "logs", "--follow"); o.code != 0 || o.err != "" {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

func TestALogIsFollowedFromTheFirstUpdateToTheNext(t *testing.T) {
	d := inProject(t)
	r := d.begin("logs", "--follow") // there is no update yet
	for _, version := range []string{"1", "2"} {
		d.must("up", "--yes", "--skip-preview")
		r.out.shows(t, "organization/shop/dev/"+version)
	}
	d.signals <- os.Interrupt
	if o := r.end(t); o.code != 0 || strings.Count(o.out, "site created") != 2 {
		t.Errorf("exit code %d\n%s%s", o.code, o.out, o.err)
	}
}
