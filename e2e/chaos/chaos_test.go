package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

func TestMain(m *testing.M) {
	binary, _ = filepath.Abs("../../bin/deployctl")
	programSize = 60
	os.Exit(m.Run())
}

// What `make chaos` shows of many seeds is shown of a few here; times are only looked at there. The claims run in
// parallel: they mostly wait for missed heartbeats.
func TestEveryClaimHoldsForAFewSeeds(t *testing.T) {
	soaktest.Only(t)
	t.Parallel()
	for _, c := range claims {
		if len(c.few) == 0 {
			continue
		}
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			b, err := openBook(t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			c.control = nil
			played, _, err := play(t.Context(), c, c.few, 1, b)
			if err != nil {
				t.Fatal(err)
			}
			if _, sum := totals(played); len(played) != len(c.few) || len(sum.broken()) > 0 {
				t.Errorf("%d seeds were played, of %d: %v", len(played), len(c.few), sum)
			}
			for _, o := range played {
				if o.Failed != "" {
					t.Errorf("seed %d: %s", o.Seed, o.Failed)
				}
			}
		})
	}
}

func TestNoUpdateBehindAProxyFailsWhenServersAreKilled(t *testing.T) {
	t.Parallel()
	w, err := newWorld(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	const clients, kills = 2, 3
	o, err := w.replicated(t.Context(), 1, clients, kills)
	if err != nil || len(o.Counts.broken()) > 0 || o.Tally["kills"] != kills {
		t.Errorf("%v %v", o.Counts, err)
	}
}
