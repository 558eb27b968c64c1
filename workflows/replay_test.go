package workflows

import (
	"compress/gzip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
)

// histories are those of recorded workflows, a directory for each Revision, made by TestRecord.
const histories = "testdata/histories"

// scenesWanted are recorded of every revision.
var scenesWanted = []string{
	"create", "failure", "cancel", "second-epoch", "continue-as-new", "replacement", "unknown-outcome", "lost-worker",
}

func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(histories, "*", "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no recorded histories: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".json.gz"), func(t *testing.T) {
			if err := replay(file); err != nil {
				t.Errorf("%v\nThe workflows no longer do what they did. Keep the old way behind workflow.GetVersion.", err)
			}
		})
	}
}

func replay(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return err
	}
	h, err := client.HistoryFromJSON(z, client.HistoryJSONOptions{})
	if err != nil {
		return err
	}
	r := worker.NewWorkflowReplayer()
	New(Settings{}).Register(r)
	return r.ReplayWorkflowHistory(quiet{}, h)
}

func TestThisRevisionHasItsHistories(t *testing.T) {
	for _, scene := range scenesWanted {
		for _, workflow := range []string{"stack", "update", "run-1"} {
			file := filepath.Join(histories, strconv.Itoa(Revision), scene+"."+workflow+".json.gz")
			if _, err := os.Stat(file); err != nil {
				t.Errorf("record it with `go test -tags record -run TestRecord$ ./workflows`: %v", err)
			}
		}
	}
	if dirs, _ := os.ReadDir(histories); !slices.ContainsFunc(dirs, func(d os.DirEntry) bool { return d.Name() == strconv.Itoa(Revision) }) {
		t.Errorf("revision %d was never recorded", Revision)
	}
}
