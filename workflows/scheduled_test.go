package workflows

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"

	"github.com/deployctl/deployctl/deployments"
)

// office fakes the activities by which a scheduled run submits and awaits updates; submitting is idempotent.
type office struct {
	env       *testsuite.TestWorkflowEnvironment
	refusal   error
	drifted   int
	endings   map[string]deployments.UpdateInfo // of failed updates, by version
	accepted  map[string]deployments.Accepted   // by request id
	submitted []string
	flaky     bool // the first answer to each submission is lost
	compiled  []deployments.DriftReportInput
}

func newOffice() *office {
	o := &office{
		env: newEnvironment(), accepted: map[string]deployments.Accepted{},
		endings: map[string]deployments.UpdateInfo{},
	}
	New(Settings{}).Register(o.env)
	o.env.RegisterActivity(o.SubmitUpdate)
	o.env.RegisterActivity(o.AwaitUpdate)
	o.env.RegisterActivity(o.ReportDrift)
	return o
}

func (o *office) SubmitUpdate(_ context.Context, in deployments.SubmitInput) (deployments.Accepted, error) {
	if o.refusal != nil {
		return deployments.Accepted{}, o.refusal
	}
	if a, ok := o.accepted[in.RequestID]; ok {
		return a, nil
	}
	version := "7"
	if in.DriftCheck {
		version = "p-look"
	}
	a := deployments.Accepted{Update: deployments.UpdateName{StackName: theStack, Version: version}}
	o.accepted[in.RequestID] = a
	o.submitted = append(o.submitted, version)
	if o.flaky {
		return deployments.Accepted{}, errors.New("the answer was lost")
	}
	return a, nil
}

func (o *office) AwaitUpdate(_ context.Context, u deployments.UpdateName) (deployments.UpdateInfo, error) {
	if info, ok := o.endings[u.Version]; ok {
		info.Update = u
		return info, nil
	}
	return deployments.UpdateInfo{Update: u, Status: "succeeded"}, nil
}

func (o *office) ReportDrift(_ context.Context, in deployments.DriftReportInput) (deployments.DriftSummary, error) {
	o.compiled = append(o.compiled, in)
	return deployments.DriftSummary{Drifted: o.drifted, Details: "what drifted"}, nil
}

// work does one run of a schedule.
func (o *office) work(
	t *testing.T, kind deployments.ScheduleKind, remediate bool,
) (out deployments.ScheduledOutput, err error) {
	t.Helper()
	o.env.ExecuteWorkflow(deployments.WorkflowScheduled, deployments.ScheduledInput{Schedule: deployments.Schedule{
		Name: deployments.ScheduleName{StackName: theStack, Name: string(kind)}, Kind: kind, Remediate: remediate,
	}})
	if !o.env.IsWorkflowCompleted() {
		t.Fatal("the run does not end")
	}
	if err = o.env.GetWorkflowError(); err == nil {
		err = o.env.GetWorkflowResult(&out)
	}
	return out, err
}

func (o *office) want(t *testing.T, submitted ...string) {
	t.Helper()
	if !slices.Equal(o.submitted, submitted) {
		t.Errorf("it submitted %q, want %q", o.submitted, submitted)
	}
}

func TestDriftIsRemediatedOnlyIfTheScheduleSaysSo(t *testing.T) {
	for _, c := range []struct {
		name      string
		drifted   int
		remediate bool
		submitted []string
	}{
		{"nothing drifted", 0, true, []string{"p-look"}},
		{"it drifted, and nobody wants it put right", 2, false, []string{"p-look"}},
		{"it drifted, and is put right", 2, true, []string{"p-look", "7"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice()
			o.drifted = c.drifted
			out, err := o.work(t, deployments.ScheduleDrift, c.remediate)
			if err != nil || out.Drifted != c.drifted || len(out.Updates) != len(c.submitted) {
				t.Errorf("it came to %+v, %v", out, err)
			}
			o.want(t, c.submitted...)
			last := o.compiled[len(o.compiled)-1]
			if put := last.Remediation != nil; put != (len(c.submitted) > 1) || put && last.Remediation.Version != "7" {
				t.Errorf("the report names the remedy %v", last.Remediation)
			}
		})
	}
}

func TestAScheduledUpdateWhoseAnswerIsLostIsOneUpdate(t *testing.T) {
	o := newOffice()
	o.flaky = true
	if _, err := o.work(t, deployments.ScheduleUpdate, false); err != nil {
		t.Error(err)
	}
	o.want(t, "7")
}

func TestARunFailsWithTheErrorOfItsUpdate(t *testing.T) {
	gone := temporal.NewNonRetryableApplicationError("its stack is gone", string(deployments.CodeNotFound), nil)
	for _, c := range []struct {
		name    string
		prepare func(*office)
		says    string
		updates int
	}{
		{"the look fails", func(o *office) {
			o.endings["p-look"] = deployments.UpdateInfo{Status: "failed", Error: "no such region"}
		}, "p-look failed: no such region", 1},
		{"the remedy fails", func(o *office) {
			o.endings["7"] = deployments.UpdateInfo{Status: "failed",
				Error: "quota"}
		}, "7 failed: quota", 2},
		{"the remedy is cancelled", func(o *office) { o.endings["7"] = deployments.UpdateInfo{Status: "cancelled"} },
			"7 was cancelled", 2},
		{"nothing is submitted", func(o *office) { o.refusal = gone }, "its stack is gone", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := newOffice()
			o.drifted = 1
			c.prepare(o)
			_, err := o.work(t, deployments.ScheduleDrift, true)
			var failed *temporal.ApplicationError
			if !errors.As(err, &failed) || !strings.HasSuffix(failed.Message(), c.says) {
				t.Fatalf("it ends with %v, want %q", err, c.says)
			}
			var out deployments.ScheduledOutput
			if err := failed.Details(&out); err != nil || len(out.Updates) != c.updates {
				t.Errorf("its updates are %v (%v), want %d", out.Updates, err, c.updates)
			}
		})
	}
}
