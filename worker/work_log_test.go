package worker

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// linesOf runs an activity, and returns the lines that it logs without their times and runs.
func linesOf[In, Out any](t *testing.T, name string, in In, run func(In) (Out, error)) []string {
	t.Helper()
	var text bytes.Buffer
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(discard{})
	env := suite.NewTestActivityEnvironment()
	env.SetTestTimeout(waittest.Patience)
	env.SetWorkerOptions(worker.Options{Interceptors: []interceptor.WorkerInterceptor{
		&workLog{log: slog.New(slog.NewJSONHandler(&text, nil))}}})
	env.RegisterActivityWithOptions(func(_ context.Context, in In) (Out, error) { return run(in) },
		activity.RegisterOptions{Name: name})
	_, _ = env.ExecuteActivity(name, in)
	var lines []string
	for line := range bytes.Lines(text.Bytes()) {
		var fields map[string]any
		if err := json.Unmarshal(line, &fields); err != nil {
			t.Fatal(err)
		}
		if run, _ := fields["run"].(string); run == "" {
			t.Errorf("no run is named in %s", line)
		}
		said := []string{fmt.Sprint(fields["level"], " ", fields["msg"], ":")}
		for _, name := range []string{"time", "run", "level", "msg"} {
			delete(fields, name)
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			said = append(said, fmt.Sprintf("%s=%v", name, fields[name]))
		}
		lines = append(lines, strings.Join(said, " "))
	}
	return lines
}

type discard struct{}

func (discard) Debug(string, ...any) {}
func (discard) Info(string, ...any)  {}
func (discard) Warn(string, ...any)  {}
func (discard) Error(string, ...any) {}

