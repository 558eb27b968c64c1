//go:build unix

package attack

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	api "github.com/deployctl/deployctl/api/deployctl/v1"
	"github.com/deployctl/deployctl/e2e/harness"
)

// leaseAttacks are those of a client that executes updates itself, as the stock CLI does: it holds a lease, and writes
// checkpoints, journals and events by the token of that.
var leaseAttacks = []attack{
	{"lease/malformed-states", malformedLeaseStates},
	{"lease/malformed-journals", malformedJournals},
	{"lease/malformed-events", malformedEvents},
	{"lease/another-place", anotherPlace},
	{"lease/late-writes", lateWrites},
	{"lease/removed-token", removedToken},
	{"lease/renewed-preview", renewedPreview},
	{"lease/someone-elses-discard", someoneElsesDiscard},
	{"lease/undone-creation", undoneCreation},
	{"lease/costly-values", costlyValues},
	{"lease/someone-elses-preview", someoneElsesPreview},
	{"member/asked-members", askedMembers},
}

// lease is an update or preview that a client executes.
type lease struct {
	f     *field
	path  string // of the update, below the address
	token string
}

// says makes a call to the Pulumi Service API, and returns the status and the text of the answer.
func (f *field) says(t *testing.T, method, path, authorization, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(patient(t), method, f.apart().Pulumi+path, strings.NewReader(body))
	harness.Must(t, err)
	r.Header.Set("Authorization", authorization)
	r.Header.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(r)
	harness.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	harness.Must(t, err)
	return answer.StatusCode, string(text)
}

// begin starts an update, or a preview, of the stack dev of a project, as whoever holds a token.
func (f *field) begin(t *testing.T, token, project, kind string) *lease {
	t.Helper()
	path := "/api/stacks/org/" + project + "/dev/" + kind
	var made struct{ UpdateID string }
	status, text := f.says(t, http.MethodPost, path, "token "+token, `{}`)
	if err := json.Unmarshal([]byte(text), &made); err != nil || status != http.StatusOK {
		t.Fatalf("%s is answered %d: %s", path, status, text)
	}
	path += "/" + made.UpdateID
	var started struct{ Token string }
	status, text = f.says(t, http.MethodPost, path, "token "+token, `{"journalVersion":1}`)
	if err := json.Unmarshal([]byte(text), &started); err != nil || status != http.StatusOK {
		t.Fatalf("%s is answered %d: %s", path, status, text)
	}
	return &lease{f, path, started.Token}
}

// does writes something by the lease, and returns the status and the text of the answer.
func (l *lease) does(t *testing.T, method, what, body string) (int, string) {
	t.Helper()
	return l.f.says(t, method, l.path+"/"+what, "update-token "+l.token, body)
}

// must is does of what has to be accepted.
func (l *lease) must(t *testing.T, method, what, body string) {
	t.Helper()
	if status, text := l.does(t, method, what, body); status/100 != 2 {
		t.Errorf("%s is answered %d: %s", what, status, text)
	}
}

// refused is does of what must not be accepted, and is refused with a sentence.
func (l *lease) refused(t *testing.T, method, what, body string) {
	t.Helper()
	if status, text := l.does(t, method, what, body); status/100 != 4 || !strings.Contains(text, `"message"`) {
		t.Errorf("%s of %.200s is answered %d: %s", what, body, status, text)
	}
}

// complete ends the update with success.
func (l *lease) complete(t *testing.T) {
	t.Helper()
	l.must(t, http.MethodPost, "complete", `{"status":"succeeded"}`)
}

