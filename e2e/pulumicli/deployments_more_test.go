//go:build unix

package pulumicli

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/harness"
)

// post sends a body to the service, with a token or with headers of a git server.
func (s service) post(t *testing.T, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.address+path, strings.NewReader(body))
	harness.Must(t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	harness.Must(t, err)
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	harness.Must(t, err)
	return answer.StatusCode, string(text)
}

const (
	pushedStack   = "/api/stacks/organization/shop/pushed/deployments"
	webhookSecret = "the-secret-of-the-webhook"
)

// pushes stores settings, and has a push start a deployment.
func pushes(t *testing.T, h *harness.Home, s service) {
	p, _, cloud := gitStack(t, h, s, "pushed")
	repository := serveRepository(t, plain, gitToken)
	commit := repository.commit(t, harness.Files{"Pulumi.pushed.yaml": "config:\n  shop:size: 5\n"}, "For this stack")
	p.Must(t, "deployment", "settings", "edit", "--git-url", repository.url, "--branch", "main", "--push-to-deploy",
		"--preview-prs", "--path-filter", "Pulumi.*", "--env", cloud, "--secret-env", "TOKEN="+secret)
	status, text := s.post(t, pushedStack+"/settings", `{"webhook":{"secret":"`+webhookSecret+`"},"sourceContext":{"git":
		{"gitAuth":{"accessToken":"`+gitToken+`"}}}}`, "Authorization", "token "+s.token)
	if status != http.StatusNoContent {
		t.Fatalf("the settings are answered %d: %s", status, text)
	}
	shown := p.Must(t, "deployment", "settings", "get", "--output", "json")
	for _, hidden := range []string{secret, webhookSecret, gitToken} {
		if strings.Contains(shown, hidden) {
			t.Errorf("the settings show a secret: %s", shown)
		}
	}
	said(t, p, "2 created", run("update")...)

	at := time.Now()
	push := func(sha, file string) (int, string) {
		body := fmt.Sprintf(`{"ref":"refs/heads/main","after":%q,"repository":{"full_name":"shop","pushed_at":%d},"commits":[{
			"modified":[%q]}]}`, sha, at.Unix(), file)
		mac := hmac.New(sha256.New, []byte(webhookSecret))
		_, _ = io.WriteString(mac, body)
		return s.post(t, pushedStack+"/push", body, "X-GitHub-Event", "push", "X-Hub-Signature-256",
			"sha256="+hex.EncodeToString(mac.Sum(nil)))
	}
	if status, text := push(commit, "README.md"); status != http.StatusOK || !strings.Contains(text, "paths") {
		t.Errorf("a push of another file is answered %d: %s", status, text)
	}
	if status, text := push(commit, "Pulumi.yaml"); status != http.StatusOK || !strings.Contains(text, "deployment-2") {
		t.Fatalf("a push is answered %d: %s", status, text)
	}
	if status, text := push(commit, "Pulumi.yaml"); status != http.StatusConflict {
		t.Errorf("the same push is answered %d: %s", status, text)
	}
	at = at.AddDate(0, 0, -8)
	if status, text := push(commit, "Pulumi.yaml"); status != http.StatusBadRequest || !strings.Contains(text, "7 days") {
		t.Errorf("an old push is answered %d: %s", status, text)
	}
	if status, text := s.post(t, pushedStack+"/push", "{}", "X-GitHub-Event", "push", "X-Hub-Signature-256",
		"sha256=00"); status != http.StatusUnauthorized {
		t.Errorf("a push with a wrong signature is answered %d: %s", status, text)
	}
	harness.Eventually(t, "the push is deployed", func() bool {
		return strings.Contains(p.Must(t, "deployment", "get", "2"), "succeeded")
	})
	said(t, p, "push to main", "deployment", "get", "2")
	p.Must(t, "deployment", "settings", "edit", "--remove-env", "TOKEN")
	p.Must(t, "deployment", "settings", "destroy", "--yes")
	failed(t, p, "no git repository", run("update")...)
}

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
