//go:build record

package workflows

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/temporalproto"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// scene is one history to record: how its fake world behaves, and what is done to it from outside.
type scene struct {
	name     string
	settings Settings
	names    []string // what the program registers
	base     []engine.State
	prepare  func(*stage)
	cancel   string // cancel when this resource's step begins
	carry    bool   // registrations go with polls
	handOver bool   // steps answer the program themselves
	asksOn   bool   // and carry its next request
}

// stage is a scene being played by activities on a real server.
type stage struct {
	*world
	scene
	update deployments.UpdateName
	client client.Client
	lost   int    // epochs that are lost after their first reply
	fails  string // the resource whose step fails

	handed chan engine.Reply         // replies that steps hand over
	next   chan deployments.Messages // what steps carry
}

func (s *stage) ReadHead(context.Context, deployments.StackName) (deployments.Head, error) {
	return deployments.Head{StackID: "recorded", Version: s.update.Number() - 1, Next: s.update.Number()}, nil
}

func (s *stage) ClaimStack(_ context.Context, in deployments.ClaimInput) (deployments.Claimed, error) {
	goal := engine.Goal{
		Kind: engine.KindUp, Version: in.Update.Number(), Organization: theStack.Organization,
		Project: theStack.Project,
		Stack:   in.Update.Stack, Parallel: 4,
	}
	return deployments.Claimed{
		Worker: in.Update.Stack + "-" + strconv.Itoa(in.Number), Base: in.Update.Number() - 1, Goal: goal,
		HasProgram: true,
	}, nil
}

func (s *stage) ReadHeaders(context.Context, deployments.HeadersInput) (deployments.Headers, error) {
	return deployments.Headers{States: s.scene.base}, nil
}

func (s *stage) PingWorker(context.Context) error { return nil }

func (s *stage) EndSession(context.Context, deployments.ReleaseInput) error { return nil }

func (s *stage) CommitUpdate(_ context.Context, in deployments.CommitInput) (deployments.UpdateInfo, error) {
	return deployments.UpdateInfo{Update: in.Update, Status: string(in.Result.Status), Error: in.Result.Error}, nil
}

func (s *stage) PlanResources(ctx context.Context, in deployments.PlanInput) (deployments.PlanOutput, error) {
	out, err := s.world.PlanResources(ctx, in)
	for i := range out.Plans {
		if out.Plans[i].Diff.Change == engine.ChangeUpdate {
			out.Plans[i].Diff = engine.Diff{Change: engine.ChangeReplace, ReplaceKeys: []string{"name"}}
		}
	}
	return out, err
}

func (s *stage) Step(ctx context.Context, in deployments.StepInput) (out deployments.StepOutput, err error) {
	switch name := in.Step.URN.Name(); name {
	case s.fails:
		out.StepFinished = engine.StepFinished{Op: in.Step.Op, Outcome: engine.OutcomeFailed, Error: "quota exceeded"}
		return out, temporal.NewApplicationErrorWithOptions(out.Error, deployments.ErrorStepFailed,
			temporal.ApplicationErrorOptions{
				NonRetryable: true, Details: []any{out},
			})
	case s.cancel:
		id := deployments.UpdateWorkflowID(s.update)
		if err := s.client.SignalWorkflow(ctx, id, "", deployments.SignalCancel, engine.Cancelled{}); err != nil {
			return out, err
		}
	}
	out.StepFinished, err = s.world.Step(ctx, in)
	if err != nil || !s.handOver || in.Step.Answer == nil {
		return out, err
	}
	out.Answered = true
	s.handed <- *in.Step.Answer
	if s.asksOn {
		if next, more := <-s.next; more {
			out.Messages = &next
		}
	}
	return out, nil
}

