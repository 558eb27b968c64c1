package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// mutant is a way to break the engine.
type mutant struct{ name, file, old, now string }

// mutants must each be noticed by a transcript or a random run.
var mutants = []mutant{
	{
		"a program that failed has its resources deleted", "phases.go",
		`if r.Stopped || r.Refusals > 0 || unmatched || (r.Exit != nil && r.Exit.Error != "") ||`, `if unmatched ||`,
	},
	{
		"a request that was refused lets the update delete", "refused.go",
		"r.Refusals++\n\tvar about", "var about",
	},
	{
		"what could not be registered is deleted", "deletion.go",
		`case r.registered(s.URN), r.wants(s.URN):`, `case r.registered(s.URN):`,
	},
	{
		"a copy stays in the way of a cascade", "cascade.go",
		`if len(ahead) > 0 {`, `if false {`,
	},
	{
		"a copy that something uses goes ahead of a cascade", "sweep.go",
		`case all(sweeps):`, `case true:`,
	},
	{
		"an alias is claimed twice", "aliases.go",
		`case name != e.URN && by != "" && by != e.URN:`, `case false:`,
	},
	{
		"a target that names nothing is ignored", "phases.go",
		`|| unmatched ||`, `|| unmatched && false ||`,
	},
	{
		"a replaced resource is forgotten instead of deleted", "record.go",
		`if e.replaces() && !old.PendingReplacement {`, `if false {`,
	},
	{
		"deletions do not wait for what depends on them", "deletion.go",
		`other.Blockers++`, `other.Blockers += 0`,
	},
	{
		"a failed deletion lets go what it depends on", "deletion.go",
		"if d != nil {\n\t\t\tr.failDeletion(d)", "if d != nil {\n\t\t\tr.unblock(d)",
	},
	{
		"a protected resource is deleted", "deletion.go",
		`if state.Protect && d.Kind == StepDelete {`, `if false {`,
	},
	{
		"an unknown outcome is taken for a failure and tried again", "steps.go",
		"r.settle(op)\n\t\treturn\n\tcase OutcomeAbsent",
		"r.ready.Start = append(r.ready.Start, *op.Step)\n\t\treturn\n\tcase OutcomeAbsent",
	},
	{
		"another start of the program repeats what runs", "registration.go",
		`if op := r.stepOf(e.URN); op != nil {`, `if op := r.stepOf(e.URN); op != nil && op.For != forGoal {`,
	},
	{
		"a create that will not be made again is not looked for", "steps.go",
		`case op.Again:`, `case false:`,
	},
	{
		"a create that fails forgets the attempt that was lost before it", "steps.go",
		`if !op.Lost || op.Step.Kind`, `if true || op.Step.Kind`,
	},
	{
		"outputs of a program that failed take the place of the stack's", "outputs.go",
		`!r.Stopped && r.FirstError == "" || had.Outputs.Empty()`, `had != nil`,
	},
	{
		"an import of an earlier start of the program goes on beside the next one", "imports.go",
		`if e.Epoch != r.Epoch {`, `if false {`,
	},
	{
		"a resource outside the targets is deleted for another's replacement", "cascade.go",
		`|| r.refuseUntargetedMember(e, group)`, ``,
	},
	{
		"a replacement does not wait for what was registered before it", "cascade.go",
		`case other != nil && other.Order < e.Order && other.Stage != stageDone,`, `case false,`,
	},
	{
		"members of a cascade keep the plans that were made before it", "cascade.go",
		"other.Plan, other.Old = nil, \"\"\n\tr.become(other, stageHeld, 0)", "",
	},
	{
		"an entry that has ended still has an operation", "stages.go",
		`e.Stage, e.Op, e.blockedOn = to, op, nil`, `e.Stage, e.Op, e.blockedOn = to, max(e.Op, op), nil`,
	},
	{
		"a deletion that is over goes on blocking another", "deletion.go",
		`if other.Blockers--; other.Blockers == 0 {`, `if other.Blockers == 1 {`,
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
		`case r.marked(name).Undecided:`, `case false:`,
	},
	{
		"another start of the program is told of what was deleted meanwhile", "registration.go",
		`!live.PendingReplacement && r.deletionOf[k] == nil`, `true`,
	},
	{
		"more steps run than may", "operations.go",
		`len(r.Slots) < r.goal.Parallel+`, `len(r.Slots) <= r.goal.Parallel+`,
	},
	{
		"a plan is answered before it is certain", "replies.go",
		`if !certain || r.Entries[r.firstOpen()] != e {`, `if !certain {`,
	},
	{
		"an answer to an earlier start of the program counts for this one", "replies.go",
		`return a != nil && a.Epoch == e.Epoch && a.Seq == e.Seq`, `return a != nil`,
	},
	{
		"what waits for a person is lost when the run is put away", "suspend.go",
		`Pending: r.snap.unfinished(), Aliases`, `Aliases`,
	},
	{
		"a target comes to depend on what still depends on it", "targets.go",
		`if len(r.goal.Targets) == 0 || e.Old == "" {`, `if true {`,
	},
	{
		"what is taken over refers to what is gone", "settle.go",
		`u != "" && r.snap.Live(r.current(u)) == nil`, `false`,
	},
	{
		"a resource keeps an id that it should lose when a program starts again", "planning.go",
		`e.Forced != nil || p.Diff.Change == ChangeReplace:`,
		`e.Forced != nil || p.Diff.Change == ChangeReplace && r.Epoch == 1:`,
	},
}

