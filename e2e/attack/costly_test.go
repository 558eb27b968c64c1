//go:build unix

package attack

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// undoneCreation creates a stack with a state that turns out to be none at its end, and gives the name to another stack
// as soon as it can: only an admin may remove that with its resources.
func undoneCreation(t *testing.T, f *field) {
	tool, token, good := f.prey(t, "undone")
	l := f.begin(t, token, "undone", "update")
	l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
	l.complete(t)
	const path = "/api/stacks/org/undone"
	if status, text := f.says(t, http.MethodDelete, path+"/dev?force=true", "token "+token, ""); status !=
		http.StatusForbidden {
		t.Errorf("a deployer's removal with force is answered %d: %s", status, text)
	}
	var resources strings.Builder
	for i := range size(5_000, 90_000) {
		fmt.Fprintf(&resources, `{"urn":"urn:pulumi:x::undone::own:index:Part::%d","type":"own:index:Part"},`, i)
	}
	body := `{"stackName":"x","state":{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z","magic":"",` +
		`"version":""},"resources":[` + resources.String() + `{"urn":"not a urn","type":"x"}]}}}`
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		if status, text := f.says(t, http.MethodPost, path, "token "+token, body); status != http.StatusBadRequest {
			t.Errorf("a state that is none is answered %d: %s", status, text)
		}
	}()
	for taken := false; !taken; {
		select {
		case <-answered:
			taken = true
		default:
			if status, _ := f.says(t, http.MethodGet, path+"/x", "token "+token, ""); status == http.StatusOK {
				taken = true
				f.says(t, http.MethodDelete, path+"/x", "token "+token, "")
				f.says(t, http.MethodPost, path+"/dev/rename", "token "+token, `{"newName":"x"}`)
			}
		}
	}
	<-answered
	if status, text := f.says(t, http.MethodGet, path+"/x", "token "+token, ""); status != http.StatusNotFound {
		t.Errorf("there is a stack x: %d, %s", status, text)
	}
	holds(t, tool, 3)
}

// costlyValues sends what takes a hundred times the memory of its text once values are made of it, and has what is
// accepted of that read.
func costlyValues(t *testing.T, f *field) {
	_, token, good := f.prey(t, "costly")
	resources, _ := good["resources"].([]any)
	stack, _ := resources[0].(map[string]any)
	dense := func(n int) json.RawMessage { return json.RawMessage(`[` + strings.Repeat(`{"":0},`, n) + `0]`) }
	l := f.begin(t, token, "costly", "update")
	stack["outputs"] = map[string]any{"a": dense(size(200_000, 1_500_000))}
	l.refused(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
	stack["outputs"] = map[string]any{"a": dense(100_000)} // about as much as is accepted
	l.must(t, http.MethodPatch, "checkpoint", checkpoint(t, good))
	l.complete(t)
	var members strings.Builder
	for i := range size(100_000, 500_000) {
		fmt.Fprintf(&members, `,"%d":1`, i)
	}
	f.apart().endure(t, func(context.Context) {
		var reading sync.WaitGroup
		for range 8 {
			reading.Go(func() {
				for _, what := range []string{"export", "outputs"} {
					if status, text := f.says(t, http.MethodGet, "/api/stacks/org/costly/dev/"+what, "token "+token, ""); status !=
						http.StatusOK {
						t.Errorf("%s is answered %d: %.300s", what, status, text)
					}
				}
				if status, text := f.says(t, http.MethodPost, "/api/stacks/org/costly/dev/batch-encrypt", "token "+token,
					`{"plaintexts":[]`+members.String()+`}`); status/100 != 4 {
					t.Errorf("many members are answered %d: %.300s", status, text)
				}
			})
		}
		reading.Wait()
	})
}

// someoneElsesPreview begins a preview that another deployer has created, and whose id the list of previews shows.
func someoneElsesPreview(t *testing.T, f *field) {
	tool, token, _ := f.prey(t, "previewed")
	other := strings.TrimSpace(tool.Must(t, "token", "create", "previewed-2", "--role", "deployer", "--organization",
		"org"))
	l := f.begin(t, token, "previewed", "preview")
	const previews = "/api/stacks/org/previewed/dev/updates/latest/previews"
	status, listed := f.says(t, http.MethodGet, previews, "token "+other, "")
	id := l.path[strings.LastIndex(l.path, "/")+1:]
	if status != http.StatusOK || !strings.Contains(listed, id) {
		t.Errorf("the previews are answered %d: %s", status, listed)
	}
	if status, text := f.says(t, http.MethodPost, l.path, "token "+other, "{}"); status != http.StatusNotFound ||
		strings.Contains(text, `"token"`) {
		t.Errorf("another deployer who begins it is answered %d: %s", status, text)
	}
	l.must(t, http.MethodPost, "events/batch", `{"events":[{"sequence":1,"timestamp":1,"stdoutEvent":{"message":"own"}}]}`)
	l.must(t, http.MethodPost, "renew_lease", `{"duration":300}`)
	l.complete(t)
}
