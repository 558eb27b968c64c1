package traffic_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/e2e/traffic"
)

var (
	roundTrip = flag.Duration("s3", 0, "how far away the S3 server is")
	story     = flag.Bool("story", false, "list all requests, and the longest chain of them")
)

// ten is a program of ten resources.
var ten = harness.Files{
	"Pulumi.yaml": "name: ten\nruntime: scenario\n",
	"scenario.yaml": "packages: [{name: fake, version: 0.1.0}]\nsteps:\n  - repeat: 10\n    steps:\n      - register: " +
		"r-{{i}}\n        type: fake:index:Named\n        properties: {name: \"ten-{{i}}\", size: 1}\n",
}

// byTime are the requests of which there are as many as time passes: what is known for some seconds is read again, and
// a log is looked at, and a log and the state are saved in parts, while an update goes on.
var byTime = []string{"GET service/mode", "GET quotas/*/limits", "LIST tokens/", "GET tokens/", "PUT tokens/",
	"HEAD keys/ring.json", "LIST stack/updates/*/events/", "GET stack/updates/*/events/", "PUT stack/updates/*/events/",
	"PUT stack/updates/*/delta/", "GET stack/updates/*/delta/", "LIST stack/updates/*/delta/",
	"DELETE stack/updates/*/delta/", "LIST stack/updates/*/"}

// head is read again by who needs the identity of a stack, which is known for as long, too.
const head = "GET stack/head.json"

// counted returns how many requests there are that do not depend on time, however slow the machine is, and how many
// reads of the head.
func counted(all []traffic.Request) (n, heads int) {
	for _, r := range all {
		kind := r.String()
		timed := r.Object == traffic.Probe || slices.ContainsFunc(byTime, func(of string) bool {
			return kind == of || strings.HasPrefix(kind, of) && of != "LIST stack/updates/*/"
		})
		switch {
		case kind == head:
			heads++
		case !timed:
			n++
		}
	}
	return n, heads
}

// patient reports what an update does before it is time: it saves what it does, and shows what takes long, after a
// second each. One that is over by then does neither, and leaves nothing for the next one to remove.
func patient(all []traffic.Request, took time.Duration) (early string) {
	kinds := traffic.Kinds(all)
	for kind, most := range map[string]int{"PUT stack/updates/*/delta/*": 1, "PUT stack/updates/*/events/output/*": 2} {
		if n := kinds[kind]; n > most*int(took/time.Second) {
			early += fmt.Sprintf("%d times %s in %v. ", n, kind, took)
		}
	}
	return early
}

func TestAnUpdateOfUnchangedResourcesMakesFewRequests(t *testing.T) {
	h := harness.NewHome(t, harness.Binary())
	cloud, _ := harness.Cloud(t)
	home, err := cluster.Prepare(t.Context(), h.Binary, h.Dir, h.Env)
	harness.Must(t, err)
	proxy, err := traffic.NewProxy(home.S3Endpoint, *roundTrip)
	harness.Must(t, err)
	t.Cleanup(proxy.Close)
	c, err := cluster.Start(t.Context(), h.Binary, h.Dir, h.Env, home, proxy.URL, 1)
	harness.Must(t, err)
	t.Cleanup(c.Stop)
	h.Env = c.Env // of its clients
	// The token is that of a pipeline, as in production, and not the one in the settings of serve.
	token := strings.TrimSpace(h.Deployctl(t.TempDir()).Must(t, "token", "create", "pipeline", "--role", "deployer"))
	h.Env = append(h.Env, "DEPLOYCTL_TOKEN="+token)
	dir := t.TempDir()
	ten.Write(t, dir)
	p := h.Deployctl(dir)
	p.Must(t, "stack", "init", "dev")
	p.Must(t, "config", "set", "fake:endpoint", cloud.URL())
	p.Expect(t, harness.Changes{"create": 11}, "up")
	p.Expect(t, harness.Changes{"same": 11}, "up") // what the first one leaves behind is gone

	for _, of := range []struct {
		kind        string
		most, heads int
	}{{"up", 15, 4}, {"preview", 12, 5}, {"refresh", 14, 4}} {
		proxy.Quiet(quiet)
		mark, began := proxy.Mark(), time.Now()
		p.Update(t, of.kind)
		took := time.Since(began)
		during := len(proxy.Since(mark))
		proxy.Quiet(quiet)
		all := proxy.Since(mark)
		chain := traffic.Chain(all[:during])
		n, heads := counted(all)
		heads -= readAgain * int(took/known)
		t.Logf("%s: %d requests, %d of them while it was watched, %d one after another; %d apart from time, and %d reads of "+
			"the head; %v", of.kind, len(all), during, len(chain), n, heads, took.Round(time.Millisecond))
		if early := patient(all, took); early != "" {
			t.Errorf("%s: %s", of.kind, early)
		}
		over := n > of.most || heads > of.heads
		if over || *story {
			report := t.Logf
			if over {
				report = t.Errorf
			}
			report("%s makes %d requests apart from time, and reads the head %d times; at most %d and %d are meant\n%s", of.kind,
				n, heads, of.most, of.heads, traffic.Table(traffic.Kinds(all)))
		}
		if *story {
			fmt.Println(traffic.Story(all) + "\nthe longest chain:\n" + traffic.Story(chain))
		}
	}
}

// The identity of a stack is known for so long; an update that lasts longer reads the head so often more for that.
const known, readAgain = 5 * time.Second, 4

// quiet is longer than what goes on after an update rests: its audit entries are gathered for a second.
const quiet = 2 * time.Second
