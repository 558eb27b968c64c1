package engine_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A delta that is applied elsewhere would not be saved, and the commit would not have it.
func TestTheSnapshotChangesInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	var calls []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for range strings.Count(string(source), "snap"+".Apply(") {
			calls = append(calls, file)
		}
	}
	if len(calls) != 1 || calls[0] != "run.go" {
		t.Errorf("deltas are applied in %v; Run.change in run.go alone may: it records them", calls)
	}
}
