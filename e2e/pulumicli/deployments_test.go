//go:build unix

package pulumicli

import (
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/e2e/fakecloud"
	"github.com/deployctl/deployctl/e2e/harness"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
)

// repository is a git repository that is served over HTTP, and a checkout in which it is written.
type repository struct {
	url, dir string
	password string // that its server asks for; empty: none
}

// serveRepository serves a new repository with the files, on branch main.
func serveRepository(t *testing.T, files harness.Files, password string) *repository {
	t.Helper()
	root := t.TempDir()
	r := &repository{dir: filepath.Join(t.TempDir(), "checkout"), password: password}
	bare := filepath.Join(root, "shop.git")
	git(t, root, "init", "--quiet", "--bare", "--initial-branch=main", bare)
	git(t, root, "clone", "--quiet", bare, r.dir)
	git(t, r.dir, "checkout", "--quiet", "-B", "main")
	r.commit(t, files, "The first commit")
	backend, err := exec.Command("git", "--exec-path").Output()
	harness.Must(t, err)
	handler := &cgi.Handler{Path: filepath.Join(strings.TrimSpace(string(backend)), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if _, given, _ := request.BasicAuth(); given != r.password {
			w.Header().Set("WWW-Authenticate", `Basic realm="git"`)
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, request)
	}))
	t.Cleanup(server.Close)
	r.url = server.URL + "/shop.git"
	return r
}

// commit writes files and pushes them; it returns the commit.
func (r *repository) commit(t *testing.T, files harness.Files, message string) string {
	t.Helper()
	for name, text := range files {
		path := filepath.Join(r.dir, filepath.FromSlash(name))
		harness.Must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		harness.Must(t, os.WriteFile(path, []byte(text), 0o644))
	}
	git(t, r.dir, "add", "--all")
	git(t, r.dir, "commit", "--quiet", "--message", message)
	git(t, r.dir, "push", "--quiet", "origin", "HEAD")
	return git(t, r.dir, "rev-parse", "HEAD")
}

func git(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=Ann",
		"GIT_AUTHOR_EMAIL=ann@example.com", "GIT_COMMITTER_NAME=Ann", "GIT_COMMITTER_EMAIL=ann@example.com")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// plain is a project without secrets in the repository's root; its stack configuration is in the repository, too.
var plain = harness.Files{"Pulumi.yaml": `
name: shop
runtime: yaml
config:
  size: {type: integer}
resources:
  web:
    type: fake:index:Auto
    properties: {size: "${size}"}
outputs:
  arn: ${web.arn}
`, "Pulumi.git.yaml": "config:\n  shop:size: 1\n"}

// run is `pulumi deployment run` with its log.
func run(operation string, more ...string) []string {
	return append([]string{"deployment", "run", operation, "--suppress-stream-logs=false"}, more...)
}

const gitToken = "a-token-of-the-git-server"

func TestTheStockCLIRunsDeploymentsFromGitRepositories(t *testing.T) {
	soaktest.Only(t)
	h := harness.NewHome(t, harness.Binary())
	h.Start(t)
	s := serviceOf(t, h)
	playParts(t, h, s, []part{
		{"its commands", false, deploys},
		{"stored settings and pushes", true, pushes},
		{"messages of GitHub", true, takesGitHub},
		{"messages of GitLab", true, takesGitLab},
		{"what a repository may not do", true, refusesRepositories},
		{"secrets of the configuration", true, decrypts},
		{"webhooks", true, tellsDeployments},
		{"one after the other", true, queues},
	})
}

// gitStack makes a stack, and returns the stock CLI in its project and the variable with the cloud's address.
func gitStack(t *testing.T, h *harness.Home, s service, stack string) (p *harness.Tool, cloud *fakecloud.Process,
	env string) {
	t.Helper()
	cloud, env = harness.Cloud(t)
	dir := t.TempDir()
	plain.Write(t, dir)
	p = s.login(t, h.Deployctl(dir, env))
	p.Must(t, "stack", "init", stack)
	return p, cloud, env
}

// failed runs a command that must fail and say something.
func failed(t *testing.T, tool *harness.Tool, want string, args ...string) {
	t.Helper()
	if end := tool.Run(t, args...); end.Code == 0 || !strings.Contains(end.Said(), want) {
		t.Errorf("%s ends with %d and does not say %q:\n%s", strings.Join(args, " "), end.Code, want, end.Said())
	}
}

// deploys plays the commands about deployments.
func deploys(t *testing.T, h *harness.Home, s service) {
	p, _, cloud := gitStack(t, h, s, "git")
	open := serveRepository(t, plain, "")
	said(t, p, "2 created", run("update", open.url, "--git-branch", "main", "--env", cloud)...)
	said(t, p, "2 unchanged", run("preview", open.url, "--git-branch", "main", "--env", cloud)...)

	closed := serveRepository(t, plain, gitToken)
	failed(t, p, "credentials", run("update", closed.url, "--git-branch", "main", "--env", cloud)...)
	said(t, p, "2 unchanged", run("refresh", closed.url, "--git-branch", "main", "--env", cloud,
		"--git-auth-access-token", gitToken)...)

	commit := closed.commit(t, harness.Files{"Pulumi.git.yaml": "config:\n  shop:size: 2\n"}, "A larger one")
	closed.commit(t, harness.Files{"Pulumi.git.yaml": "config:\n  shop:size: 3\n"}, "The largest one")
	remote := &harness.Tool{Path: p.Path, Dir: t.TempDir(), Env: append(append([]string{}, p.Env...),
		"PULUMI_EXPERIMENTAL=true")}
	said(t, remote, "1 updated", "up", closed.url, "--remote", "--stack", "organization/shop/git", "--remote-git-commit",
		commit, "--remote-env", cloud, "--remote-git-auth-username", "ann", "--remote-git-auth-password", gitToken,
		"--remote-pre-run-command", "test -f Pulumi.yaml && echo from the command")
	said(t, p, "succeeded", "deployment", "list")
	said(t, p, "update", "deployment", "get", "1")
	said(t, p, "from the command", "deployment", "log", "5", "--all")
	said(t, p, "has succeeded", "deployment", "log", "deployment-5", "--all")
	failed(t, p, "has ended", "deployment", "cancel", "1", "--yes")
	said(t, p, "2 deleted", run("destroy", open.url, "--git-branch", "main", "--env", cloud)...)
}
