package activities

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/events/eventlog"
	"github.com/deployctl/deployctl/internal/host/runlink"
	"github.com/deployctl/deployctl/internal/host/session"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/deployctl/deployctl/internal/values/bags"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/updates"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
)

// house is a worker with a store that has one stack.
type house struct {
	t      testing.TB
	store  *statestore.Store
	acts   *Activities
	heart  *testHeart
	world  string // the directory of the toy provider's things
	env    []string
	update deployments.UpdateName
	base   int
	runs   *switchboard
	// unheard: Temporal does not accept how activities end.
	unheard bool
	mu      sync.Mutex
	tokens  [][]byte      // of the activities whose ends were not reported yet
	stop    chan struct{} // closed when the worker is asked to stop; nil: never
	// background, if not nil, is the parent of the activities' contexts.
	background context.Context
}

// testHeart accepts heartbeats until the test sets an error.
type testHeart struct {
	mu    sync.Mutex
	err   error
	beats int
	last  []any // details for the next attempt
}

func (h *testHeart) RecordActivityHeartbeat(_ context.Context, _ []byte, details ...any) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.beats++
	h.last = details
	return h.err
}

func (h *testHeart) details() []any {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.last
}

func (h *testHeart) answer(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.err = err
}

// switchboard connects programs with the current run.
type switchboard struct {
	mu  sync.Mutex
	run runlink.Runs
}

func (s *switchboard) current() runlink.Runs {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run
}

func (s *switchboard) Signal(ctx context.Context, u deployments.UpdateName, m deployments.Messages) error {
	return s.current().Signal(ctx, u, m)
}

func (s *switchboard) Poll(
	ctx context.Context, u deployments.UpdateName, p deployments.Poll,
) (deployments.Replies, error) {
	return s.current().Poll(ctx, u, p)
}

var testStack = deployments.StackName{Organization: "organization", Project: "test", Stack: "dev"}

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
	h := &house{t: t, store: store, heart: &testHeart{}, world: t.TempDir(), runs: &switchboard{}}
	h.env = []string{
		"HOME=" + t.TempDir(), "PULUMI_HOME=" + t.TempDir(), "TOY_WORLD=" + h.world,
		"PATH=" + pluginDir(t) + string(os.PathListSeparator) + os.Getenv("PATH"),
	}
	h.acts = New(Options{Runs: h.runs, Heart: h.heart, Options: session.Options{
		Store: store, Worker: "worker-1", Dir: t.TempDir(),
		Env:      []string{"AWS_SECRET_ACCESS_KEY=hidden-from-programs", "LANG=C"},
		Included: map[string][]string{"deployctl": nil},
	}})
	t.Cleanup(func() { Close(context.Background(), h.acts) })
	return h
}

