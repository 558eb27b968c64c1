package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
)

// few is how many programs the test plays: each takes some seconds of processor time.
const few = 2

// What `make differential` compares for many seeds is compared for a few here.
func TestFewProgramsEndInTheSameStatesOnBothEngines(t *testing.T) {
	t.Parallel()
	bin := stockBinaries(t)
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

var buildingStock sync.Mutex

// stockBinaries is the directory of the binaries of both engines; it builds the stock engine if that is not there.
func stockBinaries(t *testing.T) string {
	t.Helper()
	buildingStock.Lock()
	defer buildingStock.Unlock()
	bin := filepath.Join("..", "..", "bin")
	if _, err := os.Stat(filepath.Join(bin, "stockengine")); err != nil {
		build := exec.Command(filepath.Join("..", "..", "tools", "peers", "build"), "stockengine")
		if out, err := build.CombinedOutput(); err != nil {
			t.Fatalf("build the stock engine: %v\n%s", err, out)
		}
	}
	return bin
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

// enough is how many of 2,000 programs must have each option and each operation.
const enough = 20

func TestEveryOptionIsInEnoughPrograms(t *testing.T) {
	t.Parallel()
	programs := map[string]int{}
	for seed := 1; seed <= 2000; seed++ {
		_, used := generate(seed)
		for what := range used {
			programs[what]++
		}
	}
	for _, what := range []string{
		"parent", "dependsOn", "provider", "providers", "version", "pluginDownloadURL", "ignoreChanges",
		"replaceOnChanges", "deleteBeforeReplace", "replaceWith", "replacementTrigger", "deletedWith",
		"retainOnDelete", "protect", "import", "customTimeouts", "additionalSecretOutputs", "hideDiffs",
		"envVarMappings", "hooks", "hook", "error hook", "a failing hook", "transforms", "transform", "stack transform",
		"rename with an alias", "rename with a URN as alias", "rename with every part in the alias",
		"another type with an alias", "new parent with an alias", "input from an output", "secret input",
		"replacement of a provider", "another provider", "remote component", "read", "invoke", "getResource", "Stash",
		"up --target", "up --target with dependents", "up --exclude", "up --exclude with dependents", "up --replace",
		"up --refresh", "up --ignore-protect", "up --continue-on-error", "refresh", "refresh --run-program",
		"refresh --target", "refresh --exclude", "destroy --run-program", "destroy --target", "destroy --exclude",
		"destroy --ignore-protect", "drift", "a cancel", "a failing create", "a failing update", "a failing delete",
		"a failing read", "a failing check", "a failing configuration of a provider", "the program fails",
		"a resource that does not initialise", "concurrency", "a resource of a parameterized package", "views",
		"a change of views", "a failing view", "a provider that does not know what has changed",
		"a value that becomes secret", "a secret that becomes plain", "a resource of another type with an alias",
		"refresh --run-program of what is renamed", "destroy --target of what is read", "destroy after a failed update",
		"an unknown property of a stack reference", "an alias of what is declared, too", "a root of another name",
		"import of an object",
	} {
		if programs[what] < enough {
			t.Errorf("only %d programs have: %s", programs[what], what)
		}
	}
}
