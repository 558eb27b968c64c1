package session

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/settle/stackkeys"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/access"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/updates"
)

var testStack = deployments.StackName{Organization: "organization", Project: "test", Stack: "dev"}

// useProfile is the configuration of a stack that uses the profile aws.
var useProfile = map[string]deployments.ConfigValue{stackkeys.Profile: {Value: "aws"}}

// house has the sessions of a worker, for one stack.
type house struct {
	t        testing.TB
	store    *statestore.Store
	sessions *Sessions
	env      []string
	world    string // a directory
	update   deployments.UpdateName
	request  deployments.UpdateRequest
	begun    int // updates
}

func newHouse(t testing.TB) *house {
	t.Helper()
	return newHouseOn(t, &bucket.Memory{})
}

func newHouseOn(t testing.TB, objects bucket.Objects) *house {
	t.Helper()
	store, err := statestore.New(objects, statestore.Options{Master: bytes.Repeat([]byte{7}, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.CreateStack(t.Context(), testStack, nil); err != nil {
		t.Fatal(err)
	}
	h := &house{t: t, store: store, world: t.TempDir(), env: []string{
		"HOME=" + t.TempDir(), "PULUMI_HOME=" + t.TempDir(), "PATH=" + os.Getenv("PATH"),
	}}
	h.sessions = New(Options{Store: store, Worker: "worker-1", Dir: t.TempDir(), StateMemory: mempool.New(1 << 30)})
	t.Cleanup(func() { h.sessions.Close(context.Background()) })
	return h
}

// upload stores a project and returns its bundle.
func (h *house) upload(files map[string]string) string { return h.uploadBelow(files, "") }

// uploadBelow is upload for a project whose Pulumi.yaml is in a subdirectory.
func (h *house) uploadBelow(files map[string]string, dir string) string {
	h.t.Helper()
	m := deployments.Manifest{Dir: dir}
	for path, content := range files {
		sum := sha256.Sum256([]byte(content))
		digest := "sha256:" + hex.EncodeToString(sum[:])
		m.Files = append(m.Files, deployments.File{Path: path, Digest: digest, Mode: 0o600, Size: int64(len(content))})
		if err := h.store.Programs.PutFile(h.t.Context(), testStack, digest, []byte(content)); err != nil {
			h.t.Fatal(err)
		}
	}
	slices.SortFunc(m.Files, func(a, b deployments.File) int { return strings.Compare(a.Path, b.Path) })
	bundle, err := h.store.Programs.PutManifest(h.t.Context(), testStack, m)
	if err != nil {
		h.t.Fatal(err)
	}
	return bundle
}

// scenarioProject returns the files of a project whose program is a scenario.
func scenarioProject(script string) map[string]string {
	return map[string]string{
		"Pulumi.yaml": "name: test\nruntime: {name: scenario}\n", "scenario.yaml": script,
	}
}

// claim opens the session of another update, with what it has of the profile aws if its configuration names that.
func (h *house) claim(r deployments.UpdateRequest) *Session {
	h.t.Helper()
	h.begun++
	h.update = deployments.UpdateName{StackName: testStack, Version: strconv.Itoa(h.begun)}
	if r.Stack, r.Environment = testStack, append(r.Environment, h.env...); r.Kind == "" {
		r.Kind = engine.KindUp
	}
	if r.Config[stackkeys.Profile].Value != "" {
		p, err := h.store.Access.UseProfile(h.t.Context(), nil, testStack, access.ProfileUse{Name: "aws"})
		if err != nil {
			h.t.Fatal(err)
		}
		r.Profile = p.Pin()
	}
	h.request = r
	return h.reopen()
}

// reopen opens the session of the same update, again if it has ended.
func (h *house) reopen() *Session {
	h.t.Helper()
	s, err := h.sessions.Open(h.t.Context(), h.update, 0, h.request, false)
	if err != nil {
		h.t.Fatal(err)
	}
	return s
}

// release ends the session of the update.
func release(h *house) { h.sessions.End(h.t.Context(), h.update) }

// setProfile sets variables of the profile aws, which is for stacks.
func (h *house) setProfile(stacks []string, set ...deployments.ProfileVariable) {
	h.t.Helper()
	_, err := h.store.Access.ChangeProfile(h.t.Context(), deployments.ProfileChange{
		Organization: testStack.Organization, Name: "aws", Stacks: &stacks, Set: set})
	if err != nil {
		h.t.Fatal(err)
	}
}

// log returns the update's event log, as text.
func (h *house) log() string {
	h.t.Helper()
	streams, err := h.store.Updates.Streams(h.t.Context(), h.update)
	if err != nil {
		h.t.Fatal(err)
	}
	var text strings.Builder
	for _, stream := range streams {
		parts, err := h.store.Updates.ReadEvents(h.t.Context(),
			updates.Part{Update: h.update, Stream: stream, Number: 1}, 100)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, p := range parts {
			text.Write(p)
		}
	}
	return text.String()
}
