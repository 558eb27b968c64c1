package modeltest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"

	"github.com/deployctl/deployctl/engine"
)

var (
	first = flag.Int("seed", 0, "the first of the random histories to play")
	runs  = flag.Int("runs", 3000, "how many random histories to play")
)

// TestRandomRunsEndAsTheModelSays plays random updates, one after the other on one stack: some fail, all of them crash,
// lose answers and are put away at random moments, and the last one is left to succeed.
func TestRandomRunsEndAsTheModelSays(t *testing.T) {
	last := *first + *runs
	if testing.Short() {
		last = *first + 2000
	}
	for seed := *first; seed < last; seed++ {
		if err := history(random(seed, 7), random(seed, 11)); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if answeredAhead < (last-*first)/3 {
		t.Errorf("replicas have answered only %d registrations in %d histories", answeredAhead, last-*first)
	}
}

// random is a source of chance that is the same for a seed.
func random(seed, of int) *rand.Rand {
	return rand.New(rand.NewPCG(uint64(seed), uint64(of))) //nolint:gosec // repeatable on purpose
}

func history(rng, losses *rand.Rand) error {
	memory := newMemory(losses)
	fickle := rng.IntN(2) == 0
	c := &cloud{objects: map[string]object{}, retained: map[string]bool{}}
	suffixes := &[8]string{}
	var base []engine.State
	var pending []engine.PendingOperation
	program := randomProgram(rng, nil, suffixes)
	for version := 1; version <= 5; version++ {
		d := &driver{
			rng: rng, fickle: fickle, memory: memory, suffixes: suffixes, cloud: c, base: base, world: base, pending: pending,
			program: program,
			fails:   version%2 == 0,
			goal: engine.Goal{
				Kind: engine.KindUp, Version: version, Organization: "o", Project: "proj", Stack: "dev",
				Parallel: 1 + rng.IntN(4), ContinueOnError: rng.IntN(2) == 0,
				WaitOnUnknown: rng.IntN(2) == 0,
			},
		}
		d.vary()
		memory.lose(d, losses)
		memory.goal(&d.goal)
		memory.world(d)
		if err := d.play(); err != nil {
			return fmt.Errorf("version %d: %w", version, err)
		}
		base, pending = d.run.Snapshot()
		memory.ended(d, base)
		program = d.program
		if err := d.check(base, pending); err != nil {
			return fmt.Errorf("version %d: %w\n%s", version, err, d.log.String())
		}
		if version%2 == 1 || rng.IntN(2) == 0 {
			program = randomProgram(rng, program, suffixes)
		}
	}
	return nil
}

// vary makes some updates refresh what has drifted, some leave most alone, and the last one destroy.
func (d *driver) vary() {
	switch n := d.rng.IntN(8); {
	case d.goal.Version == 5:
		d.goal.Kind = engine.KindDestroy
	case n == 0 && !d.fails:
		d.goal.Kind = engine.KindRefresh
	case n == 1 && !d.fails:
		d.goal.Refresh = true
	case n < 3:
		d.cloud.tangled = true // what is no target goes on using what was replaced
		names := &d.goal.Targets
		if d.rng.IntN(2) == 0 {
			names = &d.goal.Excludes
		}
		for _, r := range d.program {
			if d.rng.IntN(2) == 0 {
				*names = append(*names, string(r.urn()))
			}
		}
	}
	if d.goal.Kind == engine.KindRefresh || d.goal.Refresh {
		d.drift()
	}
	d.exited = d.goal.Kind != engine.KindUp
	if d.fails {
		for i := range d.program {
			d.program[i].protect, d.program[i].retain = d.rng.IntN(10) == 0, d.rng.IntN(6) == 0
		}
	}
}

// drift changes the world behind the service's back, and says how a refresh must then see it.
func (d *driver) drift() {
	d.world = nil
	earlier := map[urn.URN]bool{}
	for _, s := range d.base {
		o, there := d.cloud.objects[s.ID]
		if there = there && !s.Delete && !s.PendingReplacement && len(d.pending) == 0; there && d.rng.IntN(6) == 0 {
			delete(d.cloud.objects, s.ID)
			d.cloud.tangled = true // what used it may now use a copy that nobody knows it uses
			continue
		}
		if there && d.rng.IntN(6) == 0 {
			o.inputs = strings.Replace(o.inputs, "size=", "size=1", 1)
			d.cloud.objects[s.ID] = o
		}
		if there {
			s.Inputs, s.Outputs, s.InitErrors = bag(o.inputs), bag(o.inputs), nil
		}
		gone := func(u urn.URN) bool { return !earlier[u] }
		s.Dependencies = slices.DeleteFunc(slices.Clone(s.Dependencies), gone)
		s.PropertyDependencies = slices.Clone(s.PropertyDependencies)
		for i, p := range s.PropertyDependencies {
			s.PropertyDependencies[i].URNs = slices.DeleteFunc(slices.Clone(p.URNs), gone)
		}
		earlier[s.URN] = true
		d.world = append(d.world, s)
	}
}

// randomProgram declares up to eight resources; each differs by chance from what it was.
func randomProgram(rng *rand.Rand, was []declared, suffixes *[8]string) []declared {
	var out []declared
	for _, n := range rng.Perm(8) {
		if rng.IntN(4) == 0 {
			continue
		}
		d := declared{number: n, size: 1 + rng.IntN(2), suffix: suffixes[n]}
		i := slices.IndexFunc(was, func(o declared) bool { return o.number == n })
		if i >= 0 && rng.IntN(2) == 0 {
			d.size = was[i].size
		} else if rng.IntN(4) == 0 {
			d.suffix += "x"
			suffixes[n] = d.suffix
		}
		for _, o := range out {
			switch rng.IntN(6) {
			case 0, 1:
				d.deps = append(d.deps, o.number)
			case 2:
				d.after = append(d.after, o.number)
			}
		}
		out = append(out, d)
	}
	return out
}

// plain leaves the keys out of headers.
func plain(headers []string) []string {
	out := make([]string, len(headers))
	for i, h := range headers {
		_, out[i], _ = strings.Cut(h, " ")
	}
	return out
}

func headers(states []engine.State) []string {
	var out []string
	for _, s := range states {
		out = append(out, fmt.Sprintf("%s %s %s %s delete=%v pending=%v %v", s.Key, s.URN.Name(), s.ID, s.Inputs.Digest,
			s.Delete,
			s.PendingReplacement, s.Dependencies))
	}
	return out
}