// TestMutantsAreCaught plays the other tests against engines that are wrong in one place, and first against one that
// is not: what fails there says nothing about the others.
func TestMutantsAreCaught(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles the engine once for each mutant")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	if verdict, out := try(ctx, t, mutant{file: "run.go"}); verdict != "passed" {
		t.Fatalf("the engine as it is: the tests %s\n%s", verdict, out)
	}
	for _, m := range mutants {
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			if verdict, out := try(ctx, t, m); verdict != "failed" {
				t.Errorf("the tests %s\n%s", verdict, out)
			}
		})
	}
}

// try plays the tests against a mutant, and says whether they passed, failed, or could not say.
func try(ctx context.Context, t *testing.T, m mutant) (verdict, out string) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		t.Fatal(err)
	}
	if m.old != "" && strings.Count(string(source), m.old) != 1 {
		t.Fatalf("%s no longer has exactly one %q: write the mutant anew", m.file, m.old)
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, m.file), filepath.Join(dir, "overlay.json")
	replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	for name, data := range map[string]string{
		changed: strings.Replace(string(source), m.old, m.now, 1),
		overlay: string(replace),
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tests := range []string{".", "./modeltest"} { // those of the model take longer
		//nolint:gosec // the go tool and this module
		cmd := exec.CommandContext(ctx, "go", "test", "-short", "-vet=off", "-overlay", overlay, "-timeout", "180s",
			tests)
		output, err := cmd.CombinedOutput()
		if verdict, out = judge(string(output), err), string(output); verdict != "passed" {
			break
		}
	}
	return verdict, out
}

// judge tells a test that noticed something from one that came to no end, or was never built.
func judge(out string, err error) string {
	switch {
	case err == nil:
		return "passed"
	case strings.Contains(out, "--- FAIL"), strings.Contains(out, "panic:") &&
		!strings.Contains(out, "panic: test timed out"):
		return "failed"
	case strings.Contains(out, "panic: test timed out"):
		return "came to no end"
	}
	return "could not be run"
}

func TestAMutantThatComesToNoEndIsNotCaught(t *testing.T) {
	failure := errors.New("exit status 1")
	for out, want := range map[string]string{
		"--- FAIL: TestTranscripts (0.1s)":                "failed",
		"panic: runtime error: index out of range":        "failed",
		"panic: test timed out after 3m0s\nrunning":       "came to no end",
		"steps.go:1:1: syntax error\nFAIL [build failed]": "could not be run",
	} {
		if got := judge(out, failure); got != want {
			t.Errorf("%q: the tests %s, not %s", out, got, want)
		}
	}
}