// prey makes a project with a stack whose state has resources, and returns the text of its checkpoint. Nothing runs for
// it: the resources are of no provider.
func (f *field) prey(t *testing.T, project string) (tool *harness.Tool, token string, deployment map[string]any) {
	t.Helper()
	a := f.apart()
	tool = &harness.Tool{Path: a.tool.Path, Dir: t.TempDir(), Env: a.Env}
	harness.Files{"Pulumi.yaml": "name: " + project + "\nruntime: scenario\n", "scenario.yaml": "steps: []\n"}.Write(t,
		tool.Dir)
	tool.Must(t, "stack", "init", "org/"+project+"/dev")
	token = strings.TrimSpace(tool.Must(t, "token", "create", project, "--role", "deployer", "--organization", "org"))
	urn := func(kind, name string) string { return "urn:pulumi:dev::" + project + "::" + kind + "::" + name }
	stack := urn("pulumi:pulumi:Stack", project+"-dev")
	deployment = map[string]any{
		"manifest": map[string]any{"time": "2026-01-02T03:04:05Z", "magic": "", "version": ""},
		"resources": []any{
			map[string]any{"urn": stack, "custom": false, "type": "pulumi:pulumi:Stack"},
			map[string]any{"urn": urn("own:index:Part", "one"), "custom": false, "type": "own:index:Part", "parent": stack,
				"inputs": map[string]any{"a": "b"}, "outputs": map[string]any{"a": "b"}},
			map[string]any{"urn": urn("own:index:Part", "two"), "custom": false, "type": "own:index:Part", "parent": stack,
				"dependencies": []any{urn("own:index:Part", "one")}},
		},
	}
	return tool, token, deployment
}

// checkpoint is the body that writes a deployment.
func checkpoint(t *testing.T, deployment any) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"isInvalid": false, "version": 3, "deployment": deployment})
	harness.Must(t, err)
	return string(text)
}

// holds makes sure that a stack can be used, and that its state has so many resources.
func holds(t *testing.T, tool *harness.Tool, resources int) {
	t.Helper()
	var exported struct {
		Deployment struct {
			Resources []json.RawMessage `json:"resources"`
			Pending   []json.RawMessage `json:"pending_operations"`
		} `json:"deployment"`
	}
	harness.Must(t, json.Unmarshal([]byte(tool.Must(t, "stack", "export")), &exported))
	if n := len(exported.Deployment.Resources); n != resources || len(exported.Deployment.Pending) > 0 {
		t.Errorf("the state has %d resources, not %d, and %d pending operations", n, resources,
			len(exported.Deployment.Pending))
	}
}

// malformedLeaseStates writes checkpoints that are none: each is refused when it is written, or harms nobody. What was
// written last and is good counts in the end.
func malformedLeaseStates(t *testing.T, f *field) {
	tool, token, good := f.prey(t, "states")
	random := rand.New(rand.NewPCG(36, 1))
	for range size(2, 20) {
		l := f.begin(t, token, "states", "update")
		l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
		for range size(40, 500) {
			status, text := l.does(t, http.MethodPatch, "checkpoint", checkpoint(t, mutate(random, good)))
			if status/100 != 2 && status/100 != 4 {
				t.Errorf("a checkpoint is answered %d: %s", status, text)
			}
			for _, part := range []string{"checkpointverbatim", "checkpointdelta"} {
				body, err := json.Marshal(mutate(random, map[string]any{"version": 3, "sequenceNumber": 2, "checkpointHash": "x",
					"untypedDeployment": map[string]any{"version": 3, "deployment": good}, "deploymentDelta": []any{}}))
				harness.Must(t, err)
				if status, text := l.does(t, http.MethodPatch, part, string(body)); status/100 != 2 && status/100 != 4 {
					t.Errorf("a %s is answered %d: %s", part, status, text)
				}
			}
		}
		l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
		l.complete(t)
		holds(t, tool, 3)
	}
}

// malformedJournals writes entries that no replay can use, among good ones.
func malformedJournals(t *testing.T, f *field) {
	tool, token, good := f.prey(t, "journals")
	random := rand.New(rand.NewPCG(36, 2))
	resources, _ := good["resources"].([]any)
	entry := func(sequence int) map[string]any {
		return map[string]any{"version": 1, "kind": 1, "sequenceID": sequence, "operationID": sequence, "state": resources[0],
			"isRefresh": false}
	}
	for range size(2, 20) {
		l := f.begin(t, token, "journals", "update")
		for i := range size(60, 1000) {
			body, err := json.Marshal(map[string]any{"entries": []any{mutate(random, entry(i+1))}})
			harness.Must(t, err)
			if status, text := l.does(t, http.MethodPatch, "journalentries", string(body)); status/100 != 2 && status/100 != 4 {
				t.Errorf("an entry is answered %d: %s", status, text)
			}
		}
		l.must(t, http.MethodPost, "complete", `{"status":"failed"}`)
		tool.Must(t, "stack", "export")
	}
	l := f.begin(t, token, "journals", "update")
	l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
	l.complete(t)
	holds(t, tool, 3)
}

