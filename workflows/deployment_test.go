package workflows

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
)

// depot fakes the activities of a deployment; submitting is idempotent.
type depot struct {
	env       *testsuite.TestWorkflowEnvironment
	skipped   string
	waiting   error // it never has its turn, is cancelled, and its last look ends with that
	looks     int   // how often it looks for its turn in vain
	unready   error // of the preparation
	prepared  deployments.PreparedDeployment
	drifted   int
	status    string // of every update
	submitted []deployments.UpdateRequest
	stuck     bool // updates end only when they are cancelled
	cancelled bool
	ends      []deployments.EndDeploymentInput
	removes   bool // the stack is to be removed
	removed   int
}

func newDepot() *depot {
	d := &depot{env: newEnvironment(), status: deployments.StatusSucceeded}
	d.prepared.Request = deployments.UpdateRequest{Stack: theStack, Kind: engine.KindUp, RequestID: "r"}
	New(Settings{}).Register(d.env)
	d.env.RegisterActivity(d.AwaitTurn)
	d.env.RegisterActivity(d.PrepareDeployment)
	d.env.RegisterActivity(d.SubmitDeployment)
	d.env.RegisterActivity(d.FollowDeployment)
	d.env.RegisterActivity(d.EndDeployment)
	d.env.RegisterActivity(d.RemoveDestroyedStack)
	d.env.RegisterActivity(d.ReportDrift)
	return d
}

func (d *depot) AwaitTurn(ctx context.Context, _ deployments.DeploymentName) (deployments.DeploymentTurn, error) {
	if d.waiting != nil {
		d.env.CancelWorkflow()
		<-ctx.Done()
		return deployments.DeploymentTurn{}, d.waiting
	}
	if d.looks > 0 {
		d.looks--
		return deployments.DeploymentTurn{}, temporal.NewApplicationError("another one runs", deployments.ErrorPostponed)
	}
	return deployments.DeploymentTurn{Skipped: d.skipped}, nil
}

func (d *depot) PrepareDeployment(
	context.Context, deployments.DeploymentName,
) (deployments.PreparedDeployment, error) {
	return d.prepared, d.unready
}

func (d *depot) SubmitDeployment(
	_ context.Context, in deployments.SubmitDeploymentInput,
) (deployments.UpdateName, error) {
	d.submitted = append(d.submitted, in.Request)
	return deployments.UpdateName{StackName: theStack, Version: "7"}, nil
}

func (d *depot) FollowDeployment(
	ctx context.Context, in deployments.FollowDeploymentInput,
) (deployments.UpdateInfo, error) {
	if in.Cancel {
		d.cancelled = true
		return deployments.UpdateInfo{Update: in.Update, Status: deployments.StatusCancelled}, nil
	}
	if d.stuck {
		d.env.CancelWorkflow()
		<-ctx.Done()
		return deployments.UpdateInfo{}, ctx.Err()
	}
	return deployments.UpdateInfo{Update: in.Update, Status: d.status, Error: "a quota"}, nil
}

func (d *depot) EndDeployment(
	_ context.Context, in deployments.EndDeploymentInput,
) (deployments.EndedDeployment, error) {
	d.ends = append(d.ends, in)
	return deployments.EndedDeployment{RemovesStack: d.removes}, nil
}

func (d *depot) RemoveDestroyedStack(context.Context, deployments.DeploymentName) error {
	d.removed++
	return nil
}

func (d *depot) ReportDrift(context.Context, deployments.DriftReportInput) (deployments.DriftSummary, error) {
	return deployments.DriftSummary{Drifted: d.drifted}, nil
}

// work does the deployment, which must end with a status and say something.
func (d *depot) work(t *testing.T, status deployments.DeploymentStatus, said string) {
	t.Helper()
	d.env.ExecuteWorkflow(deployments.WorkflowDeployment, deployments.DeploymentInput{
		Name: deployments.DeploymentName{StackName: theStack, Number: 3}})
	if err := d.env.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(d.ends) != 1 || d.ends[0].Status != status || !strings.Contains(d.ends[0].Error, said) ||
		d.ends[0].Name.Number != 3 {
		t.Errorf("it ends with %+v", d.ends)
	}
}