// RunProgram registers the scene's resources, each once the one before has its reply.
func (s *stage) RunProgram(ctx context.Context, in deployments.ProgramInput) (deployments.ProgramOutput, error) {
	run, sent := deployments.RunWorkflowID(s.update), 0
	next := func(m deployments.Message) deployments.Messages {
		sent++
		return deployments.Messages{Epoch: in.Epoch, First: sent, Items: []deployments.Message{m}}
	}
	say := func(m deployments.Message) error {
		return s.client.SignalWorkflow(ctx, run, "", deployments.SignalMessages, next(m))
	}
	if err := say(deployments.Message{Started: &engine.RunStarted{Epoch: in.Epoch}}); err != nil {
		return deployments.ProgramOutput{}, err
	}
	cursor := 0
	for i, name := range s.names {
		m := deployments.Message{Registered: &engine.Registered{
			Epoch: in.Epoch, Seq: i + 1, Registration: engine.Registration{
				Type: theType, Name: name, Custom: true, Inputs: engine.Bag{Digest: name + "'"}, Digest: name,
			},
		}}
		poll := deployments.Poll{Epoch: in.Epoch}
		switch {
		case s.carry:
			carried := next(m)
			poll.Messages = &carried
		case s.asksOn && i > 0:
			s.next <- next(m)
		default:
			if err := say(m); err != nil {
				return deployments.ProgramOutput{}, err
			}
		}
		if s.handOver {
			if r := <-s.handed; r.Seq != i+1 {
				return deployments.ProgramOutput{}, fmt.Errorf("the answer to %d is one to %d", i+1, r.Seq)
			}
			continue
		}
		failed, done := false, false
		for cursor <= i && !done {
			poll.Cursor = cursor
			replies, err := s.poll(ctx, poll)
			if err != nil {
				return deployments.ProgramOutput{}, err
			}
			cursor, done = replies.Cursor, replies.Done
			failed = slices.ContainsFunc(replies.Replies, func(r engine.Reply) bool {
				return r.Result != engine.ResultSuccess
			})
		}
		if failed {
			return deployments.ProgramOutput{}, say(deployments.Message{
				Exited: &engine.ProgramExited{Epoch: in.Epoch, Error: "a resource failed", Bailed: true}})
		}
		if in.Epoch <= s.lost {
			return deployments.ProgramOutput{Lost: true}, nil
		}
	}
	if s.asksOn {
		close(s.next)
	}
	return deployments.ProgramOutput{}, say(deployments.Message{Exited: &engine.ProgramExited{Epoch: in.Epoch}})
}

// poll polls until it is answered: a poll that a run accepted before it continued as new fails for good.
func (s *stage) poll(ctx context.Context, p deployments.Poll) (replies deployments.Replies, err error) {
	for ctx.Err() == nil {
		var handle client.WorkflowUpdateHandle
		handle, err = s.client.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
			WorkflowID: deployments.RunWorkflowID(s.update), UpdateName: deployments.UpdatePoll, Args: []any{p},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		})
		if err == nil {
			if err = handle.Get(ctx, &replies); err == nil {
				return replies, nil
			}
		}
	}
	return replies, errors.Join(err, ctx.Err())
}

func scenes() []scene {
	old := func(name, digest string) engine.State {
		return engine.State{
			Key: snapshot.BaseKey(0), URN: "urn:pulumi:replacement::shop::fake:index:Thing::" + "thing-a", Type: theType,
			Custom: true,
			ID:     "id-" + name, Inputs: engine.Bag{Digest: digest}, Outputs: engine.Bag{Digest: digest},
		}
	}
	return []scene{
		{name: "create", names: names(3)},
		{name: "failure", names: names(3), prepare: func(s *stage) { s.fails = "thing-b" }},
		{name: "cancel", names: names(3), cancel: "thing-b"},
		{name: "second-epoch", names: names(3), prepare: func(s *stage) { s.lost = 1 }},
		{name: "continue-as-new", names: names(4), settings: Settings{ForceContinue: 2}},
		{name: "replacement", names: names(1), base: []engine.State{old("thing-a", "old")}},
		{name: "questions-with-polls", names: names(3), carry: true},
		{name: "answered-by-steps", names: names(3), handOver: true},
		{name: "questions-with-results", names: names(3), handOver: true, asksOn: true},
		{name: "unknown-outcome", names: names(2), prepare: func(s *stage) {
			s.outcomes["thing-b"] = func(n int) error {
				if n == 1 {
					return errUnknown
				}
				return nil
			}
		}},
		{name: "lost-worker", names: names(2), prepare: func(s *stage) { s.dead["lost-worker-1"] = true }},
	}
}

