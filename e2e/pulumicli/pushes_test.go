//go:build unix

package pulumicli

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// post sends a body to the service, with a token or with headers of a git server.
func (s service) post(t *testing.T, path, body string, headers ...string) (int, string) {
	t.Helper()
	return s.asks(t, http.MethodPost, path, body, headers...)
}

// get returns what the service says at a path.
func (s service) get(t *testing.T, path string) string {
	t.Helper()
	status, text := s.asks(t, http.MethodGet, path, "", "Authorization", "token "+s.token)
	if status != http.StatusOK {
		t.Fatalf("%s is answered %d: %s", path, status, text)
	}
	return text
}

func (s service) asks(t *testing.T, method, path, body string, headers ...string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, s.address+path, strings.NewReader(body))
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
	p.Must(t, "deployment", "settings", "edit", "--vcs-provider", "custom", "--repo", "acme/shop", "--push-to-deploy",
		"--preview-prs", "--path-filter", "Pulumi.*")
	p.Must(t, "deployment", "settings", "edit", "--git-url", repository.url, "--branch", "main", "--env", cloud,
		"--secret-env", "TOKEN="+secret)
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
		return s.post(t, pushedStack+"/push", body, github(webhookSecret, "push", body)...)
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

// sent is a message of a git server, and how it must be answered.
type sent struct {
	what    string
	body    string
	headers []string
	status  int
	says    string
}

// github is a message that GitHub has signed with a key.
func github(key, event, body string) []string {
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(mac, body)
	return []string{"X-GitHub-Event", event, "X-Hub-Signature-256", "sha256=" + hex.EncodeToString(mac.Sum(nil))}
}

// gitlab is a message that GitLab has signed with a key at a time.
func gitlab(key, event, body, id string, at time.Time) []string {
	stamp := strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, []byte(key))
	_, _ = io.WriteString(mac, id+"."+stamp+"."+body)
	return []string{"X-Gitlab-Event", event, "Webhook-Id", id, "Webhook-Timestamp", stamp, "Webhook-Signature",
		"v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))}
}

// gitlabToken is a message with which GitLab sends the secret itself.
func gitlabToken(token, event string) []string {
	return []string{"X-Gitlab-Event", event, "X-Gitlab-Token", token}
}

// pushedTo is a stack whose deployments a git server starts: main has it with one resource of size 5, and another
// branch asks for size 9.
type pushedTo struct {
	service
	p             *harness.Tool
	cloud         *fakecloud.Process
	path          string
	main, request string // commits
}

func newPushedTo(t *testing.T, h *harness.Home, s service, stack, settings string) pushedTo {
	t.Helper()
	p, cloud, env := gitStack(t, h, s, stack)
	size := func(n int) harness.Files {
		return harness.Files{"Pulumi." + stack + ".yaml": fmt.Sprintf("config:\n  shop:size: %d\n", n)}
	}
	size(5).Write(t, p.Dir)
	repository := serveRepository(t, plain, gitToken)
	to := pushedTo{service: s, p: p, cloud: cloud, path: "/api/stacks/organization/shop/" + stack + "/deployments"}
	to.main = repository.commit(t, size(5), "For this stack")
	git(t, repository.dir, "checkout", "--quiet", "-b", "larger")
	to.request = repository.commit(t, size(9), "A larger one")
	p.Must(t, "deployment", "settings", "edit", "--git-url", repository.url, "--branch", "main", "--env", env)
	status, text := s.post(t, to.path+"/settings", `{"webhook":{"secret":"`+webhookSecret+`"},"sourceContext":{"git":
		{"gitAuth":{"accessToken":"`+gitToken+`"}}},`+settings+`}`, "Authorization", "token "+s.token)
	if status != http.StatusNoContent {
		t.Fatalf("the settings are answered %d: %s", status, text)
	}
	return to
}

