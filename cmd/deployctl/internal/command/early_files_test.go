package command

import "testing"

// The files are gathered while the stack is looked up, before the command has changed the configuration.
func TestWhatACommandChangesIsAmongTheFilesThatItTakesAlong(t *testing.T) {
	d := inProject(t)
	d.write("Pulumi.dev.yaml", "config: {shop:size: 1}\n")
	bundle := func(args ...string) string {
		t.Helper()
		d.must(append(args, "--yes", "--skip-preview")...)
		return d.service.Requests[len(d.service.Requests)-1].Bundle
	}
	before := bundle("up")
	changed := bundle("up", "--config", "shop:size=2")
	after := bundle("up")
	if before == changed || changed != after {
		t.Errorf("the bundle is %s before the change, %s with it, and %s after it", before, changed, after)
	}
}
