package deployments

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestAnUpdateWhoseTimesAreNotKnownTookNoTime(t *testing.T) {
	began := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, c := range map[string]struct {
		start, end time.Time
		want       time.Duration
	}{
		"one that has ended":      {began, began.Add(time.Minute), time.Minute},
		"one that runs":           {start: began},
		"one without a beginning": {end: began},
		"one without any time":    {},
		"one of two other clocks": {began, began.Add(-time.Second), 0},
	} {
		if took := (UpdateInfo{Started: c.start, Ended: c.end}).Took(); took != c.want {
			t.Errorf("%s took %s", name, took)
		}
	}
}

// TestNothingElseSubtractsTheTimesOfAnUpdate looks through the module: either time may be zero.
func TestNothingElseSubtractsTheTimesOfAnUpdate(t *testing.T) {
	subtracted := regexp.MustCompile(`\.Ended\.Sub\(`)
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{"testdata", "node_modules", ".git", "bin"}, entry.Name()):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		source, err := os.ReadFile(path)
		if n := len(subtracted.FindAll(source, -1)); n > 0 && filepath.Base(path) != "update_info.go" {
			t.Errorf("%s subtracts the times of an update: use Took", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
