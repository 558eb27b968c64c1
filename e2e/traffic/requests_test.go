package traffic_test

import (
	"flag"
	"fmt"
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

// byTime are the requests of which there are as many as time passes, each counted once: what is known for some seconds
// is read again, and a log that grows is looked at and written in parts.
var byTime = []string{"GET service/mode", "LIST tokens/", "LIST stack/updates/*/events/",
	"GET stack/updates/*/events/", "PUT stack/updates/*/events/", "PUT stack/updates/*/delta/",
	"HEAD keys/ring.json", "GET tokens/", "GET stack/updates/*/delta/", "DELETE stack/updates/*/delta/",
	"LIST stack/updates/*/delta/"}

// counted returns how many requests there are without those that time repeats, and without what passes anyway.
func counted(all []traffic.Request) (n int) {
	repeated := map[string]bool{}
	for _, r := range all {
		kind := r.String()
		again := false
		for _, prefix := range byTime {
			if strings.HasPrefix(kind, prefix) {
				again = repeated[kind]
				repeated[kind] = true
			}
		}
		if !again && r.Object != traffic.Probe {
			n++
		}
	}
	return n
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
	dir := t.TempDir()
	ten.Write(t, dir)
	p := h.Deployctl(dir)
	p.Must(t, "stack", "init", "dev")
	p.Must(t, "config", "set", "fake:endpoint", cloud.URL())
	p.Expect(t, harness.Changes{"create": 11}, "up")
	p.Expect(t, harness.Changes{"same": 11}, "up") // what the first one leaves behind is gone

	for _, of := range []struct {
		kind string
		most int
	}{{"up", 33}, {"preview", 27}, {"refresh", 33}} {
		proxy.Quiet(quiet)
		mark, began := proxy.Mark(), time.Now()
		p.Update(t, of.kind)
		took := time.Since(began)
		during := len(proxy.Since(mark))
		proxy.Quiet(quiet)
		all := proxy.Since(mark)
		chain := traffic.Chain(all[:during])
		n := counted(all) - readAgain*int(took/known)
		t.Logf("%s: %d requests, %d of them while it was watched, %d one after another; %d counted; %v", of.kind, len(all),
			during, len(chain), n, took.Round(time.Millisecond))
		if n > of.most || *story {
			report := t.Logf
			if n > of.most {
				report = t.Errorf
			}
			report("%s makes %d requests, at most %d are meant\n%s", of.kind, n, of.most, traffic.Table(traffic.Kinds(all)))
		}
		if *story {
			fmt.Println(traffic.Story(all) + "\nthe longest chain:\n" + traffic.Story(chain))
		}
	}
}

// What is known of a stack is read again when that was so long ago, which an update reaches on a slow machine: that
// many requests more.
const known, readAgain = 5 * time.Second, 4

// quiet is longer than what goes on after an update rests: its audit entries are gathered for a second.
const quiet = 2 * time.Second
