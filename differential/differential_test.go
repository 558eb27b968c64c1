package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// few is how many programs the test plays: each takes some seconds of processor time.
const few = 8

// What `make differential` compares for many seeds is compared for a few here.
func TestFewProgramsEndInTheSameStatesOnBothEngines(t *testing.T) {
	t.Parallel()
	bin := filepath.Join("..", "bin")
	if _, err := os.Stat(filepath.Join(bin, "stockengine")); err != nil {
		build := exec.Command(filepath.Join("..", "tools", "peers", "build"), "stockengine")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the stock engine: %v\n%s", err, out)
		}
	}
	b, err := openBook(t.TempDir(), filepath.Join(bin, "deployctl"))
	if err != nil {
		t.Fatal(err)
	}
	all, err := run{from: 1, to: few, atOnce: 4}.play(t.Context(), bin, b)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range all {
		if o.Differs != "" {
			t.Errorf("seed %d: the engines differ %s", o.Seed, o.Differs)
		}
	}
	if len(all) != few {
		t.Errorf("%d programs were played", len(all))
	}
}

func TestASeedIsAlwaysTheSameProgram(t *testing.T) {
	t.Parallel()
	for seed := 1; seed <= 50; seed++ {
		p, _ := generate(seed)
		q, _ := generate(seed)
		if p.text() != q.text() {
			t.Errorf("seed %d is\n%s\nand\n%s", seed, p.text(), q.text())
		}
	}
}
