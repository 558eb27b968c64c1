// Package mutanttest plays the tests of a package against versions of it that are wrong in one place. A version that no
// test notices shows that something is not tested.
package mutanttest

import (
	"context"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// Mutant is a way to break a package.
type Mutant struct {
	// Name says what the broken package does, as a sentence.
	Name string
	// File is the file of the package, or of one below it, in which Old, which stands there once, becomes New.
	File, Old, New string
}

var play = flag.Bool("mutants", false, "play the tests against mutants, which compiles the package once for each")

// Only skips a test that plays tests against mutants, unless that was asked for.
func Only(t *testing.T) {
	t.Helper()
	if !*play {
		t.Skip("make mutants plays them")
	}
}

// Play fails the test for each mutant that no test notices. Tests are runs of `go test -short` in the package's
// directory, as arguments; the second is made if the first notices nothing. That they pass without a mutant is shown by
// the package's own run of them. A mutant that does not fit its file any more fails the test in every run.
func Play(t *testing.T, mutants []Mutant, tests ...[]string) {
	t.Helper()
	for _, m := range mutants {
		m.source(t)
	}
	Only(t)
	for _, m := range mutants {
		t.Run(m.Name, func(t *testing.T) {
			t.Parallel()
			if verdict, out := run(t.Context(), m.overlay(t), tests); verdict != "failed" {
				t.Errorf("the tests %s\n%s", verdict, out)
			}
		})
	}
}

// source returns the file of the mutant as it is; the mutant must fit it.
func (m Mutant) source(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(m.File)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Count(string(source), m.Old) != 1 {
		t.Errorf("%s does not have exactly one %q: adapt the mutant %q", m.File, m.Old, m.Name)
	}
	return string(source)
}

// overlay returns the name of a file that has the go command see the mutant.
func (m Mutant) overlay(t *testing.T) string {
	t.Helper()
	source := m.source(t)
	original, err := filepath.Abs(m.File)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	changed, overlay := filepath.Join(dir, filepath.Base(m.File)), filepath.Join(dir, "overlay.json")
	replace, _ := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	for name, data := range map[string]string{
		changed: strings.Replace(source, m.Old, m.New, 1),
		overlay: string(replace),
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return overlay
}

// run makes the runs up to the first that does not pass, and returns what came of that.
func run(ctx context.Context, overlay string, tests [][]string) (verdict, out string) {
	for _, args := range tests {
		all := append([]string{"test", "-short", "-vet=off", "-timeout", (3 * waittest.Patience).String(),
			"-overlay", overlay}, args...)
		cmd := exec.CommandContext(ctx, "go", all...) //nolint:gosec // the go tool and this module
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
