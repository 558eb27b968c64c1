//go:build record

package workflows

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// play is one workflow to record, whose activities are faked.
type play struct {
	name, workflow, id string
	input              any
	attributes         temporal.SearchAttributes
	activities         any
	during             func(context.Context, client.Client) error // what is done to it meanwhile
	fails              bool
}

// recordSingle stores the histories of workflows that have no others below them.
func recordSingle(t *testing.T, server devserver.Status) {
	ctx := waittest.Context(t)
	c := recordingClient(ctx, t, server)
	for _, p := range slices.Concat(scheduledPlays(), deploymentPlays(c), notifyPlays(), leasePlays()) {
		p.record(ctx, t, c)
	}
}

func (p play) record(ctx context.Context, t *testing.T, c client.Client) {
	t.Helper()
	const shared = deployments.SharedTaskQueue
	for _, queue := range []string{shared, deployments.ScheduledTaskQueue(shared), deployments.RemoteTaskQueue(shared),
		deployments.DeliveryTaskQueue(shared)} {
		w := worker.New(c, queue, recorderOptions(queue != shared))
		if queue == shared {
			New(Settings{}).Register(w)
		}
		w.RegisterActivity(p.activities)
		if err := w.Start(); err != nil {
			t.Fatal(err)
		}
		defer w.Stop()
	}
	run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{ID: p.id, TaskQueue: shared,
		TypedSearchAttributes: p.attributes}, p.workflow, p.input)
	if err != nil {
		t.Fatal(err)
	}
	if p.during != nil {
		if err := p.during(ctx, c); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	if err := run.Get(ctx, nil); (err != nil) != p.fails {
		t.Errorf("%s ends with %v", p.name, err)
	}
	keep(t, c, p.name+".run", run.GetID(), run.GetRunID())
}

// scheduledPlays are runs of schedules.
func scheduledPlays() (plays []play) {
	for name, remedy := range map[string]string{"scheduled": "succeeded", "scheduled-failure": "failed"} {
		o := newOffice()
		o.drifted, o.endings["7"] = 2, deployments.UpdateInfo{Status: remedy, Error: "quota exceeded"}
		p := scheduledPlay(deployments.Schedule{Kind: deployments.ScheduleDrift, Remediate: true, Every: time.Hour}, name)
		p.activities, p.fails = o, remedy == "failed"
		plays = append(plays, p)
	}
	removal := scheduledPlay(deployments.Schedule{Kind: deployments.ScheduleDestroy, RemoveStack: true,
		Every: time.Hour}, "scheduled-removal")
	removal.activities = &removingOffice{newOffice()}
	return append(plays, removal)
}

func scheduledPlay(s deployments.Schedule, name string) play {
	s.Name = deployments.ScheduleName{StackName: theStack, Name: name}
	return play{name: name, workflow: deployments.WorkflowScheduled, id: deployments.ScheduleID(s.Name),
		input: deployments.ScheduledInput{Schedule: s, StackID: "stack-id"}, attributes: ScheduleAttributes(s)}
}

// removingOffice also removes stacks.
type removingOffice struct{ *office }

// RemoveStack fakes the activity.
func (*removingOffice) RemoveStack(context.Context, deployments.ScheduledInput) error { return nil }

// deploymentPlays are a drift check that remediates, a destroy that removes its stack, and a deployment that is
// cancelled while its update runs.
func deploymentPlays(c client.Client) []play {
	drifts, destroys := newDepot(), newDepot()
	drifts.drifted, drifts.prepared.Drift, drifts.prepared.Remediate = 2, true, true
	drifts.prepared.Request.Kind, drifts.prepared.Request.DryRun = engine.KindRefresh, true
	destroys.removes = true
	var plays []play
	for i, p := range []play{{name: "deployment-drift", activities: drifts},
		{name: "deployment-removal", activities: destroys},
		{name: "deployment-cancel", activities: &cancellingDepot{newDepot(), c, make(chan struct{})}}} {
		n := deployments.DeploymentName{StackName: theStack, Number: i + 1}
		p.workflow, p.id = deployments.WorkflowDeployment, deployments.DeploymentWorkflowID(n)
		p.input, p.attributes = deployments.DeploymentInput{Name: n}, DeploymentAttributes(deployments.Deployment{Name: n})
		plays = append(plays, p)
	}
	return plays
}

// cancellingDepot cancels the deployment while it follows its update.
type cancellingDepot struct {
	*depot
	client client.Client
	ended  chan struct{} // the update was cancelled
}

// FollowDeployment fakes the activity.
func (d *cancellingDepot) FollowDeployment(
	ctx context.Context, in deployments.FollowDeploymentInput,
) (deployments.UpdateInfo, error) {
	if in.Cancel {
		close(d.ended)
		return deployments.UpdateInfo{Update: in.Update, Status: deployments.StatusCancelled}, nil
	}
	if err := d.client.CancelWorkflow(ctx, deployments.DeploymentWorkflowID(in.Name), ""); err != nil {
		return deployments.UpdateInfo{}, err
	}
	<-d.ended
	return deployments.UpdateInfo{}, context.Canceled
}

// notifyPlays are an event that a webhook accepts late, and one that another refuses.
func notifyPlays() (plays []play) {
	for _, name := range []string{"notify", "notify-refused"} {
		m := newMail()
		m.accepts["at-once"], m.accepts["late"], m.refuses["late"] = 1, 2, name == "notify-refused"
		in := deployments.NotifyInput{Event: deployments.WebhookEvent{ID: name, Stack: theStack}}
		for _, hook := range []string{"late", "at-once"} {
			in.Webhooks = append(in.Webhooks, deployments.WebhookName{Scope: deployments.ScopeOf(theStack), Name: hook})
		}
		plays = append(plays, play{name: name, workflow: deployments.WorkflowNotify, input: in, activities: m,
			id: deployments.WebhookWorkflowID(in), attributes: StackAttributes(theStack), fails: m.refuses["late"]})
	}
	return plays
}

// leasePlays are a lease that is renewed and completed, and one that expires.
func leasePlays() (plays []play) {
	for name, lasting := range map[string]time.Duration{"lease": time.Hour, "lease-expired": time.Second} {
		u := theUpdate
		u.Stack = name
		id := deployments.UpdateWorkflowID(u)
		p := play{name: name, workflow: deployments.WorkflowLease, id: id, activities: newLeasehold(),
			attributes: StackAttributes(u.StackName), input: deployments.UpdateInput{Update: u,
				Request: deployments.UpdateRequest{Stack: u.StackName, Lease: &deployments.Lease{Duration: lasting}}}}
		if name == "lease" {
			p.during = func(ctx context.Context, c client.Client) error { return renewAndComplete(ctx, c, id) }
		}
		plays = append(plays, p)
	}
	return plays
}

// renewAndComplete renews a lease once it has begun, and completes its update.
func renewAndComplete(ctx context.Context, c client.Client, id string) error {
	ask := func(update string, arg any) error {
		handle, err := c.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{WorkflowID: id, UpdateName: update,
			Args: []any{arg}, WaitForStage: client.WorkflowUpdateStageCompleted})
		if err != nil {
			return err
		}
		return handle.Get(ctx, nil)
	}
	for {
		err := ask(deployments.UpdateRenew, time.Minute)
		if err == nil {
			return ask(deployments.UpdateComplete, engine.StatusSucceeded)
		}
		if ctx.Err() != nil {
			return err
		}
	}
}
