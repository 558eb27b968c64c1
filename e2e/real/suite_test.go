package real

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/deployctl/deployctl/e2e/cluster"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/e2e/seeds"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

var (
	play  = flag.Bool("real", false, "play real providers against real servers")
	which = flag.String("seeds", "1-30", "the seeds of lost answers and kills")
)

// tries are how often an update is repeated.
const tries = 8

// object is a thing on a server: its kind and name are the same only for what was made twice. An id is part of that in
// the state.
type object struct{ kind, name, id string }

// server is where a provider makes things.
type server interface {
	// proxy starts a proxy before the server. It returns the address for programs.
	proxy(t *testing.T, faults *Faults) string
	// objects are the things whose names begin with the prefix.
	objects(ctx context.Context, prefix string) ([]object, error)
	// alter changes the one thing that the program calls outside.
	alter(ctx context.Context, prefix string) error
}

// stage is what a program is to be like.
type stage struct {
	prefix, address string
	changed         bool // what can be updated is
	replaced        bool // what cannot is
}

// subject is a provider and its server.
type subject struct {
	name    string
	server  server
	env     []string          // of the service
	files   map[string]string // of every project
	program func(stage) string
	config  [][2]string
	plugin  string // the name of its process; empty: it has none that could be killed
}

// bridged gives a project the package that the bridge makes of a provider of Terraform at run time.
func bridged(t *testing.T, name, provider string, types ...string) (dir string, files map[string]string) {
	t.Helper()
	bridge, err := exec.Command(filepath.Join(harness.Root(), "tools", "cached"), "peers/bridge",
		"github.com/pulumi/pulumi-terraform-bridge/v3/dynamic",
		"-X github.com/pulumi/pulumi-terraform-bridge/v3/dynamic/version.version=v1.0.0").Output()
	if err != nil {
		t.Skipf("the bridge to providers of Terraform could not be built: %v", err)
	}
	dir = t.TempDir()
	harness.Must(t, os.Symlink(strings.TrimSpace(string(bridge)),
		filepath.Join(dir, "pulumi-resource-terraform-provider")))
	path := filepath.Join(dir, "terraform-provider-"+name)
	harness.Must(t, os.Symlink(provider, path))
	value, err := json.Marshal(map[string]any{"local": map[string]string{"path": path}, "includes": types})
	harness.Must(t, err)
	return dir, map[string]string{"sdks/" + name + ".yaml": fmt.Sprintf(`packageDeclarationVersion: 1
name: terraform-provider
version: 1.0.0
parameterization: {name: %s, version: 0.0.0, value: %s}
`, name, base64.StdEncoding.EncodeToString(value))}
}

// world is a home in which a subject is played.
type world struct {
	*subject
	home *harness.Home
}

func newWorld(t *testing.T, s *subject) *world {
	t.Helper()
	h := harness.NewHome(t, harness.Binary())
	h.Env = append(h.Env, s.env...)
	return &world{s, h}
}

// actor is a stack of the subject.
type actor struct {
	*world
	*harness.Tool
	stage stage
}

func (w *world) actor(t *testing.T, prefix string, faults *Faults) *actor {
	t.Helper()
	dir := filepath.Join(t.TempDir(), prefix)
	a := &actor{world: w, stage: stage{prefix: prefix, address: w.server.proxy(t, faults)}}
	harness.Files(w.files).Write(t, dir)
	a.Tool = w.home.Deployctl(dir)
	a.write(t)
	a.Must(t, "stack", "init", prefix)
	for _, set := range w.config {
		a.Must(t, "config", "set", set[0], set[1])
	}
	return a
}

func (a *actor) write(t *testing.T) {
	t.Helper()
	harness.Files{"Pulumi.yaml": a.program(a.stage)}.Write(t, a.Dir)
}