func TestTheLogHasTheBeginAndTheEndOfWhatAWorkerDoes(t *testing.T) {
	stack := deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}
	u := deployments.UpdateName{StackName: stack, Version: "7"}
	request := deployments.UpdateRequest{Stack: stack, Kind: engine.KindUp, RequestID: "r-1", Initiator: "ann"}
	begun := time.Date(2026, 1, 2, 3, 10, 0, 0, time.UTC)
	info := deployments.UpdateInfo{Update: u, Kind: engine.KindUp, Status: "succeeded", Started: begun,
		Ended: begun.Add(1500 * time.Millisecond), Resources: 3}
	moved := info
	moved.Status, moved.Next = string(deployments.StatusMigrated), "8"
	submit := deployments.SubmitInput{RequestID: "r-2", ScheduledInput: deployments.ScheduledInput{Schedule: deployments.
		Schedule{Name: deployments.ScheduleName{StackName: stack, Name: "nightly"}, Kind: "drift"}}}
	deliver := deployments.DeliverInput{Webhook: deployments.WebhookName{Scope: deployments.WebhookScope{
		Organization: "acme"}, Name: "chat"}, Event: deployments.WebhookEvent{ID: "e-1", Kind: "stack_update"}}
	remote := deployments.DeploymentName{StackName: stack, Number: 4}
	const dev, up = "organization=acme", "stack=shop/dev"
	for _, c := range []struct {
		what string
		got  []string
		want []string
	}{
		{"a claim", linesOf(t, deployments.ActivityClaimStack, deployments.ClaimInput{Update: u, Request: request, Number: 1},
			func(deployments.ClaimInput) (deployments.Claimed, error) {
				return deployments.Claimed{Worker: "w"}, nil
			}),
			[]string{"INFO update begins: initiator=ann kind=up " + dev + " request_id=r-1 " + up + " update=7"}},
		{"a claim by another worker", linesOf(t, deployments.ActivityClaimStack,
			deployments.ClaimInput{Update: u, Request: request, Number: 2},
			func(deployments.ClaimInput) (deployments.Claimed, error) {
				return deployments.Claimed{Worker: "w"}, nil
			}),
			[]string{"INFO update goes on here: claim=2 initiator=ann kind=up " + dev + " request_id=r-1 " + up + " update=7"}},
		{"a claim that others make", linesOf(t, deployments.ActivityClaimStack, deployments.ClaimInput{Update: u, Number: 1},
			func(deployments.ClaimInput) (deployments.Claimed, error) { return deployments.Claimed{Queue: "q"}, nil }), nil},
		{"a commit", linesOf(t, deployments.ActivityCommitUpdate, deployments.CommitInput{Update: u},
			func(deployments.CommitInput) (deployments.UpdateInfo, error) { return info, nil }),
			[]string{"INFO update ended: kind=up " + dev + " resources=3 result=succeeded " + up + " took=1.5s update=7"}},
		{"a recovery", linesOf(t, deployments.ActivityRecoverUpdate, deployments.RecoverInput{Update: u},
			func(deployments.RecoverInput) (deployments.Recovered, error) {
				return deployments.Recovered{UpdateInfo: moved}, nil
			}),
			[]string{"INFO update recovered: kind=up next=8 " + dev + " resources=3 result=moved " + up +
				" took=1.5s update=7"}},
		{"a lease", linesOf(t, deployments.ActivityBeginLease, deployments.UpdateInput{Update: u, Request: request},
			func(deployments.UpdateInput) (struct{}, error) { return struct{}{}, nil }),
			[]string{"INFO update of a client begins: initiator=ann kind=up " + dev + " request_id=r-1 " + up + " update=7"}},
		{"the end of a lease", linesOf(t, deployments.ActivityEndLease, deployments.LeaseEnd{Update: u},
			func(deployments.LeaseEnd) (deployments.LeaseEnded, error) {
				return deployments.LeaseEnded{UpdateInfo: info}, nil
			}),
			[]string{"INFO update of a client ended: kind=up " + dev + " resources=3 result=succeeded " + up +
				" took=1.5s update=7"}},
		{"a run of a schedule", linesOf(t, deployments.ActivitySubmitUpdate, submit,
			func(deployments.SubmitInput) (deployments.Accepted, error) {
				return deployments.Accepted{Update: u}, nil
			}),
			[]string{"INFO schedule runs: kind=drift " + dev + " request_id=r-2 schedule=nightly " + up + " update=7"}},
		{"a run that is not accepted", linesOf(t, deployments.ActivitySubmitUpdate, submit,
			func(deployments.SubmitInput) (deployments.Accepted, error) {
				return deployments.Accepted{}, temporal.NewNonRetryableApplicationError("the stack is gone", "invalid", nil)
			}),
			[]string{"WARN the update of a schedule was not accepted: attempt=1 error=the stack is gone " +
				"kind=drift " + dev + " request_id=r-2 schedule=nightly " + up}},
		{"a webhook that does not answer", linesOf(t, deployments.ActivityDeliverEvent, deliver,
			func(deployments.DeliverInput) (deployments.WebhookDelivery, error) {
				return deployments.WebhookDelivery{Attempt: 1, Error: "the receiver answered 500"}, nil
			}),
			[]string{"WARN a webhook was not told: attempt=1 error=the receiver answered 500 event=e-1 kind=stack_update " +
				dev + " webhook=chat"}},
		{"a deployment", linesOf(t, deployments.ActivityPrepareDeployment, remote,
			func(deployments.DeploymentName) (deployments.PreparedDeployment, error) {
				return deployments.PreparedDeployment{}, nil
			}), []string{"INFO deployment begins: deployment=4 " + dev + " " + up}},
		{"the end of a deployment", linesOf(t, deployments.ActivityEndDeployment, deployments.EndDeploymentInput{
			Name: remote, DeploymentOutput: deployments.DeploymentOutput{Status: deployments.DeploymentFailed}},
			func(deployments.EndDeploymentInput) (deployments.EndedDeployment, error) {
				return deployments.EndedDeployment{}, nil
			}), []string{"INFO deployment ended: deployment=4 " + dev + " result=failed " + up}},
	} {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s is logged as\n%q, not\n%q", c.what, c.got, c.want)
		}
	}
}

func TestAHeartbeatThatEndsWithItsActivityIsNoWarning(t *testing.T) {
	const beat = "RecordActivityHeartbeat with error"
	var text bytes.Buffer
	log := slog.New(quiet{slog.NewTextHandler(&text, nil)}).With("ActivityType", "CommitUpdate")
	log.Warn(beat, "Error", fmt.Errorf("beat: %w", context.Canceled))
	log.Warn(beat, "Error", status.Error(codes.Canceled, "context canceled"))
	if text.Len() > 0 {
		t.Errorf("it is logged: %s", text.String())
	}
	for _, err := range []error{errors.New("refused"), status.Error(codes.Unavailable, "away")} {
		text.Reset()
		log.Warn(beat, "Error", err)
		if !strings.Contains(text.String(), "level=WARN") {
			t.Errorf("%v is not logged: %s", err, text.String())
		}
	}
}
