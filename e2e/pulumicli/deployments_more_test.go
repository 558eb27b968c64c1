//go:build unix

package pulumicli

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// refusesRepositories has repositories that want more than they may.
func refusesRepositories(t *testing.T, h *harness.Home, s service) {
	p, _, cloud := gitStack(t, h, s, "git2")
	repository := serveRepository(t, plain, "")
	env := []string{repository.url, "--git-branch", "main", "--env", cloud}
	failed(t, p, "exit status 7", run("update", append(env, "--pre-run-command", "exit 7")...)...)
	failed(t, p, "no branch", run("update", repository.url, "--git-branch", "nothing")...)
	failed(t, p, "no commit", run("update", repository.url, "--git-commit", strings.Repeat("ab", 20))...)
	failed(t, p, "https:// or ssh://", run("update", "file:///etc", "--git-branch", "main")...)
	end := p.Run(t, run("update", append(env, "--env-secret", "TOKEN="+secret, "--pre-run-command",
		"echo token $TOKEN")...)...)
	if strings.Contains(end.Said(), secret) || !strings.Contains(end.Said(), "token [secret]") {
		t.Errorf("a secret of the environment is in the log: %s", end.Said())
	}
	// The stack has no value for the size, so the program's configuration is refused.
	if end.Code == 0 || !strings.Contains(end.Said(), "needs a value for shop:size") {
		t.Errorf("it ends with %d: %s", end.Code, end.Said())
	}
}

// queues has deployments wait for each other, and cancels one.
func queues(t *testing.T, h *harness.Home, s service) {
	soaktest.Only(t)
	p, _, env := gitStack(t, h, s, "queued")
	repository := serveRepository(t, plain, "")
	repository.commit(t, harness.Files{"Pulumi.queued.yaml": "config:\n  shop:size: 1\n"}, "For this stack")
	p.Must(t, "deployment", "settings", "edit", "--git-url", repository.url, "--branch", "main", "--env", env,
		"--skip-intermediate-deployments")
	status := func(number string) string { return p.Must(t, "deployment", "get", number) }
	begun := filepath.Join(t.TempDir(), "begun")
	p.Must(t, "deployment", "run", "update", "--pre-run-command", "touch "+begun+" && sleep 1234")
	harness.Eventually(t, "the first has begun", func() bool {
		_, err := os.Stat(begun)
		return err == nil
	})
	p.Must(t, "deployment", "run", "update") // which the third replaces
	p.Must(t, "deployment", "run", "update")
	harness.Eventually(t, "the third has replaced the second", func() bool {
		return strings.Contains(status("2"), "skipped") && strings.Contains(status("3"), "accepted")
	})
	harness.Eventually(t, "the third waits for the first", func() bool {
		return strings.Contains(p.Must(t, "deployment", "log", "3"), "Waiting for deployment-1 ")
	})
	p.Must(t, "deployment", "cancel", "deployment-1", "--yes")
	harness.Eventually(t, "the first was cancelled", func() bool { return strings.Contains(status("1"), "failed") })
	harness.Eventually(t, "the third has run", func() bool { return strings.Contains(status("3"), "succeeded") })

	const path = "/api/stacks/organization/shop/queued/deployments"
	for _, what := range []string{"pause", "resume"} {
		if code, text := s.post(t, path+"/"+what, "", "Authorization", "token "+s.token); code != http.StatusNoContent {
			t.Fatalf("%s is answered %d: %s", what, code, text)
		}
		if what == "resume" {
			break
		}
		p.Must(t, "deployment", "run", "update")
		p.Must(t, "deployment", "run", "preview")
		harness.Eventually(t, "the fourth is paused", func() bool {
			return strings.Contains(p.Must(t, "deployment", "log", "4"), "are paused")
		})
		p.Must(t, "deployment", "cancel", "deployment-5", "--yes")
		harness.Eventually(t, "the fifth is skipped", func() bool { return strings.Contains(status("5"), "skipped") })
	}
	harness.Eventually(t, "the fourth has run", func() bool { return strings.Contains(status("4"), "succeeded") })
}

// decrypts deploys stacks whose configuration has a secret, under the service's key and under a passphrase.
func decrypts(t *testing.T, h *harness.Home, s service) {
	soaktest.Only(t)
	_, cloud := harness.Cloud(t)
	dir := t.TempDir()
	project.Write(t, dir)
	p := s.login(t, h.Deployctl(dir, cloud))
	p.Must(t, "stack", "init", "sealed")
	p.Must(t, "config", "set", "password", secret, "--secret")
	p.Must(t, "stack", "init", "phrased", "--secrets-provider", "passphrase")
	p.Must(t, "config", "set", "password", secret, "--secret")
	files := harness.Files{}
	for _, name := range []string{"Pulumi.yaml", "Pulumi.sealed.yaml", "Pulumi.phrased.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		harness.Must(t, err)
		files[name] = string(text)
	}
	repository := serveRepository(t, files, "")
	from := []string{repository.url, "--git-branch", "main", "--env", cloud, "--stack"}
	for _, stack := range []string{"sealed", "phrased"} {
		args := append(run("update", from...), stack)
		if stack == "phrased" {
			failed(t, p, "PULUMI_CONFIG_PASSPHRASE", args...)
			args = append(args, "--env-secret", "PULUMI_CONFIG_PASSPHRASE="+harness.Passphrase)
		}
		end := p.Run(t, args...)
		if end.Code != 0 || !strings.Contains(end.Said(), "3 created") || strings.Contains(end.Said(), secret) {
			t.Errorf("the deployment of %s ends with %d: %s", stack, end.Code, end.Said())
		}
		said(t, p, secret, "stack", "output", "password", "--show-secrets", "--stack", stack)
		if log := p.Must(t, "deployment", "log", "1", "--all", "--stack", stack); strings.Contains(log, secret) {
			t.Errorf("the log has the secret: %s", log)
		}
	}
}