// kills has faults kill this world's plugins or service.
func (w *world) kills(t *testing.T) func(Kind) {
	status := func() (pid int) {
		var s struct{ PID int }
		end := w.home.Deployctl(w.home.Dir).Run(t, "dev", "status", "--json")
		_ = json.Unmarshal([]byte(end.Stdout), &s) // if it does not run, there is nothing to kill
		return s.PID
	}
	return func(kind Kind) {
		pid := status()
		if pid == 0 {
			return
		}
		if kind == ServiceKilled {
			_ = syscall.Kill(pid, syscall.SIGKILL)
			w.home.Deployctl(w.home.Dir).Run(t, "dev", "--background")
			return
		}
		below, err := cluster.Below(pid, w.plugin)
		if err != nil {
			return
		}
		for _, plugin := range below {
			_ = syscall.Kill(plugin, syscall.SIGKILL)
		}
	}
}

// stray compares the server with the state: what was made twice, what is in no state, and what is in none of both.
func (a *actor) stray(t *testing.T) (duplicates, orphans []object) {
	t.Helper()
	objects, err := a.server.objects(t.Context(), a.stage.prefix)
	harness.Must(t, err)
	state := a.Deployment(t)
	if len(state.PendingOperations) > 0 {
		t.Errorf("there are pending operations: %v", state.PendingOperations)
	}
	seen := map[object]bool{}
	for _, o := range objects {
		same := object{kind: o.kind, name: o.name}
		if seen[same] {
			duplicates = append(duplicates, o)
		}
		seen[same] = true
		if !slices.ContainsFunc(state.Resources, func(r apitype.ResourceV3) bool {
			return r.Custom && strings.Contains(string(r.ID), o.id)
		}) {
			orphans = append(orphans, o)
		}
	}
	return duplicates, orphans
}

// TestTheLifeOf plays what a user does with each provider, undisturbed.
func TestTheLifeOf(t *testing.T) {
	forEach(t, func(t *testing.T, w *world) {
		a := w.actor(t, "life", NewFaults(0))
		first := a.Update(t, "up").Changes["create"]
		unchanged := func(after string) {
			t.Helper()
			if r := a.Update(t, "up"); len(r.Steps) > 0 {
				t.Errorf("after %s, an update changes %v", after, r.Steps)
			}
			if found := a.drift(t); len(found) > 0 {
				t.Errorf("after %s, a refresh finds %v", after, found)
			}
		}
		unchanged("creation")
		a.stage.changed = true
		a.write(t)
		if r := a.Update(t, "up"); r.Changes["update"] == 0 || r.Changes["create"]+r.Changes["replace"] > 0 {
			t.Errorf("an update does %v: %v", r.Changes, r.Steps)
		}
		unchanged("an update")
		a.stage.replaced = true
		a.write(t)
		if r := a.Update(t, "up"); r.Changes["replace"] == 0 || r.Changes["create"] > 0 {
			t.Errorf("a replacement does %v: %v", r.Changes, r.Steps)
		}
		unchanged("a replacement")
		harness.Must(t, w.server.alter(t.Context(), "life"))
		if found := a.drift(t); len(found) != 1 || !strings.HasPrefix(found[0], "refresh outside ") {
			t.Errorf("after a change from outside, a refresh finds %v", found)
		}
		if r := a.Update(t, "up"); len(r.Steps) != 1 || !strings.HasPrefix(r.Steps[0], "update outside ") {
			t.Errorf("after a change from outside, an update does %v", r.Steps)
		}
		unchanged("a change from outside")
		duplicates, orphans := a.stray(t)
		if len(duplicates)+len(orphans) > 0 {
			t.Errorf("made twice: %v; in no state: %v", duplicates, orphans)
		}
		a.imports(t)
		if r := a.Update(t, "destroy"); r.Changes["delete"] < first {
			t.Errorf("a destroy does %v", r.Changes)
		}
		if left, err := w.server.objects(t.Context(), "life"); err != nil || len(left) > 0 {
			t.Errorf("%v is left, %v", left, err)
		}
	})
}

// drift refreshes, and returns what was found to have changed.
func (a *actor) drift(t *testing.T) []string {
	t.Helper()
	steps := a.Update(t, "refresh").Steps
	return slices.DeleteFunc(steps, func(step string) bool { return strings.HasSuffix(step, " []") })
}

