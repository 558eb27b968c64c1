package workflows

import (
	"bytes"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"

	"github.com/deployctl/deployctl/deployments"
)

// A reset replays a history as another run, up to the task where it ends.
func TestARunThatWasResetEndsWithoutAResult(t *testing.T) {
	for _, scene := range []string{"create.run-1", "continue-as-new.run-1", "replacement.run-1"} {
		data, err := recorded(filepath.Join(histories, strconv.Itoa(Revision), scene+".json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		h, err := client.HistoryFromJSON(bytes.NewReader(data), client.HistoryJSONOptions{})
		if err != nil {
			t.Fatal(err)
		}
		err = newReplayer(t).ReplayWorkflowHistoryWithOptions(quiet{}, h, worker.ReplayWorkflowHistoryOptions{
			OriginalExecution: workflow.Execution{RunID: "another-run"},
		})
		if err == nil || !strings.Contains(err.Error(), deployments.ResetText) {
			t.Errorf("%s ends with %.300v", scene, err)
		}
	}
}