// takes sends messages, one after the other.
func (to pushedTo) takes(t *testing.T, messages ...sent) {
	t.Helper()
	for _, m := range messages {
		if status, text := to.post(t, to.path+"/push", m.body, m.headers...); status != m.status ||
			!strings.Contains(text, m.says) {
			t.Errorf("%s is answered %d, %s; it should be %d, with %q", m.what, status, text, m.status, m.says)
		}
	}
}

// deploys waits until deployments have ended, and checks that there are no others: a push has been deployed, and then a
// pull request was previewed, which has changed nothing.
func (to pushedTo) deploys(t *testing.T) {
	t.Helper()
	for _, number := range []string{"1", "2"} {
		harness.Eventually(t, "deployment "+number+" ends", func() bool {
			said := to.p.Must(t, "deployment", "get", number)
			return strings.Contains(said, "succeeded") || strings.Contains(said, "failed")
		})
	}
	var list struct {
		Deployments []struct {
			Version                            int
			PulumiOperation, Initiator, Status string
			Updates                            []struct{ Kind string }
		}
		Total int
	}
	harness.Must(t, json.Unmarshal([]byte(to.get(t, to.path+"?asc=true")), &list))
	var got []string
	for _, d := range list.Deployments {
		got = append(got, fmt.Sprintf("%d %s of %s has %s: %v", d.Version, d.PulumiOperation, d.Initiator, d.Status,
			d.Updates))
	}
	want := []string{"1 update of push to main has succeeded: [{update}]",
		"2 preview of pull request 7 has succeeded: [{preview}]"}
	if !slices.Equal(got, want) || list.Total != len(want) {
		t.Errorf("its deployments are %q, want %q", got, want)
	}
	said(t, to.p, "update 1", "deployment", "log", "2", "--all")
	objects, err := to.cloud.Objects(t.Context(), "")
	harness.Must(t, err)
	if len(objects) != 1 || fmt.Sprint(objects[0].Properties["size"]) != "5" {
		t.Errorf("the cloud has %+v", objects)
	}
	said(t, to.p, "2 unchanged", "preview", "--non-interactive", "--expect-no-changes")
}

// takesGitHub has a push and a pull request of GitHub, and what is like them.
func takesGitHub(t *testing.T, h *harness.Home, s service) {
	to := newPushedTo(t, h, s, "hub", `"gitHub":{"deployCommits":true,"previewPullRequests":true,"paths":["Pulumi.*"]}`)
	push := func(ref, repository, file string) string {
		return fmt.Sprintf(`{"ref":%q,"after":%q,"repository":{"full_name":%q,"pushed_at":%d},"commits":[{"added":[%q]}]}`,
			ref, to.main, repository, time.Now().Unix(), file)
	}
	request := func(action, from, into string) string {
		return fmt.Sprintf(`{"action":%q,"number":7,"pull_request":{"updated_at":%q,"head":{"sha":%q,"ref":"larger","repo":{
			"full_name":%q}},"base":{"ref":%q,"repo":{"full_name":"shop"}}}}`, action, time.Now().Format(time.RFC3339),
			to.request, from, into)
	}
	message := func(what, event, body string, status int, says string) sent {
		return sent{what, body, github(webhookSecret, event, body), status, says}
	}
	body, opened := push("refs/heads/main", "shop", "Pulumi.hub.yaml"), request("opened", "shop", "main")
	to.takes(t,
		sent{"a push with another key", body, github("x", "push", body), http.StatusUnauthorized, "not signed"},
		sent{"a push without a signature", body, []string{"X-GitHub-Event", "push"}, http.StatusUnauthorized, "signature"},
		sent{"a pull request with another key", opened, github("x", "pull_request", opened), http.StatusUnauthorized,
			"not signed"},
		message("a push to another branch", "push", push("refs/heads/larger", "shop", "Pulumi.yaml"), 200, "another branch"),
		message("a push of another file", "push", push("refs/heads/main", "shop", "README.md"), 200, "paths"),
		message("a push to another repository", "push", push("refs/heads/main", "eve/shop", "Pulumi.yaml"), 200,
			"another repository"),
		message("a pull request of a stranger", "pull_request", request("opened", "eve/shop", "main"), 200,
			"from another repository"),
		message("a pull request into another branch", "pull_request", request("opened", "shop", "next"), 200,
			"another branch"),
		message("a push", "push", body, 200, "deployment-1"), message("the same push", "push", body, 409, "taken already"),
		message("a pull request", "pull_request", opened, 200, "deployment-2"),
		message("the same pull request", "pull_request", opened, 409, "taken already"),
		message("a merged pull request", "pull_request", request("closed", "shop", "main"), 200, "deploys nothing"))
	to.deploys(t)
}