// pluginDir returns a directory with the test binary under the names of plugins.
func pluginDir(t testing.TB) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"pulumi-resource-toy", "pulumi-resource-parts", "pulumi-language-scenario"} {
		if err := os.Symlink(self, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// upload stores a project and returns its bundle.
func (h *house) upload(files map[string]string) string { return h.uploadBelow(files, "") }

// uploadBelow is upload for a project whose Pulumi.yaml is in a subdirectory.
func (h *house) uploadBelow(files map[string]string, dir string) string {
	h.t.Helper()
	m := deployments.Manifest{Dir: dir}
	for path, content := range files {
		digest := digestOf([]byte(content))
		m.Files = append(m.Files, deployments.File{Path: path, Digest: digest, Mode: 0o600, Size: int64(len(content))})
		if err := h.store.Programs.PutFile(h.t.Context(), testStack, digest, []byte(content)); err != nil {
			h.t.Fatal(err)
		}
	}
	sortFiles(m.Files)
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

// submitted is a submission to a stack.
func (h *house) submitted(name deployments.StackName) *deployments.Submission {
	h.t.Helper()
	head, err := h.store.Head(h.t.Context(), name)
	if err != nil {
		h.t.Fatal(err)
	}
	return &deployments.Submission{StackID: head.ID, At: time.Now()}
}

// claim claims the next update for a request.
func (h *house) claim(r deployments.UpdateRequest) deployments.Claimed {
	h.t.Helper()
	head, err := h.store.Head(h.t.Context(), testStack)
	if err != nil {
		h.t.Fatal(err)
	}
	r.Stack, r.Submitted = testStack, h.submitted(testStack)
	if r.Kind == "" {
		r.Kind = engine.KindUp
	}
	r.Environment = append(r.Environment, h.env...)
	h.update = deployments.UpdateName{StackName: testStack, Version: strconv.Itoa(max(head.Next, 1))}
	if r.DryRun {
		h.update.Version = "p1"
	}
	claimed, err := call[deployments.Claimed](h, h.acts.ClaimStack, deployments.ClaimInput{Update: h.update, Request: r,
		Number: 1})
	if err != nil {
		h.t.Fatal(err)
	}
	h.base = claimed.Base
	return claimed
}

// play runs the program of a claimed update with a coreRun.
func (h *house) play(claimed deployments.Claimed, old []engine.State) (*coreRun, deployments.ProgramOutput, error) {
	h.t.Helper()
	run := newCoreRun(h.t, h, claimed.Goal, old)
	h.runs.mu.Lock()
	h.runs.run = run
	h.runs.mu.Unlock()
	out, err := call[deployments.ProgramOutput](h, h.acts.RunProgram, deployments.ProgramInput{
		Update: h.update, Base: h.base, Goal: claimed.Goal, Epoch: 1,
	})
	run.mu.Lock()
	answered := run.before
	run.mu.Unlock()
	<-answered
	return run, out, err
}

// settle saves the results of a run and ends the update.
func (h *house) settle(run *coreRun) deployments.UpdateInfo {
	h.t.Helper()
	_, err := call[struct{}](h, h.acts.Save, deployments.SaveInput{Update: h.update, Base: h.base, Number: 1,
		Deltas: run.deltas()})
	if err != nil {
		h.t.Fatal(err)
	}
	info, err := call[deployments.UpdateInfo](h, h.acts.CommitUpdate, deployments.CommitInput{
		Update: h.update, Base: h.base, Saves: 1, Result: engine.Result{Status: engine.StatusSucceeded},
	})
	if err != nil {
		h.t.Fatal(err)
	}
	return info
}

// call runs an activity as a worker does: its input and its result are serialised.
func call[T any](h *house, act any, in any) (T, error) {
	var suite testsuite.WorkflowTestSuite
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.RegisterActivity(h.acts)
	env.SetWorkerOptions(worker.Options{BackgroundActivityContext: h.background,
		Interceptors: []interceptor.WorkerInterceptor{&tokensOf{house: h}}})
	env.SetWorkerStopChannel(h.stop)
	if last := h.heart.details(); len(last) > 0 {
		env.SetHeartbeatDetails(last[0])
	}
	var out T
	value, err := env.ExecuteActivity(act, in)
	if !h.unheard {
		h.reported(nil)
	}
	var failed *temporal.ApplicationError
	if errors.As(err, &failed) && failed.Type() == deployments.ErrorStepFailed {
		return out, failed.Details(&out)
	}
	if err != nil {
		return out, err
	}
	if value != nil && value.HasValue() {
		err = value.Get(&out)
	}
	return out, err
}

// bag stores values with the update's codec.
func (h *house) bag(m resource.PropertyMap) engine.Bag {
	h.t.Helper()
	bag, err := h.codec().Encode(h.t.Context(), m)
	if err != nil {
		h.t.Fatal(err)
	}
	return bag
}

// values opens a bag.
func (h *house) values(bag engine.Bag) resource.PropertyMap {
	h.t.Helper()
	m, err := h.codec().Decode(h.t.Context(), bag)
	if err != nil {
		h.t.Fatal(err)
	}
	return m
}

// effects returns the lines that the toy provider has recorded.
func (h *house) effects() []string { return h.noted(effectsFile) }

// noted returns the lines that the provider has added to a file of the world.
func (h *house) noted(file string) []string {
	data, _ := os.ReadFile(filepath.Join(h.world, file))
	return strings.Fields(strings.ReplaceAll(string(data), " ", ":"))
}

// errorType returns the type of an activity's error, as a workflow sees it.
func errorType(err error) string {
	var application *temporal.ApplicationError
	if errors.As(err, &application) {
		return application.Type()
	}
	return ""
}

func (h *house) codec() *bags.Codec {
	h.t.Helper()
	codec, _, err := h.acts.valuesOf(h.t.Context(), h.update, h.base)
	if err != nil {
		h.t.Fatal(err)
	}
	return codec
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
		parts, err := h.store.Updates.ReadEvents(h.t.Context(), updates.Part{Update: h.update, Stream: stream, Number: 1},
			1000)
		if err != nil {
			h.t.Fatal(err)
		}
		for _, p := range parts {
			if _, err := eventlog.Decode(p); err != nil {
				h.t.Fatal(err)
			}
			text.Write(p)
			text.WriteByte('\n')
		}
	}
	return text.String()
}

// release ends the update's session, as after a failover to another worker.
func release(h *house) {
	h.t.Helper()
	if _, err := call[struct{}](h, h.acts.EndSession, deployments.ReleaseInput{Update: h.update}); err != nil {
		h.t.Fatal(err)
	}
}

// reclaim claims the same update again with another request.
func (h *house) reclaim(r deployments.UpdateRequest) deployments.Claimed {
	h.t.Helper()
	r.Stack, r.Kind, r.Submitted = testStack, engine.KindUp, h.submitted(testStack)
	r.Environment = append(r.Environment, h.env...)
	claimed, err := call[deployments.Claimed](h, h.acts.ClaimStack, deployments.ClaimInput{Update: h.update, Request: r,
		Number: 2})
	if err != nil {
		h.t.Fatal(err)
	}
	return claimed
}

func digestOf(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256:" + hex.EncodeToString(sum[:])
}

func sortFiles(files []deployments.File) {
	slices.SortFunc(files, func(a, b deployments.File) int { return strings.Compare(a.Path, b.Path) })
}

// tokensOf notes the task token of each activity that has ended.
type tokensOf struct {
	interceptor.WorkerInterceptorBase
	house *house
}

func (i *tokensOf) InterceptActivity(
	_ context.Context, next interceptor.ActivityInboundInterceptor,
) interceptor.ActivityInboundInterceptor {
	return &noting{interceptor.ActivityInboundInterceptorBase{Next: next}, i.house}
}

type noting struct {
	interceptor.ActivityInboundInterceptorBase
	house *house
}

func (n *noting) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	defer func() {
		n.house.mu.Lock()
		defer n.house.mu.Unlock()
		n.house.tokens = append(n.house.tokens, activity.GetInfo(ctx).TaskToken)
	}()
	return n.Next.ExecuteActivity(ctx, in)
}

// reported tells the worker whether Temporal has accepted the ends of its activities.
func (h *house) reported(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, token := range h.tokens {
		Reported(h.acts, token, err)
	}
	h.tokens = nil
}
