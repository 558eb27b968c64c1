package modeltest

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/engine"
)

var first = flag.Int("seed", 0, "the first of the random histories to play")

// TestRandomRunsEndAsTheModelSays plays random updates, one after the other on one stack: some fail, all of them crash,
// lose answers and are put away at random moments, and the last one is left to succeed.
func TestRandomRunsEndAsTheModelSays(t *testing.T) {
	runs := 10000
	if testing.Short() {
		runs = 1500
	}
	for seed := *first; seed < *first+runs; seed++ {
		if err := history(rand.New(rand.NewPCG(uint64(seed), 7))); err != nil { //nolint:gosec // repeatable on purpose
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

func history(rng *rand.Rand) error {
	fickle := rng.IntN(2) == 0
	c := &cloud{objects: map[string]object{}}
	suffixes := &[8]string{}
	var base []engine.State
	var pending []engine.PendingOperation
	program := randomProgram(rng, nil, suffixes)
	for version := 1; version <= 4; version++ {
		d := &driver{
			rng: rng, fickle: fickle, suffixes: suffixes, cloud: c, base: base, pending: pending, fails: version%2 == 0, program: program,
			goal: engine.Goal{
				Kind: engine.KindUp, Version: version, Organization: "o", Project: "proj", Stack: "dev",
				Parallel: 1 + rng.IntN(4), ContinueOnError: rng.IntN(2) == 0,
				WaitOnUnknown: rng.IntN(2) == 0,
			},
		}
		if err := d.play(); err != nil {
			return fmt.Errorf("version %d: %w", version, err)
		}
		base, pending = d.run.Snapshot()
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

// check compares the end of an update with the model and the cloud.
func (d *driver) check(states []engine.State, pending []engine.PendingOperation) error {
	if err := d.cloud.leaks(states, pending); err != nil {
		return err
	}
	again, _ := d.replayed.States()
	if fmt.Sprint(headers(again)) != fmt.Sprint(headers(states)) {
		return fmt.Errorf("the deltas lead to\n%v\nnot to\n%v", headers(again), headers(states))
	}
	res, _ := d.run.Result()
	if d.failed {
		if res.Status == engine.StatusSucceeded {
			return fmt.Errorf("it succeeded in spite of a failure")
		}
		return nil
	}
	if res.Status != engine.StatusSucceeded || res.Pending != 0 {
		return fmt.Errorf("it ended %+v", res)
	}
	want := expected(d.base, d.registered)
	for _, s := range states {
		id, ok := want[s.URN]
		kept := slices.ContainsFunc(d.base, func(o engine.State) bool { return o.ID == s.ID && !o.PendingReplacement })
		switch {
		case !ok || s.Delete || s.PendingReplacement:
			return fmt.Errorf("%s should not be there", s.URN)
		case d.epochs > 1 || len(d.pending) > 0: // how often the ids changed depends on when it crashed, and what was there
		case id != "" && s.ID != id, id == "" && kept:
			return fmt.Errorf("%s has the id %s, not %q", s.URN, s.ID, id)
		}
		delete(want, s.URN)
	}
	if len(want) > 0 {
		return fmt.Errorf("%v are missing", want)
	}
	return nil
}

func headers(states []engine.State) []string {
	var out []string
	for _, s := range states {
		out = append(out, fmt.Sprintf("%s %s %s %s delete=%v pending=%v %v", s.Key, s.URN.Name(), s.ID, s.Inputs.Digest, s.Delete,
			s.PendingReplacement, s.Dependencies))
	}
	return out
}
