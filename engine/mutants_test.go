package engine_test

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutants are ways to break the engine, each of which a transcript or a random run must notice.
var mutants = []struct{ name, file, old, now string }{
	{
		"a program that failed has its resources deleted", "run.go",
		`if r.Stopped || (r.Exit != nil && r.Exit.Error != "") ||`, `if`,
	},
	{
		"a replaced resource is forgotten instead of deleted", "steps.go",
		`if e.replaces() && !old.PendingReplacement {`, `if false {`,
	},
	{
		"deletions do not wait for what depends on them", "deletion.go",
		`other.Blockers++`, `other.Blockers += 0`,
	},
	{
		"a failed deletion lets go what it depends on", "deletion.go",
		"if d != nil {\n\t\t\tr.withhold(d)", "if d != nil {\n\t\t\tr.freed(d)",
	},
	{
		"a protected resource is deleted", "deletion.go",
		`if state.Protect && d.Kind == StepDelete {`, `if false {`,
	},
	{
		"an unknown outcome is taken for a failure and tried again", "steps.go",
		"r.out = append(r.out, Settle{Step: *op.Step})\n\t\treturn\n\tcase OutcomeAbsent",
		"r.out = append(r.out, *op.Step)\n\t\treturn\n\tcase OutcomeAbsent",
	},
	{
		"another start of the program repeats what runs", "registration.go",
		`if op := r.stepOf(e.URN); op != nil {`, `if op := r.stepOf(e.URN); op != nil && op.For != forGoal {`,
	},
	{
		"a replacement does not wait for what was registered before it", "replacement.go",
		`case other != nil && other.Order < e.Order && other.Stage != stageDone:`, `case false:`,
	},
	{
		"members of a cascade keep the plans that were made before it", "replacement.go",
		"other.Plan, other.Op, other.Old = nil, 0, \"\"\n\tr.enter(other, stageHeld)", "",
	},
	{
		"references keep the name from before an alias", "snapshot.go",
		`s.renames[d.From] = d.To`, ``,
	},
	{
		"a resource that did not initialise is not repaired", "planning.go",
		`|| len(old.InitErrors) > 0:`, `:`,
	},
	{
		"a create that nobody could decide on is made again", "aliases.go",
		`if r.Doubtful[name] {`, `if false {`,
	},
	{
		"another start of the program is told of what was deleted meanwhile", "registration.go",
		`!live.PendingReplacement && r.condemned[k] == nil`, `true`,
	},
	{
		"more steps run than may", "steps.go",
		`len(r.Slots) < r.goal.Parallel+`, `len(r.Slots) <= r.goal.Parallel+`,
	},
	{
		"a plan is answered before it is certain", "answers.go",
		`if !certain || r.Entries[r.firstUndone()] != e {`, `if !certain {`,
	},
	{
		"an answer to an earlier start of the program counts for this one", "answers.go",
		`return a != nil && a.Epoch == e.Epoch && a.Seq == e.Seq`, `return a != nil`,
	},
	{
		"what waits for a person is lost when the run is put away", "suspend.go",
		`Memory: r.memory, Pending: r.snap.unfinished(), Aliases`, `Memory: r.memory, Aliases`,
	},
}

// TestMutantsAreCaught plays the other tests against engines that are wrong in one place.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the engine once for each mutant")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			source, err := os.ReadFile(m.file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Count(string(source), m.old) != 1 {
				t.Fatalf("%s no longer has exactly one %q: write the mutant anew", m.file, m.old)
			}
			dir := t.TempDir()
			mutant := filepath.Join(dir, m.file)
			overlay := filepath.Join(dir, "overlay.json")
			replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{filepath.Join(here, m.file): mutant}})
			for name, data := range map[string]string{
				mutant:  strings.Replace(string(source), m.old, m.now, 1),
				overlay: string(replace),
			} {
				if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			//nolint:gosec // the go tool and this module
			cmd := exec.CommandContext(ctx, "go", "test", "-short", "-vet=off", "-overlay", overlay, "-timeout", "60s", ".", "./modeltest")
			out, err := cmd.CombinedOutput()
			switch {
			case err == nil:
				t.Errorf("no test noticed")
			case !strings.Contains(string(out), "--- FAIL") && !strings.Contains(string(out), "panic:"):
				t.Fatalf("the mutant could not be tested: %v\n%s", err, out)
			}
		})
	}
}