// takesGitLab has a push and a merge request of GitLab, and what is like them.
func takesGitLab(t *testing.T, h *harness.Home, s service) {
	soaktest.Only(t)
	to := newPushedTo(t, h, s, "lab", `"vcs":{"provider":"gitlab","deployCommits":true,"previewPullRequests":true,
		"paths":["Pulumi.*"]}`)
	push := func(ref, project, file string) string {
		return fmt.Sprintf(`{"object_kind":"push","ref":%q,"after":%q,"checkout_sha":%[2]q,"total_commits_count":1,
			"project":{"path_with_namespace":%[3]q},"commits":[{"modified":[%[4]q]}]}`, ref, to.main, project, file)
	}
	request := func(action string, from int) string {
		return fmt.Sprintf(`{"object_kind":"merge_request","project":{"path_with_namespace":"shop"},"object_attributes":{
			"iid":7,"action":%q,"target_branch":"main","source_project_id":%d,"target_project_id":1,"last_commit":{"id":%q}}}`,
			action, from, to.request)
	}
	const pushes, requests = "Push Hook", "Merge Request Hook"
	now, ids := time.Now(), 0
	message := func(what, event, body string, status int, says string) sent {
		ids++
		return sent{what, body, gitlab(webhookSecret, event, body, strconv.Itoa(ids), now), status, says}
	}
	body, opened := push("refs/heads/main", "shop", "Pulumi.lab.yaml"), request("open", 1)
	to.takes(t,
		sent{"a push with another token", body, gitlabToken("x", pushes), http.StatusUnauthorized, "not signed"},
		sent{"a push without a token", body, []string{"X-Gitlab-Event", pushes}, http.StatusUnauthorized, "signature"},
		sent{"a push with another key", body, gitlab("x", pushes, body, "a", now), http.StatusUnauthorized, "not signed"},
		sent{"a push that was signed long ago", body, gitlab(webhookSecret, pushes, body, "b", now.Add(-time.Hour)),
			http.StatusUnauthorized, "not signed"},
		sent{"another push with the signature of one", body + " ", gitlab(webhookSecret, pushes, body, "c", now),
			http.StatusUnauthorized, "not signed"},
		message("a push to another branch", pushes, push("refs/heads/larger", "shop", "Pulumi.yaml"), 200, "another branch"),
		message("a push of another file", pushes, push("refs/heads/main", "shop", "README.md"), 200, "paths"),
		message("a tag", "Tag Push Hook", push("refs/tags/main", "shop", "Pulumi.yaml"), 200, "deploys nothing"),
		message("a push to another project", pushes, push("refs/heads/main", "eve/shop", "Pulumi.yaml"), 200,
			"another repository"),
		message("a merge request of a stranger", requests, request("open", 2), 200, "from another repository"),
		message("a merge request with another title", requests, request("update", 1), 200, "deploys nothing"),
		sent{"a push with the token", body, gitlabToken(webhookSecret, pushes), 200, "deployment-1"},
		sent{"the same push with the token", body, gitlabToken(webhookSecret, pushes), 409, "taken already"},
		sent{"a merge request", opened, gitlab(webhookSecret, requests, opened, "d", now), 200, "deployment-2"},
		sent{"the same merge request, signed later", opened, gitlab(webhookSecret, requests, opened, "d",
			now.Add(time.Second)), 409, "taken already"},
		message("a merged merge request", requests, request("merge", 1), 200, "deploys nothing"))
	to.deploys(t)
}
