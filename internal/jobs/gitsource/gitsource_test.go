//go:build unix

package gitsource

import (
	"context"
	"fmt"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
)

func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == Name {
		os.Exit(Main())
	}
	os.Exit(m.Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// repository is a bare repository with a commit on main.
type repository struct{ root, bare, commit string }

func newRepository(t *testing.T, files map[string]string) repository {
	t.Helper()
	root := t.TempDir()
	r := repository{root: root, bare: filepath.Join(root, "shop.git")}
	work := filepath.Join(root, "work")
	runGit(t, root, "init", "--quiet", "--bare", "--initial-branch=main", r.bare)
	runGit(t, root, "clone", "--quiet", r.bare, work)
	runGit(t, work, "checkout", "--quiet", "-B", "main")
	for name, text := range files {
		path := filepath.Join(work, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, link := strings.CutPrefix(text, "-> "); link {
			must(t, os.Symlink(target, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	runGit(t, work, "add", "--all")
	runGit(t, work, "commit", "--quiet", "--allow-empty", "--message", "The first\n\nwith more")
	runGit(t, work, "push", "--quiet", "origin", "main")
	r.commit = runGit(t, work, "rev-parse", "HEAD")
	return r
}

func runGit(t *testing.T, dir string, args ...string) string {
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

// serve serves a repository over HTTP to whoever has the password.
func (r repository) serve(t *testing.T, password string) *httptest.Server {
	t.Helper()
	backend := &cgi.Handler{Path: filepath.Join(runGit(t, r.root, "--exec-path"), "git-http-backend"),
		Env: []string{"GIT_PROJECT_ROOT=" + r.root, "GIT_HTTP_EXPORT_ALL=1"}}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if _, given, _ := q.BasicAuth(); given != password {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		backend.ServeHTTP(w, q)
	}))
	t.Cleanup(server.Close)
	return server
}

// fetched has the process fetch; it returns the directory and what it said.
func fetched(t *testing.T, o FetchOrder) (Fetched, string, error) {
	t.Helper()
	o.Dir = filepath.Join(t.TempDir(), "checkout")
	var said []string
	s := Starter{Box: sandbox.Open(), Said: func(line string) { said = append(said, line) }}
	f, err := s.Fetch(t.Context(), o)
	if text := strings.Join(said, "\n"); o.Auth.Password != "" && strings.Contains(text, o.Auth.Password) {
		t.Errorf("it says the password: %s", text)
	}
	return f, o.Dir, err
}

func TestABranchOrACommitIsFetched(t *testing.T) {
	r := newRepository(t, map[string]string{"a/b": "text"})
	at := r.serve(t, "word").URL + "/shop.git"
	for what, o := range map[string]FetchOrder{
		"a branch": {Branch: "main"}, "a commit": {Commit: r.commit}, "a short commit": {Commit: r.commit[:10]},
		"the default branch": {},
	} {
		o.URL, o.Private, o.Auth.Password = at, true, "word"
		f, dir, err := fetched(t, o)
		text, _ := os.ReadFile(filepath.Join(dir, "a", "b"))
		if err != nil || f.Commit != r.commit || f.Message != "The first" || string(text) != "text" {
			t.Errorf("%s: %+v, %q, %v", what, f, text, err)
		}
	}
	for why, o := range map[string]FetchOrder{
		"no branch \"other\"": {Branch: "other"}, "no commit": {Commit: strings.Repeat("ab", 20)},
		"no repository": {URL: strings.Replace(at, "shop", "none", 1)},
	} {
		if o.URL == "" {
			o.URL = at
		}
		o.Private, o.Auth.Password = true, "word"
		if _, _, err := fetched(t, o); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
	_, _, err := fetched(t, FetchOrder{URL: at, Private: true, Auth: Auth{Password: "a wrong one"}})
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "credentials") {
		t.Errorf("with a wrong password: %v", err)
	}
}

func TestACommitIsGivenByItsDigitsATagOrABranch(t *testing.T) {
	r := newRepository(t, map[string]string{"a": "first"})
	work := filepath.Join(r.root, "work")
	runGit(t, work, "tag", "v1")
	runGit(t, work, "tag", "--annotate", "--message", "about it", "release/1.0")
	runGit(t, work, "tag", "cafecafecafe") // which no commit begins with
	runGit(t, work, "tag", "nothing", "HEAD:a")
	runGit(t, work, "checkout", "--quiet", "-b", "feature/x")
	runGit(t, work, "commit", "--quiet", "--allow-empty", "--message", "The second")
	second := runGit(t, work, "rev-parse", "HEAD")
	runGit(t, work, "tag", second[:8], r.commit) // a commit goes before who takes its name
	runGit(t, work, "checkout", "--quiet", "--detach")
	runGit(t, work, "commit", "--quiet", "--allow-empty", "--message", "The third")
	runGit(t, work, "tag", "only-tagged")
	third := runGit(t, work, "rev-parse", "HEAD")
	runGit(t, work, "push", "--quiet", "origin", "main", "feature/x", "--tags")
	at := r.serve(t, "").URL + "/shop.git"
	for given, want := range map[string]string{
		"v1": r.commit, "release/1.0": r.commit, "cafecafecafe": r.commit, second[:8]: second, "main": r.commit,
		"feature/x": second, "only-tagged": third, second: second, second[:7]: second, strings.ToUpper(second[:10]): second,
		third[:9]: third, third: third,
	} {
		if f, _, err := fetched(t, FetchOrder{URL: at, Private: true, Commit: given}); err != nil || f.Commit != want {
			t.Errorf("%s is %+v, %v", given, f, err)
		}
	}
	for _, given := range []string{"v2", "abc", "HEAD~1", "main^", "refs/heads/main:x", "*", "v1..main", "@{-1}",
		"nothing", strings.Repeat("ab", 20), strings.Repeat("0", 12)} {
		_, _, err := fetched(t, FetchOrder{URL: at, Private: true, Commit: given})
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "no commit") {
			t.Errorf("%s: %v", given, err)
		}
	}
	begin := alike(t, r)
	_, _, err := fetched(t, FetchOrder{URL: at, Private: true, Commit: begin})
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), "begin with \""+begin) {
		t.Errorf("%s: %v", begin, err)
	}
	empty := repository{root: t.TempDir()}
	runGit(t, empty.root, "init", "--quiet", "--bare", filepath.Join(empty.root, "shop.git"))
	_, _, err = fetched(t, FetchOrder{URL: empty.serve(t, "").URL + "/shop.git", Private: true, Commit: "v1"})
	if err == nil || !strings.Contains(err.Error(), "no commit \"v1\"") {
		t.Errorf("of an empty repository: %v", err)
	}
}

// alike makes a branch on which some commits begin with the same four digits, and returns them.
func alike(t *testing.T, r repository) string {
	t.Helper()
	var many strings.Builder
	for n := range 1000 {
		fmt.Fprintf(&many, "commit refs/heads/many\ncommitter Ann <ann@example.com> %d +0000\ndata 0\n\n", n+1)
	}
	cmd := exec.Command("git", "fast-import", "--quiet")
	cmd.Dir, cmd.Stdin = r.bare, strings.NewReader(many.String())
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git fast-import: %v\n%s", err, out)
	}
	seen := map[string]bool{}
	for _, hash := range strings.Fields(runGit(t, r.bare, "rev-list", "many")) {
		if seen[hash[:4]] {
			return hash[:4]
		}
		seen[hash[:4]] = true
	}
	t.Fatal("no two commits begin alike")
	return ""
}

func TestOnlyAllowedServersAreAsked(t *testing.T) {
	r := newRepository(t, nil)
	server := r.serve(t, "")
	if _, _, err := fetched(t, FetchOrder{URL: server.URL + "/shop.git"}); err == nil ||
		!strings.Contains(err.Error(), "deployments.private-hosts") {
		t.Errorf("a server on loopback: %v", err)
	}
	if _, _, err := fetched(t, FetchOrder{URL: server.URL + "/shop.git", Hosts: []string{"127.0.0.1"}}); err != nil {
		t.Errorf("a server that is listed: %v", err)
	}
	asked := ""
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		asked = q.Header.Get("Authorization")
	}))
	defer thief.Close()
	redirects := httptest.NewServer(http.RedirectHandler(thief.URL+"/shop.git/info/refs", http.StatusFound))
	defer redirects.Close()
	_, _, err := fetched(t, FetchOrder{URL: redirects.URL + "/shop.git", Private: true, Auth: Auth{Password: "word"}})
	if err == nil || asked != "" {
		t.Errorf("another server gets %q: %v", asked, err)
	}
	for _, url := range []string{"file://" + r.bare, r.bare, "git://127.0.0.1/shop.git", "ext::sh"} {
		if _, _, err := fetched(t, FetchOrder{URL: url, Private: true}); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// shelf is a service that keeps what is packed.
type shelf struct {
	manifest deployments.Manifest
	files    map[string]string
}

func (s *shelf) Missing(_ context.Context, _ deployments.StackName, m deployments.Manifest) ([]string, error) {
	var all []string
	for _, f := range m.Files {
		all = append(all, f.Digest)
	}
	return all, nil
}

func (s *shelf) PutFile(_ context.Context, _ deployments.StackName, digest string, content []byte) error {
	s.files[digest] = string(content)
	return nil
}

func (s *shelf) PutManifest(_ context.Context, _ deployments.StackName, m deployments.Manifest) (string, error) {
	s.manifest = m
	return "the bundle", nil
}

func (s *shelf) Decrypt(_ context.Context, _ deployments.StackName, sealed []string) ([]string, error) {
	plain := make([]string, len(sealed))
	for i, text := range sealed {
		plain[i] = strings.TrimPrefix(text, "sealed ")
	}
	return plain, nil
}

const projectFile = "name: shop\nruntime: yaml\n"

func packed(t *testing.T, files map[string]string, dir string) (Packed, *shelf, error) {
	t.Helper()
	root := t.TempDir()
	for name, text := range files {
		path := filepath.Join(root, name)
		must(t, os.MkdirAll(filepath.Dir(path), 0o755))
		if target, link := strings.CutPrefix(text, "-> "); link {
			must(t, os.Symlink(target, path))
			continue
		}
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	s := &shelf{files: map[string]string{}}
	p, err := Starter{Box: sandbox.Open(), Said: func(line string) { t.Log(line) }}.Pack(t.Context(), PackOrder{Root: root,
		Dir: dir, Stack: deployments.StackName{Organization: "acme", Project: "shop", Stack: "dev"}}, s)
	if err != nil && strings.Contains(err.Error(), root) {
		t.Errorf("the error has the path of the checkout: %v", err)
	}
	return p, s, err
}

func TestAProjectIsReadAndUploaded(t *testing.T) {
	p, s, err := packed(t, map[string]string{"infra/Pulumi.yaml": projectFile, "infra/program": "text", "README": "x",
		"infra/Pulumi.dev.yaml": "config:\n  shop:size: 3\n  shop:password:\n    secure: sealed word\n"}, "infra")
	if err != nil || p.Bundle != "the bundle" || p.Config["shop:size"].Value != "3" ||
		p.Config["shop:password"] != (deployments.ConfigValue{Value: "word", Secret: true}) ||
		p.Secrets.Type != deployments.SecretsService {
		t.Errorf("%+v, %v", p, err)
	}
	if len(s.manifest.Files) != 3 || s.files[s.manifest.Files[2].Digest] != "text" {
		t.Errorf("%+v", s)
	}
}

func TestWhatIsNoProjectOfTheStackIsRefused(t *testing.T) {
	for why, files := range map[string]map[string]string{
		"Pulumi.yaml":         {"README": "x"},
		"is of another one":   {"Pulumi.yaml": "name: other\nruntime: yaml\n"},
		"outside the project": {"Pulumi.yaml": projectFile, "link": "-> /etc/passwd"},
		"with a passphrase":   {"Pulumi.yaml": projectFile, "Pulumi.dev.yaml": "encryptionsalt: v1:AAAA:v1:x\n"},
		"project file is not": {"Pulumi.yaml": "- x"},
		"key management service": {"Pulumi.yaml": projectFile,
			"Pulumi.dev.yaml": "secretsprovider: awskms://x\nencryptedkey: AAAA\n"},
	} {
		if _, _, err := packed(t, files, ""); deployments.CodeOf(err) != deployments.CodeInvalid ||
			!strings.Contains(err.Error(), why) {
			t.Errorf("%s: %v", why, err)
		}
	}
}
