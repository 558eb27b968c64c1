package workflows

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/client"

	"github.com/deployctl/deployctl/deployments"
)

// histories are those of recorded workflows, a directory for each Revision, made by TestRecord.
const histories = "testdata/histories"

func TestRecordedHistoriesReplay(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(histories, "*", "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no recorded histories: %v", err)
	}
	for _, file := range files {
		t.Run(sceneOf(file), func(t *testing.T) {
			if err := replay(t, file, filepath.Base(filepath.Dir(file))); err != nil {
				t.Errorf("%v\nThe workflows no longer do what they did. Keep the old way behind workflow.GetVersion.",
					err)
			}
		})
	}
}

// recorded returns a history as the JSON in which it was recorded.
func recorded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// sceneOf returns the revision of a recorded history, and the workflow that it is of.
func sceneOf(file string) string {
	return filepath.Base(filepath.Dir(file)) + "/" + strings.TrimSuffix(filepath.Base(file), ".json.gz")
}

// replay replays a history as if workers of a build had executed the workflow: those of revision 1 were recorded by
// workers without one.
func replay(t *testing.T, file, build string) error {
	t.Helper()
	data, err := recorded(file)
	if err != nil {
		return err
	}
	h, err := client.HistoryFromJSON(bytes.NewReader(data), client.HistoryJSONOptions{})
	if err != nil {
		return err
	}
	for _, e := range h.Events {
		if done := e.GetWorkflowTaskCompletedEventAttributes(); done != nil {
			done.WorkerVersion = &commonpb.WorkerVersionStamp{BuildId: build} //nolint:staticcheck // as in the history
			done.DeploymentVersion = nil
		}
	}
	return newReplayer(t).ReplayWorkflowHistory(quiet{}, h)
}

// A Run that continues as new may come to another build than its Update, whose host may know the former names alone.
func TestARunCallsItsHostByTheNamesOfItsUpdate(t *testing.T) {
	files, err := filepath.Glob(filepath.Join(histories, "1", "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no recorded histories: %v", err)
	}
	for _, file := range files {
		err := replay(t, file, strconv.Itoa(deployments.NamesSince))
		if of := sceneOf(file); strings.Contains(of, ".run-") && err != nil {
			t.Errorf("%s: of an Update that calls activities by their former names: %v", of, err)
		} else if strings.HasSuffix(of, ".update") && err == nil {
			t.Errorf("%s: a workflow that this revision begins has the former names", of)
		}
	}
}

// happened describes each scene: the workflow, and a regular expression that its history matches, payloads
// decoded.
var happened = map[string]struct{ workflow, what string }{
	"create":                 {"run-1", `(?s)("Step".*){3}`},
	"failure":                {"run-1", `quota exceeded`},
	"cancel":                 {"run-1", `"status":"cancelled"`},
	"second-epoch":           {"run-1", `"started":{"epoch":2`},
	"continue-as-new":        {"run-1", `EVENT_TYPE_WORKFLOW_EXECUTION_CONTINUED_AS_NEW`},
	"replacement":            {"run-1", `(?s)"kind":"create-replacement".*"kind":"delete-replaced"`},
	"unknown-outcome":        {"run-1", `(?s)UnknownOutcome.*"Settle"`},
	"lost-worker":            {"update", `(?s)("ClaimStack".*){2}`},
	"questions-with-polls":   {"run-1", `"messages":{"epoch":1,"first":3,"items":\[{"registered"`},
	"questions-with-results": {"run-1", `"answered":true,"attempt":2,"messages":{"epoch":1`},
	"answered-by-steps":      {"run-1", `"answered":true`},
	"scheduled":              {"run", `(?s)("SubmitUpdate".*"AwaitUpdate".*"ReportDrift".*){2}"drifted":2`},
	"scheduled-failure":      {"run", `7 failed: quota exceeded`},
	"scheduled-removal":      {"run", `(?s)"SubmitUpdate".*"AwaitUpdate".*"RemoveStack"`},
	"deployment-drift":       {"run", `(?s)"PrepareDeployment".*("SubmitDeployment".*"ReportDrift".*){2}"EndDeployment"`},
	"deployment-removal":     {"run", `(?s)"EndDeployment".*TIMER_FIRED.*"RemoveDestroyedStack"`},
	"deployment-cancel":      {"run", `(?s)CANCEL_REQUESTED.*"cancel":true.*"EndDeployment".*dev/7 was cancelled`},
	"notify":                 {"run", `"attempt":2`},
	"notify-refused":         {"run", `(?s)no public address.*has not accepted the event`},
	"lease":                  {"run", `(?s)"renew".*"complete".*"EndLease"`},
	"lease-expired":          {"run", `(?s)TIMER_FIRED.*its lease expired`},
}

func TestHistoriesHoldWhatTheyAreNamedFor(t *testing.T) {
	payload := regexp.MustCompile(`"data": ?"([A-Za-z0-9+/=]+)"`)
	for scene, h := range happened {
		data, err := recorded(filepath.Join(histories, strconv.Itoa(Revision), scene+"."+h.workflow+".json.gz"))
		if err != nil {
			t.Fatal(err)
		}
		text := payload.ReplaceAllFunc(data, func(p []byte) []byte {
			decoded, err := base64.StdEncoding.DecodeString(string(payload.FindSubmatch(p)[1]))
			if err != nil {
				t.Fatal(err)
			}
			return decoded
		})
		if !regexp.MustCompile(h.what).Match(text) {
			t.Errorf("%s: nothing in its %s matches %s", scene, h.workflow, h.what)
		}
	}
}

func TestThisRevisionHasItsHistories(t *testing.T) {
	for scene, h := range happened {
		workflows := []string{"stack", "update", "run-1"}
		if h.workflow == "run" { // it is one workflow, such as a run of a schedule
			workflows = []string{"run"}
		}
		for _, workflow := range workflows {
			file := filepath.Join(histories, strconv.Itoa(Revision), scene+"."+workflow+".json.gz")
			if _, err := os.Stat(file); err != nil {
				t.Errorf("record it with `go test -tags record -run TestRecord$ ./workflows`: %v", err)
			}
		}
	}
	if dirs, _ := os.ReadDir(histories); !slices.ContainsFunc(dirs,
		func(d os.DirEntry) bool { return d.Name() == strconv.Itoa(Revision) }) {
		t.Errorf("revision %d was never recorded", Revision)
	}
}