// malformedEvents writes events that cannot be shown: whoever looks at the update gets what can be.
func malformedEvents(t *testing.T, f *field) {
	tool, token, _ := f.prey(t, "events")
	random := rand.New(rand.NewPCG(36, 3))
	l := f.begin(t, token, "events", "update")
	good := map[string]any{"sequence": 1, "timestamp": 1, "resourcePreEvent": map[string]any{"metadata": map[string]any{
		"op": "create", "urn": "urn:pulumi:dev::events::a:b:C::d", "type": "a:b:C", "keys": []any{"x"}, "diffs": []any{"y"},
		"new":          map[string]any{"urn": "urn:pulumi:dev::events::a:b:C::d", "inputs": map[string]any{"a": "b"}},
		"detailedDiff": map[string]any{"a.b[0]": map[string]any{"diffKind": "update", "inputDiff": true}}}}}
	for range size(60, 1000) {
		body, err := json.Marshal(map[string]any{"events": []any{mutate(random, good)}})
		harness.Must(t, err)
		if status, text := l.does(t, http.MethodPost, "events/batch", string(body)); status/100 != 2 && status/100 != 4 {
			t.Errorf("an event is answered %d: %s", status, text)
		}
	}
	status, text := f.says(t, http.MethodGet, l.path+"/events", "token "+token, "")
	if status != http.StatusOK {
		t.Errorf("the events are answered %d: %s", status, text)
	}
	l.complete(t)
	if end := tool.Run(t, "attach", "1"); strings.ContainsAny(end.Said(), "\x1b\x07\x08\u009b") {
		t.Errorf("attach prints control characters: %q", end.Said())
	}
	tool.Must(t, "stack", "history")
	tool.Must(t, "up", "--yes", "--skip-preview")
}

// anotherPlace uses the token of a lease for another stack, another update, and what it is not for, and access tokens
// in place of it.
func anotherPlace(t *testing.T, f *field) {
	_, token, good := f.prey(t, "mine")
	other, othersToken, _ := f.prey(t, "yours")
	mine := f.begin(t, token, "mine", "update")
	yours := f.begin(t, othersToken, "yours", "update")
	for _, l := range []*lease{
		{f, yours.path, mine.token}, {f, strings.Replace(mine.path, "/mine/", "/yours/", 1), mine.token},
		{f, strings.Replace(mine.path, "/update/", "/destroy/", 1), yours.token}, {f, yours.path, ""}, {f, yours.path, "x"},
		{f, yours.path, token}, {f, yours.path, othersToken},
	} {
		for _, what := range []string{"checkpoint", "checkpointverbatim", "checkpointdelta", "journalentries"} {
			l.refused(t, http.MethodPatch, what, checkpoint(t, good))
		}
		for _, what := range []string{"renew_lease", "events/batch", "complete"} {
			l.refused(t, http.MethodPost, what, `{"status":"succeeded","duration":300,"events":[{"sequence":1}]}`)
		}
	}
	for _, scheme := range []string{"token ", "update-token "} {
		for _, path := range []string{"/api/user", "/api/stacks/org/yours/dev/export",
			"/api/stacks/org/mine/dev/export"} {
			if status, text := f.says(t, http.MethodGet, path, scheme+mine.token, ""); status != http.StatusUnauthorized {
				t.Errorf("%s by the token of a lease is answered %d: %s", path, status, text)
			}
		}
	}
	mine.complete(t)
	yours.complete(t)
	other.Must(t, "up", "--yes", "--skip-preview")
}

