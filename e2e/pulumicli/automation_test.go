//go:build unix

package pulumicli

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pulumi/pulumi/sdk/v3/go/auto"
	"github.com/pulumi/pulumi/sdk/v3/go/auto/optup"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
)

// automated returns a stack of the Go automation API, in a project whose backend is the service.
func automated(t *testing.T, h *harness.Home, s service, env string) auto.Stack {
	t.Helper()
	dir, root := t.TempDir(), t.TempDir()
	project.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, env))
	harness.Must(t, os.Mkdir(filepath.Join(root, "bin"), 0o700))
	harness.Must(t, os.Symlink(p.Path, filepath.Join(root, "bin", "pulumi")))
	command, err := auto.NewPulumiCommand(&auto.PulumiCommandOptions{Root: root, SkipVersionCheck: true})
	harness.Must(t, err)
	vars := map[string]string{"PULUMI_BACKEND_URL": s.address}
	for _, variable := range p.Env {
		name, value, _ := strings.Cut(variable, "=")
		vars[name] = value
	}
	stack, err := auto.UpsertStackLocalSource(t.Context(), "organization/shop/automated", dir, auto.Pulumi(command),
		auto.EnvVars(vars))
	harness.Must(t, err)
	return stack
}

// automation plays the flows of the automation API: create, configure, preview, update, refresh, read, cancel, destroy.
func automation(t *testing.T, h *harness.Home, s service) {
	cloud, env := harness.Cloud(t)
	stack, ctx := automated(t, h, s, env), t.Context()
	harness.Must(t, stack.SetConfig(ctx, "password", auto.ConfigValue{Value: secret, Secret: true}))
	preview, err := stack.Preview(ctx)
	harness.Must(t, err)
	if preview.ChangeSummary["create"] != 3 {
		t.Errorf("the preview says %v", preview.ChangeSummary)
	}
	up, err := stack.Up(ctx)
	harness.Must(t, err)
	if arn := up.Outputs["arn"]; arn.Value == "" || arn.Value == nil || !up.Outputs["password"].Secret ||
		up.Summary.Result != "succeeded" {
		t.Errorf("the update ends with %+v", up.Summary)
	}
	_, err = stack.Refresh(ctx)
	harness.Must(t, err)
	outputs, err := stack.Outputs(ctx)
	harness.Must(t, err)
	if password := outputs["password"]; password.Value != secret || !password.Secret {
		t.Errorf("the output is %v", password)
	}
	history, err := stack.History(ctx, 0, 0)
	harness.Must(t, err)
	if len(history) != 2 || history[0].Kind != "refresh" || history[1].Kind != "update" {
		t.Errorf("the history is %+v", history)
	}
	cancelsAsAProgram(t, cloud, &stack)
	_, err = stack.Up(ctx)
	harness.Must(t, err)
	_, err = stack.Destroy(ctx)
	harness.Must(t, err)
	harness.Must(t, stack.Workspace().RemoveStack(ctx, stack.Name()))
}

// cancelled updates the stack and cancels that while a resource is being created.
func cancelsAsAProgram(t *testing.T, cloud *fakecloud.Process, stack *auto.Stack) {
	t.Helper()
	file := filepath.Join(stack.Workspace().WorkDir(), "Pulumi.yaml")
	harness.Edit(t, file, "outputs:", "  more:\n    type: fake:index:Auto\n    properties: {size: 1}\noutputs:")
	gate, err := cloud.SetGate(t.Context(), fakecloud.Fault{Name: "gate", Op: fakecloud.Create})
	harness.Must(t, err)
	ended := make(chan error, 1)
	go func() {
		_, err := stack.Up(t.Context(), optup.ProgressStreams(io.Discard))
		ended <- err
	}()
	harness.Must(t, gate.Wait(t.Context()))
	harness.Must(t, stack.Cancel(t.Context()))
	harness.Must(t, gate.Open(t.Context()))
	if err := <-ended; err == nil {
		t.Error("an update that was cancelled succeeds")
	}
}
