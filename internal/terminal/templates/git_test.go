package templates

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository makes a git repository with one commit on the branch feature/one, and returns its address.
func repository(t *testing.T, dir string) (address string) {
	t.Helper()
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch", "feature/one"}, {"add", "--all", "--force"},
		{"-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--message", "x"},
	} {
		runGit(t, dir, args...)
	}
	return "file://" + filepath.ToSlash(dir)
}

func runGit(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

func TestATemplateIsFetchedFromARepository(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "templates.git")
	write(t, dir, map[string]string{
		"web/small/Pulumi.yaml": "name: ${PROJECT}\nruntime: yaml\n", "web/small/www/a": "a\n", "README.md": "x",
	})
	at := repository(t, dir)
	hash := runGit(t, dir, "rev-parse", "HEAD")
	runGit(t, dir, "tag", "v1")
	for _, address := range []string{
		at + "/web/small", at + "/tree/feature/one/web/small", at + "/tree/v1/web/small", at + "/tree/" + hash +
			"/web/small/",
	} {
		from, err := Git(t.Context(), address, false)
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		if from.Name != "small" || len(from.Files) != 2 || text(t, rendered(t, from, Project{"x", ""}), "www/a") != "a\n" {
			t.Errorf("%s is %+v", address, from)
		}
	}
	for address, why := range map[string]string{
		at:                         "add one of these to the address: web/small",
		at + "/web/large":          "no directory",
		at + "/tree/none/web":      "no branch and no tag",
		at + "/web/../../../x":     "has a part",
		at + "/tree/--upload/x":    "no branch and no tag",
		"http://example.com/a/b":   "https://",
		"ext::sh -c touch% /tmp/x": "not from ext://",
		"https://-x/a/b":           "no address",
		"file:///none/none.git":    "cannot fetch the template",
	} {
		_, err := Git(t.Context(), address, false)
		refuses(t, err, why)
	}
}

// TestNothingOfARepositoryIsExecuted fetches a repository that would run commands wherever git does so on a checkout.
func TestNothingOfARepositoryIsExecuted(t *testing.T) {
	dir, ran := filepath.Join(t.TempDir(), "evil.git"), filepath.Join(t.TempDir(), "ran")
	script := "#!/bin/sh\ntouch " + ran + "\n"
	write(t, dir, map[string]string{
		"Pulumi.yaml": "name: x\nruntime: yaml\n", ".gitattributes": "* filter=evil\n", "hooks/post-checkout": script,
		"HEAD": "x",
	})
	at := repository(t, dir)
	home := t.TempDir()
	write(t, home, map[string]string{
		".gitconfig": "[core]\n\thooksPath = " + home + "/hooks\n[filter \"evil\"]\n\tsmudge = touch " + ran +
			"\n[user]\n\tname = x\n",
		"hooks/reference-transaction": script, "hooks/post-checkout": script,
	})
	for _, name := range []string{"reference-transaction", "post-checkout"} {
		if err := os.Chmod(filepath.Join(home, "hooks", name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	from, err := Git(t.Context(), at, false)
	if err != nil || len(from.Files) != 4 {
		t.Fatal(from, err)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("a command of the repository, or of the user's hooks, ran")
	}
}

func TestALinkOrASubmoduleOfARepositoryIsRefused(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "links.git")
	for _, name := range []string{"a", "b"} {
		write(t, filepath.Join(dir, name), map[string]string{"Pulumi.yaml": "name: x\nruntime: yaml\n"})
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "a", "users")); err != nil {
		t.Fatal(err)
	}
	at := repository(t, dir)
	_, err := Git(t.Context(), at+"/a", false)
	refuses(t, err, "symbolic links or submodules")
	hash := runGit(t, dir, "rev-parse", "HEAD")
	runGit(t, dir, "update-index", "--add", "--cacheinfo", "160000,"+hash+",b/sub")
	runGit(t, dir, "-c", "user.name=Ann", "-c", "user.email=ann@example.com", "commit", "--quiet", "--message", "y")
	_, err = Git(t.Context(), at+"/b", false)
	refuses(t, err, "symbolic links or submodules")
}

func TestTheAddressOfATemplateIsDivided(t *testing.T) {
	for text, want := range map[string]address{
		"https://github.com/acme/stock":                  {remote: "https://github.com/acme/stock"},
		"https://github.com/acme/stock/aws-go":           {remote: "https://github.com/acme/stock", dir: "aws-go"},
		"https://github.com/acme/stock/tree/main/aws-go": {remote: "https://github.com/acme/stock", tree: "main/aws-go"},
		"https://gitlab.com/a/b/c.git/d":                 {remote: "https://gitlab.com/a/b/c.git", dir: "d"},
		"https://ann@host/a/b":                           {remote: "https://ann@host/a/b"},
		"git@github.com:acme/stock.git/aws-go":           {remote: "git@github.com:acme/stock.git", dir: "aws-go"},
		"ssh://git@host:22/a/b.git":                      {remote: "ssh://git@host:22/a/b.git"},
	} {
		if got, err := parseAddress(text); err != nil || got != want {
			t.Errorf("%s is %+v (%v)", text, got, err)
		}
	}
}
