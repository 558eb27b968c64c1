package engine_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite the transcripts in testdata")

// TestTranscripts plays every file of testdata. A file holds events, a line each, in the domain's own words; the lines
// that begin with ">" are what the core answered, and are rewritten by -update. Every transcript is played twice: once
// as it is, and once with the run put away and taken up again at each quiet moment, which nothing may notice.
func TestTranscripts(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no transcripts: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			got := play(t, string(text), false)
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil { //nolint:gosec // a test's own data
					t.Fatal(err)
				}
			} else if got != string(text) {
				t.Errorf("the core answers otherwise (rewrite with -update):\n%s", difference(string(text), got))
			}
			if again := play(t, string(text), true); again != got {
				t.Errorf("a run that was put away goes on otherwise:\n%s", difference(got, again))
			}
		})
	}
}

// play runs a transcript and gives it back with the answers of the core.
func play(t *testing.T, text string, suspend bool) string {
	t.Helper()
	w := &stage{suspend: suspend, names: map[string]name{}, made: map[string]int{}, out: &strings.Builder{}}
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("so far:\n%s", w.out.String())
			panic(v)
		}
	}()
	failed := false
	for i, line := range strings.Split(strings.TrimSuffix(text, "\n"), "\n") {
		if strings.HasPrefix(line, ">") {
			continue
		}
		w.printf("%s\n", line)
		if failed {
			continue
		}
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if err := w.do(line); err != nil {
			t.Errorf("line %d: %s: %v\n%s", i+1, line, err, tail(w.out.String(), 12))
			failed = true
		}
	}
	return w.out.String()
}

// difference shows where two texts part.
func difference(want, got string) string {
	a, b := strings.Split(want, "\n"), strings.Split(got, "\n")
	i := 0
	for i < len(a) && i < len(b) && a[i] == b[i] {
		i++
	}
	from := max(0, i-4)
	show := func(lines []string) string {
		return strings.Join(lines[min(from, len(lines)):min(i+12, len(lines))], "\n")
	}
	return "--- the file\n" + show(a) + "\n--- now\n" + show(b)
}

// tail gives the last lines of a text.
func tail(s string, n int) string {
	lines := strings.Split(s, "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