// TestRecord runs every scene on the embedded server and stores the histories of its workflows:
//
//	make build && PATH="$PWD/bin:$PATH" go test -tags record -run TestRecord$ ./workflows
func TestRecord(t *testing.T) {
	server := recordingServer(t)
	for _, scene := range scenes() {
		t.Run(scene.name, func(t *testing.T) { record(t, server, scene) })
	}
	t.Run("single", func(t *testing.T) { recordSingle(t, server) })
}

// recordingServer runs the Temporal server of deployctl-embedded, in a process of its own.
func recordingServer(t *testing.T) devserver.Status {
	program, err := exec.LookPath("deployctl-embedded")
	if err != nil {
		t.Fatal("deployctl-embedded is not on PATH: run make build, and put bin there")
	}
	home := t.TempDir()
	ctx, stop := context.WithCancel(context.Background())
	cmd := exec.CommandContext(ctx, program, "dev", "temporal", "--home", home)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = cmd.Wait()
	})
	server := devserver.Status{Namespace: devserver.Namespace,
		TemporalCredentials: filepath.Join(home, "data", "temporal.pem")}
	waittest.Until(t, "Temporal answers", func() bool {
		var ports devserver.Ports
		text, err := os.ReadFile(filepath.Join(home, "data", "ports.json"))
		if err != nil || json.Unmarshal(text, &ports) != nil {
			return false
		}
		server.TemporalAddress = net.JoinHostPort("127.0.0.1", strconv.Itoa(ports.Temporal))
		c, err := dialRecording(t.Context(), server)
		if err != nil {
			return false
		}
		defer c.Close()
		have, err := c.OperatorService().ListSearchAttributes(t.Context(),
			&operatorservice.ListSearchAttributesRequest{Namespace: devserver.Namespace})
		return err == nil && len(have.GetCustomAttributes()) >= len(devserver.SearchAttributes())
	})
	return server
}

// recorderOptions are those of a worker of this revision.
func recorderOptions(activitiesAlone bool) worker.Options {
	return worker.Options{DisableWorkflowWorker: activitiesAlone, DeploymentOptions: worker.DeploymentOptions{
		Version: worker.WorkerDeploymentVersion{DeploymentName: deployments.SharedTaskQueue,
			BuildID: strconv.Itoa(Revision)}}}
}

func dialRecording(ctx context.Context, server devserver.Status) (client.Client, error) {
	config, err := devserver.TemporalTLS(server.TemporalCredentials)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, client.Options{
		HostPort: server.TemporalAddress, Namespace: server.Namespace, Identity: "recorder",
		Logger:            quiet{},
		ConnectionOptions: client.ConnectionOptions{TLS: config},
	})
}