// imports forgets a resource and imports it.
func (a *actor) imports(t *testing.T) {
	t.Helper()
	var outside apitype.ResourceV3
	for _, r := range a.Deployment(t).Resources {
		if r.URN.Name() == "outside" {
			outside = r
		}
	}
	provider := outside.Provider[:strings.LastIndex(outside.Provider, "::")]
	a.Must(t, "state", "delete", string(outside.URN), "--yes")
	a.Must(t, "import", string(outside.Type), "outside", string(outside.ID), "--yes", "--protect=false", "--skip-preview",
		"--provider", provider[strings.LastIndex(provider, ":")+1:]+"="+provider)
	if r := a.Update(t, "up"); r.Changes["create"]+r.Changes["replace"]+r.Changes["delete"] > 0 {
		t.Errorf("after an import, an update does %v", r.Steps)
	}
}

// TestLostAnswersAndKillsOf plays seeds in which answers get lost between a provider and its server, and plugins and
// the service are killed. Each update is repeated until it succeeds; nothing else is typed.
func TestLostAnswersAndKillsOf(t *testing.T) {
	from, to, err := seeds.Parse(*which)
	harness.Must(t, err)
	forEach(t, func(t *testing.T, w *world) {
		var mu sync.Mutex
		total, updates, failed := map[Kind]int{}, 0, 0
		for seed := from; seed <= to; seed++ {
			t.Run(fmt.Sprint(seed), func(t *testing.T) {
				kinds := []Kind{Refused, Cut, Cut, Error, Error, Late, ServiceKilled}
				if w.plugin != "" {
					kinds = append(kinds, PluginKilled)
				}
				faults := NewFaults(seed, kinds...)
				faults.Kill = w.kills(t)
				a := w.actor(t, fmt.Sprintf("seed%d", seed), faults)
				n := 0
				defer func() { // also if it ends early
					mu.Lock()
					defer mu.Unlock()
					for kind, times := range faults.Struck() {
						total[kind] += times
					}
					updates += n
					if t.Failed() {
						failed++
					}
				}()
				n = a.disturbed(t, faults)
			})
		}
		all := 0
		var said []string
		for _, kind := range slices.Sorted(maps.Keys(total)) {
			all += total[kind]
			said = append(said, fmt.Sprintf("%d %s", total[kind], kind))
		}
		t.Logf("%s: %d seeds, %d of them failed; %d calls went wrong (%s) in %d updates", w.name, to-from+1, failed,
			all, strings.Join(said, ", "), updates)
	})
}

// disturbed creates, changes, replaces and destroys a stack, and returns the number of updates that it took.
func (a *actor) disturbed(t *testing.T, faults *Faults) (updates int) {
	t.Helper()
	phase := func(verb string) {
		t.Helper()
		faults.Begin()
		defer faults.End()
		var said string
		for range tries {
			updates++
			end := a.Run(t, verb, "--yes", "--skip-preview", "--on-unknown", "fail")
			if said = end.Stdout + end.Stderr; end.Code == 0 {
				return
			}
			if strings.Contains(said, "deployctl resolve") {
				t.Fatalf("a person is asked:\n%s", end.Said())
			}
		}
		t.Fatalf("%d times in vain: %s says\n%s", tries, verb, said)
	}
	check := func(after string) {
		t.Helper()
		if duplicates, orphans := a.stray(t); len(duplicates)+len(orphans) > 0 {
			t.Errorf("after %s, made twice: %v; in no state: %v", after, duplicates, orphans)
		}
	}
	phase("up")
	check("creation")
	a.stage.changed, a.stage.replaced = true, true
	a.write(t)
	phase("up")
	check("a change")
	phase("destroy")
	left, err := a.server.objects(t.Context(), a.stage.prefix)
	harness.Must(t, err)
	if len(left) > 0 {
		t.Errorf("after its end, %v is left", left)
	}
	return updates
}

// forEach plays each subject that can be had.
func forEach(t *testing.T, with func(*testing.T, *world)) {
	if !*play {
		t.Skip("make test-real plays real providers against real servers")
	}
	for name, open := range map[string]func(*testing.T) *subject{
		"aws": onAWS, "postgresql": onPostgreSQL, "deployctl:s3": onS3,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			s.name = name
			with(t, newWorld(t, s))
		})
	}
}
