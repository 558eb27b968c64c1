package command

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// watching begins to watch the project, and waits for the end of the first update.
func (d *desk) watching(t *testing.T, args ...string) *running {
	t.Helper()
	r := d.begin(append([]string{"watch"}, args...)...)
	r.errs.shows(t, "Watching for changes")
	return r
}

// rounds waits until the command has waited for changes so often.
func (r *running) rounds(t *testing.T, n int) {
	t.Helper()
	r.errs.showsTimes(t, "Watching for changes", n)
}

// replace writes a file elsewhere, and puts it in its place: one that is read half is a change.
func (d *desk) replace(name, text string) {
	d.t.Helper()
	whole, place := filepath.Join(d.t.TempDir(), "whole"), filepath.Join(d.dir, filepath.FromSlash(name))
	err := os.WriteFile(whole, []byte(text), 0o644)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(place), 0o755)
	}
	if err == nil {
		err = os.Rename(whole, place)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

func TestAChangeOfContentIsAnUpdateAndNothingElseIs(t *testing.T) {
	d := inProject(t)
	d.write("Pulumi.dev.yaml", "config: {shop:size: 1}\n")
	d.write(".deployctlignore", "node_modules\n.git\nlog.txt\n")
	var broken atomic.Bool
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		script := creating(r)
		if broken.Load() {
			script.Status, script.Error = deployments.StatusFailed, "the program is broken"
		}
		return script
	}
	r := d.watching(t, "--yes")
	for n, step := range []struct {
		what   string
		change func()
		names  string // what is said to have changed
	}{
		{"a file", func() { d.replace("index.html", "hello again") }, "index.html"},
		{"the configuration", func() { d.replace("Pulumi.dev.yaml", "config: {shop:size: 2}\n") }, "Pulumi.dev.yaml"},
		{"a program that fails", func() { broken.Store(true); d.replace("index.html", "broken") }, "index.html"},
		{"its repair", func() { broken.Store(false); d.replace("index.html", "whole") }, "index.html"},
		{"a new directory", func() { d.replace("new/deep/page.html", "new") }, "new/deep/page.html"},
		{"a file in it", func() { d.replace("new/deep/other.html", "new") }, "new/deep/other.html"},
		{"a file that is gone", func() {
			if err := os.Remove(filepath.Join(d.dir, "new", "deep", "other.html")); err != nil {
				t.Error(err)
			}
		}, "new/deep/other.html"},
	} {
		// None of these is a change.
		d.replace("index.html", d.read("index.html"))
		d.write("log.txt", strconv.Itoa(n))
		d.write(".index.html.swp", strconv.Itoa(n))
		d.write("Pulumi.prod.yaml", "config: {shop:size: "+strconv.Itoa(n)+"}\n")
		step.change()
		r.rounds(t, n+2)
		said := r.errs.String()
		if last := said[strings.LastIndex(said, " changed: ")+len(" changed: "):]; !strings.HasPrefix(last, step.names+"\n") {
			t.Errorf("%s: changed are %s", step.what, last)
		}
	}
	d.signals <- os.Interrupt
	o := r.end(t)
	if o.code != 0 || !strings.Contains(o.err, "No longer watching; organization/shop/dev stays as it is.") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	if got := len(d.service.Requests); got != 8 || strings.Count(o.out, "up succeeded") != 7 ||
		strings.Count(o.out, "the program is broken") != 1 {
		t.Errorf("%d updates\n%s", got, o.out)
	}
}

func TestAProjectThatCannotBeReadIsWaitedFor(t *testing.T) {
	d := inProject(t)
	r := d.watching(t, "--yes")
	d.write("Pulumi.yaml", "name: [\n")
	r.rounds(t, 2)
	d.write("Pulumi.yaml", yamlProject)
	d.write("index.html", "hello again")
	r.errs.shows(t, "changed: index.html")
	r.out.shows(t, "organization/shop/dev/2")
	d.signals <- os.Interrupt
	if o := r.end(t); o.code != 0 || !strings.Contains(o.err, "error:") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

func TestWhatWaitsIsReplacedByAChangeAndWhatRunsIsNot(t *testing.T) {
	for name, c := range map[string]struct {
		position  int
		cancelled bool
	}{"waits": {1, true}, "runs": {0, false}} {
		t.Run(name, func(t *testing.T) {
			d := inProject(t)
			hold := make(chan struct{})
			var first atomic.Bool
			d.service.Play = func(r deployments.UpdateRequest) memoryScript {
				script := creating(r)
				if first.CompareAndSwap(false, true) {
					script.Items = append(script.Items, deployments.WatchEvent{
						Progress: &deployments.Progress{Position: c.position}})
					script.Hold = hold
				}
				return script
			}
			r := d.begin("watch", "--yes")
			r.out.shows(t, "site created")
			d.write("index.html", "hello again")
			if !c.cancelled {
				d.write("other.html", "and again")
				close(hold)
			}
			r.out.shows(t, "(organization/shop/dev/2)")
			r.errs.shows(t, "Watching for changes")
			d.signals <- os.Interrupt
			o := r.end(t)
			if got := d.service.Cancelled("organization/shop/dev/1"); got != c.cancelled || o.code != 0 {
				t.Errorf("cancelled: %v, exit code %d\n%s%s", got, o.code, o.out, o.err)
			}
			if files := d.service.Bundle(d.service.Requests[1].Bundle); files["index.html"] != "hello again" {
				t.Errorf("the second update has %q", files["index.html"])
			}
		})
	}
}

func TestAnInterruptOfAnUpdateThatWatchHasMadeDetaches(t *testing.T) {
	d := inProject(t)
	d.service.Play = func(r deployments.UpdateRequest) memoryScript {
		script := creating(r)
		script.Hold = make(chan struct{})
		return script
	}
	o := d.interrupted("site created", "watch", "--yes")
	if o.code != 130 || !strings.Contains(o.err, "Detached; organization/shop/dev/1 continues.") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
}

func TestWatchAsksOnceOrOnlyPreviews(t *testing.T) {
	d := inProject(t)
	if o := d.run("watch"); o.code != 2 || !strings.Contains(o.err, "pass --yes") {
		t.Errorf("exit code %d\n%s", o.code, o.err)
	}
	r := d.watching(t, "--preview-only")
	d.write("index.html", "hello again")
	r.rounds(t, 2)
	d.signals <- os.Interrupt
	r.end(t)
	if requests := d.service.Requests; len(requests) != 2 || !requests[0].DryRun || !requests[1].DryRun {
		t.Errorf("submitted %+v", requests)
	}
	d.person, d.input = true, "no\n"
	if o := d.run("watch"); o.code != 3 || len(d.service.Requests) != 2 {
		t.Errorf("exit code %d, %d updates\n%s", o.code, len(d.service.Requests), o.err)
	}
}