func recordingClient(ctx context.Context, t *testing.T, server devserver.Status) client.Client {
	c, err := dialRecording(ctx, server)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func record(t *testing.T, server devserver.Status, sc scene) {
	ctx := waittest.Context(t)
	c := recordingClient(ctx, t, server)
	stack := theStack
	stack.Stack = sc.name
	version := 1 + min(1, len(sc.base))
	s := &stage{handed: make(chan engine.Reply, 1), next: make(chan deployments.Messages, 1), world: newWorld(),
		scene: sc, client: c, update: deployments.UpdateName{StackName: stack, Version: strconv.Itoa(version)}}
	if sc.prepare != nil {
		sc.prepare(s)
	}
	for _, queue := range []string{deployments.SharedTaskQueue, sc.name + "-1", sc.name + "-2"} {
		w := worker.New(c, queue, recorderOptions(queue != deployments.SharedTaskQueue))
		if queue == deployments.SharedTaskQueue {
			New(sc.settings).Register(w)
		}
		w.RegisterActivity(s)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	request := deployments.UpdateRequest{Stack: stack, RequestID: "recorded", Kind: engine.KindUp,
		Initiator: "recorder", Submitted: &deployments.Submission{StackID: "recorded", At: time.Now()}}
	handle, err := c.UpdateWithStartWorkflow(ctx, client.UpdateWithStartWorkflowOptions{
		StartWorkflowOperation: c.NewWithStartWorkflowOperation(client.StartWorkflowOptions{
			ID: deployments.StackWorkflowID(stack), TaskQueue: deployments.SharedTaskQueue,
			WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
			TypedSearchAttributes:    StackAttributes(stack),
		}, deployments.WorkflowStack, deployments.StackInput{Stack: stack}),
		UpdateOptions: client.UpdateWorkflowOptions{
			UpdateName: deployments.UpdateSubmit, Args: []any{request},
			WaitForStage: client.WorkflowUpdateStageCompleted,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var accepted deployments.Accepted
	if err := handle.Get(ctx, &accepted); err != nil || accepted.Update != s.update {
		t.Fatalf("accepted %+v, %v", accepted, err)
	}
	var info deployments.UpdateInfo
	for unknown := new(serviceerror.NotFound); ; { // the stack starts it after it has answered
		err := c.GetWorkflow(ctx, deployments.UpdateWorkflowID(s.update), "").Get(ctx, &info)
		if ended, ok := InfoOf(err); ok {
			info, err = ended, nil
		}
		if err == nil {
			break
		}
		if !errors.As(err, &unknown) {
			t.Fatal(err)
		}
	}
	t.Logf("%s: %s %s: rounds %v on %v", sc.name, info.Status, info.Error, s.rounds, s.queues)
	keep(t, c, sc.name+".stack", deployments.StackWorkflowID(stack), "")
	keep(t, c, sc.name+".update", deployments.UpdateWorkflowID(s.update), "")
	runs := chain(t, c, deployments.RunWorkflowID(s.update))
	for i, run := range runs {
		keep(t, c, fmt.Sprintf("%s.run-%d", sc.name, i+1), deployments.RunWorkflowID(s.update), run)
	}
}

// chain returns the run ids of a workflow over its continue-as-new, the first one first.
func chain(t *testing.T, c client.Client, id string) []string {
	var out []string
	for run := ""; ; {
		events := history(t, c, id, run).GetEvents()
		started := events[0].GetWorkflowExecutionStartedEventAttributes()
		if run == "" {
			run = started.GetOriginalExecutionRunId()
		}
		out = append([]string{run}, out...)
		if run = started.GetContinuedExecutionRunId(); run == "" {
			return out
		}
	}
}

func history(t *testing.T, c client.Client, id, run string) *historypb.History {
	t.Helper()
	h := &historypb.History{}
	for it := c.GetWorkflowHistory(t.Context(), id, run, false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT); it.HasNext(); {
		e, err := it.Next()
		if err != nil {
			t.Fatal(err)
		}
		h.Events = append(h.Events, e)
	}
	return h
}

func keep(t *testing.T, c client.Client, name, id, run string) {
	t.Helper()
	data, err := temporalproto.CustomJSONMarshalOptions{}.Marshal(history(t, c, id, run))
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(histories, strconv.Itoa(Revision))
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	z := gzip.NewWriter(&out)
	if _, err := z.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(z.Close(), os.WriteFile(filepath.Join(dir, name+".json.gz"), []byte(out.String()),
		0o644)); err != nil {
		t.Fatal(err)
	}
}
