//go:build unix

package pulumicli

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// scheduleOf is what the CLI shows of a schedule as JSON.
type scheduleOf struct{ ID, Type, Settings, Schedule, NextRun string }

// created makes a schedule with the stock CLI.
func created(t *testing.T, p *harness.Tool, args ...string) (s scheduleOf) {
	t.Helper()
	args = append([]string{"stack", "schedule", "new", "--yes", "--output", "json"}, args...)
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, args...)), &s))
	return s
}

// ran runs a schedule with deployctl, and returns how the run ended.
func ran(t *testing.T, ours *harness.Tool, name string) (run deployments.ScheduleRun) {
	t.Helper()
	ours.Must(t, "schedule", "run", name)
	harness.Eventually(t, "the run of "+name+" ends", func() bool {
		var runs []deployments.ScheduleRun
		harness.Must(t, json.Unmarshal([]byte(ours.Must(t, "schedule", "runs", name, "--json")), &runs))
		if len(runs) > 0 {
			run = runs[0]
		}
		return len(runs) > 0 && !run.Ended.IsZero()
	})
	return run
}

// schedules makes, edits, runs and removes schedules of a stack that only the stock CLI has updated.
func schedules(t *testing.T, h *harness.Home, s service) {
	cloud, env := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	ours := h.Deployctl(dir, env)
	p := s.login(t, ours)
	p.Must(t, "stack", "init", "timed")
	p.Must(t, "config", "set", "password", secret, "--secret")
	p.Must(t, "config", "set", "fake:endpoint", cloud.URL()) // the service has no environment of the CLI
	said(t, p, "3 created", with("up")...)
	ours.Must(t, "stack", "select", "timed")

	said(t, p, "No scheduled actions", "stack", "schedule", "list")
	check := created(t, p, "--kind", "drift", "--cron", "0 */4 * * *")
	if check.ID != "drift" || check.Type != "drift" || check.Settings != "detect" || check.NextRun == "" {
		t.Errorf("the drift schedule is %+v", check)
	}
	far := time.Now().Add(48 * time.Hour).UTC().Format(time.RFC3339)
	end := created(t, p, "--kind", "ttl", "--once", far, "--delete-after-destroy")
	if end.Type != "ttl" || end.Settings != "destroy + delete stack" || end.Schedule != "Once" || end.NextRun != far {
		t.Errorf("the time to live is %+v", end)
	}
	again := created(t, p, "--kind", "raw", "--operation", "refresh", "--cron", "@every 6h")
	if again.ID != "refresh" || again.Settings != "pulumi refresh" || again.Schedule != "@every 6h0m0s" {
		t.Errorf("the refresh is %+v", again)
	}
	said(t, p, "every 6h0m0s", "stack", "schedule", "get", "refresh")
	refuses(t, p, "was executed by the stock CLI", "stack", "schedule", "new", "--kind", "raw", "--operation", "update",
		"--cron", "0 1 * * *")
	refuses(t, p, "was executed by the stock CLI", "stack", "schedule", "edit", "drift", "--auto-remediate")
	refuses(t, p, "cron expression", "stack", "schedule", "new", "--kind", "drift", "--cron", "nonsense")
	said(t, p, "0 5 * * *", "stack", "schedule", "edit", "drift", "--cron", "0 5 * * *")
	said(t, ours, "0 5 * * *", "schedule", "show", "drift")

	drifts(t, p, cloud, ours)
	said(t, p, "has been removed", "stack", "schedule", "rm", "drift", "--yes")
	refuses(t, p, "no schedule drift", "stack", "schedule", "get", "drift")
	if run := ran(t, ours, "refresh"); run.Status != deployments.StatusSucceeded {
		t.Errorf("the refresh ends as %+v", run)
	}
	ours.Must(t, "schedule", "run", end.ID) // it is its last: the schedule goes with the stack
	harness.Eventually(t, "the stack is gone", func() bool {
		return !strings.Contains(p.Must(t, "stack", "ls"), "timed")
	})
}

// drifts plays a drift check that finds nothing, and one that does.
func drifts(t *testing.T, p *harness.Tool, cloud *fakecloud.Process, ours *harness.Tool) {
	t.Helper()
	said(t, p, "Drift detected:    unknown", "stack", "drift", "status")
	said(t, p, "No drift detection runs", "stack", "drift", "list")
	if run := ran(t, ours, "drift"); run.Status != deployments.StatusSucceeded || run.Drifted != 0 {
		t.Errorf("the first check ends as %+v", run)
	}
	said(t, p, "Drift detected:    no", "stack", "drift", "status")
	found, err := cloud.Objects(t.Context(), "auto")
	harness.Must(t, err)
	changed := 0
	for _, o := range found {
		if o.Properties["size"] == 1.0 {
			o.Properties["size"] = 7
			changed++
			harness.Must(t, cloud.Put(t.Context(), o))
		}
	}
	if run := ran(t, ours, "drift"); run.Status != deployments.StatusSucceeded || run.Drifted != changed || changed == 0 {
		t.Errorf("the second check ends as %+v", run)
	}
	said(t, p, "Drift detected:    yes", "stack", "drift", "status")
	said(t, p, "Showing 2 of 2 drift run(s)", "stack", "drift", "list")
	var list struct {
		DriftRuns []struct {
			DriftDetected bool
			Status        string
			DetectUpdate  *struct{ ResourceChanges map[string]int }
		}
	}
	harness.Must(t, json.Unmarshal([]byte(p.Must(t, "stack", "drift", "list", "--output", "json")), &list))
	if runs := list.DriftRuns; len(runs) != 2 || !runs[0].DriftDetected || runs[1].DriftDetected ||
		runs[0].DetectUpdate == nil || runs[0].DetectUpdate.ResourceChanges["update"] != changed {
		t.Errorf("the runs are %+v", list.DriftRuns)
	}
}

// refuses runs a command that must fail with a sentence of the service.
func refuses(t *testing.T, tool *harness.Tool, why string, args ...string) {
	t.Helper()
	end := tool.Run(t, args...)
	if end.Code == 0 || !strings.Contains(end.Said(), why) || strings.Contains(end.Said(), "goroutine ") {
		t.Errorf("%s ends with %d and does not say %q:\n%s", strings.Join(args, " "), end.Code, why, end.Said())
	}
}