// lateWrites goes on writing after the update has ended.
func lateWrites(t *testing.T, f *field) {
	tool, token, good := f.prey(t, "late")
	l := f.begin(t, token, "late", "update")
	l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
	l.complete(t)
	holds(t, tool, 3)
	good["resources"] = []any{}
	for _, what := range []string{"checkpoint", "checkpointverbatim"} {
		l.refused(t, http.MethodPatch, what, checkpoint(t, good))
	}
	l.refused(t, http.MethodPatch, "journalentries", `{"entries":[{"version":1,"kind":1,"sequenceID":1,"operationID":1}]}`)
	l.refused(t, http.MethodPost, "renew_lease", `{"duration":300}`)
	l.refused(t, http.MethodPost, "events/batch", `{"events":[{"sequence":1,"stdoutEvent":{"message":"late"}}]}`)
	l.does(t, http.MethodPost, "complete", `{"status":"failed"}`) // repeated, it may be taken for the answer that was lost
	holds(t, tool, 3)
}

// removedToken goes on with an update whose holder's token was removed.
func removedToken(t *testing.T, f *field) {
	tool, token, good := f.prey(t, "leaver")
	l := f.begin(t, token, "leaver", "update")
	l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
	tool.Must(t, "token", "rm", "leaver")
	l.refused(t, http.MethodPost, "renew_lease", `{"duration":300}`)
	if status, _ := l.does(t, http.MethodPost, "complete", `{"status":"succeeded"}`); status/100 != 2 {
		tool.Must(t, "cancel", "--yes")
	}
	tool.Must(t, "up", "--yes", "--skip-preview")
}

// renewedPreview renews the lease of a preview after its holder's token was removed.
func renewedPreview(t *testing.T, f *field) {
	tool, token, _ := f.prey(t, "previewer")
	l := f.begin(t, token, "previewer", "preview")
	l.must(t, http.MethodPost, "renew_lease", `{"duration":300}`)
	tool.Must(t, "token", "rm", "previewer")
	l.refused(t, http.MethodPost, "renew_lease", `{"duration":300}`)
}

// someoneElsesDiscard has a deployer discard the update of a stack, and export its stored objects, which only an admin
// may.
func someoneElsesDiscard(t *testing.T, f *field) {
	tool, token, _ := f.prey(t, "discarder")
	l := f.begin(t, token, "discarder", "update")
	stacks := api.NewStacksClient(f.apart().connect(t))
	_, err := stacks.Recover(as(t.Context(), token), &api.RecoverRequest{Discard: true,
		Stack: &api.StackName{Organization: "org", Project: "discarder", Stack: "dev"}})
	answered(t, "recover --discard of a deployer", err, codes.PermissionDenied)

	l.must(t, http.MethodPatch, "journalentries", `{"entries":[{"sequenceID":1,"kind":2,"operationID":1}]}`)
	export, err := stacks.ExportRaw(as(t.Context(), token), &api.ExportRawRequest{
		Stack: &api.StackName{Organization: "org", Project: "discarder", Stack: "dev"}})
	harness.Must(t, err)
	_, err = export.Recv()
	answered(t, "a raw export of a deployer", err, codes.PermissionDenied)
	path := filepath.Join(t.TempDir(), "dev.tar")
	tool.Must(t, "stack", "export", "--raw", path)
	file, err := os.Open(path)
	harness.Must(t, err)
	defer func() { _ = file.Close() }()
	written := map[string]string{}
	for r := tar.NewReader(file); ; {
		header, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		harness.Must(t, err)
		text, err := io.ReadAll(r)
		harness.Must(t, err)
		written[header.Name] = string(text)
	}
	if !strings.Contains(written["updates/1/journal/00000001"], `"operationID":1`) ||
		!strings.Contains(written["index.json"], `"faults": []`) || written["head.json"] == "" {
		t.Errorf("the export of an admin has %v", written)
	}
	harness.Eventually(t, "the audit log has the export", func() bool {
		return strings.Contains(tool.Must(t, "audit", "--organization", "org", "--json"), "Stacks/ExportRaw")
	})
	l.complete(t)
}