func TestADeploymentSubmitsItsUpdateAndFollowsIt(t *testing.T) {
	d := newDepot()
	d.work(t, deployments.DeploymentSucceeded, "")
	if len(d.submitted) != 1 || len(d.ends[0].Updates) != 1 || d.ends[0].Updates[0].Version != "7" {
		t.Errorf("%+v, %+v", d.submitted, d.ends)
	}
}

func TestADeploymentLooksForItsTurnUntilItHasIt(t *testing.T) {
	d := newDepot()
	d.looks = 5
	d.work(t, deployments.DeploymentSucceeded, "")
	if d.looks != 0 || len(d.submitted) != 1 {
		t.Errorf("%d looks are left; %+v", d.looks, d.submitted)
	}
}

func TestADeploymentFailsWithItsUpdate(t *testing.T) {
	d := newDepot()
	d.status = deployments.StatusFailed
	d.work(t, deployments.DeploymentFailed, "a quota")
}

func TestASkippedDeploymentSubmitsNothing(t *testing.T) {
	d := newDepot()
	d.skipped = "a later one takes its place"
	d.work(t, deployments.DeploymentSkipped, "later")
	if len(d.submitted) != 0 {
		t.Errorf("%+v", d.submitted)
	}
}

func TestADeploymentThatIsCancelledBeforeItsTurnIsSkipped(t *testing.T) {
	for _, end := range []error{context.Canceled, // what fails is not tried again once it is cancelled
		temporal.NewNonRetryableApplicationError("another one runs", deployments.ErrorPostponed, nil)} {
		d := newDepot()
		d.waiting = end
		d.work(t, deployments.DeploymentSkipped, "before its turn")
	}
}

func TestADeploymentWithoutAProgramFails(t *testing.T) {
	d := newDepot()
	d.unready = temporal.NewNonRetryableApplicationError("no branch", "invalid", errors.New("no branch"))
	d.work(t, deployments.DeploymentFailed, "no branch")
	if len(d.submitted) != 0 {
		t.Errorf("%+v", d.submitted)
	}
}

func TestACancelledDeploymentCancelsItsUpdateAndRecordsItsEnd(t *testing.T) {
	d := newDepot()
	d.stuck = true
	d.work(t, deployments.DeploymentFailed, "was cancelled")
	if !d.cancelled {
		t.Error("its update goes on")
	}
}

func TestDriftThatIsFoundIsRemediatedOnRequestOnly(t *testing.T) {
	for name, c := range map[string]struct {
		drifted   int
		remediate bool
		updates   int
	}{"none": {0, true, 1}, "some": {2, true, 2}, "some, not to be remediated": {2, false, 1}} {
		d := newDepot()
		d.drifted, d.prepared.Drift, d.prepared.Remediate = c.drifted, true, c.remediate
		d.prepared.Request.Kind, d.prepared.Request.DryRun = engine.KindRefresh, true
		d.work(t, deployments.DeploymentSucceeded, "")
		if len(d.submitted) != c.updates {
			t.Errorf("%s: %+v", name, d.submitted)
		}
		if c.updates == 2 && (d.submitted[1].DryRun || d.submitted[1].Kind != engine.KindUp || !d.submitted[1].Refresh ||
			d.submitted[1].RequestID == d.submitted[0].RequestID) {
			t.Errorf("%s: it remediates with %+v", name, d.submitted[1])
		}
	}
}

func TestAStackThatWasDestroyedIsRemovedAfterTheEndOfItsDeploymentOnRequestOnly(t *testing.T) {
	for _, removes := range []bool{false, true} {
		d := newDepot()
		d.removes = removes
		d.work(t, deployments.DeploymentSucceeded, "")
		if (d.removed == 1) != removes || d.removed > 1 {
			t.Errorf("asked for %v, it is removed %d times", removes, d.removed)
		}
	}
}
