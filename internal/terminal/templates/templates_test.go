package templates

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/pulumi/pulumi/sdk/v3/go/common/workspace"
)

// rendered makes a project of a template in a directory.
func rendered(t *testing.T, from *Template, p Project) (dir string) {
	t.Helper()
	files, err := from.Render(p)
	if err != nil {
		t.Fatal(err)
	}
	dir = filepath.Join(t.TempDir(), "project")
	if err := Write(dir, files); err != nil {
		t.Fatal(err)
	}
	return dir
}

func text(t *testing.T, path ...string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// refuses checks that an error is the user's to solve and says why.
func refuses(t *testing.T, err error, why string) {
	t.Helper()
	if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), why) {
		t.Errorf("the error is %v, not one with %q", err, why)
	}
}

func TestEveryBuiltInTemplateMakesAProject(t *testing.T) {
	for _, name := range Names {
		from, err := Builtin(name)
		if err != nil {
			t.Fatal(name, err)
		}
		if from.Description == "" || len(from.Description) > 80 {
			t.Errorf("%s describes itself as %q", name, from.Description)
		}
		dir := rendered(t, from, Project{"shop", `Our "shop": open`})
		project, err := workspace.LoadProject(filepath.Join(dir, projectFile))
		if err != nil {
			t.Fatal(name, err)
		}
		want := map[string]string{"go-provider": "shop-example"}[name] // its package is shop
		if string(project.Name) != cmp.Or(want, "shop") || *project.Description != `Our "shop": open` || project.Template != nil {
			t.Errorf("%s makes %+v", name, project)
		}
		for _, f := range from.Files {
			if left := text(t, dir, f.Path); strings.Contains(left, "${PROJECT}") ||
				strings.Contains(left, "${DESCRIPTION}") {
				t.Errorf("%s leaves a placeholder in %s", name, f.Path)
			}
		}
	}
}

// TestTheGoProviderCompilesAndItsTestsPass makes a provider as a user does, beside this clone.
func TestTheGoProviderCompilesAndItsTestsPass(t *testing.T) {
	soaktest.Only(t)
	from, err := Builtin("go-provider")
	if err != nil {
		t.Fatal(err)
	}
	dir := rendered(t, from, Project{"my-notes", "Notes"})
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "go.sum"), []byte(text(t, root, "go.sum")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"mod", "edit", "-replace", "github.com/deployctl/deployctl=" + root}, {"vet", "./..."}, {"test", "./..."},
		{"build", "-o", "bin/pulumi-resource-my-notes", "."},
	} {
		cmd := exec.Command("go", args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("go %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if out, err := exec.Command("gofmt", "-l", dir).CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("gofmt: %s (%v)", out, err)
	}
}

func TestPlaceholdersAreReplacedInNamesAndContents(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"Pulumi.yaml": "# kept\nname: ${PROJECT}\nruntime: nodejs # kept, too\nmain: ${PROJECT}/index.ts\n" +
			"template:\n  config:\n    size: {description: How large, default: \"3\"}\n    aws:token: {secret: true}\n",
		"${PROJECT}/index.ts": "// ${PROJECT}: ${DESCRIPTION} ${HOME}\n",
		"package.json":        `{"name": "${PROJECT}", "description": "${DESCRIPTION}"}`,
		"logo.png":            "\x00${PROJECT}",
	})
	from, err := FromDirectory(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []Question{{"aws:token", "", "", true}, {"size", "How large", "3", false}}
	if !slices.Equal(from.Questions, want) {
		t.Errorf("it asks %+v", from.Questions)
	}
	made := rendered(t, from, Project{"shop", `a "b" <c>`})
	for name, want := range map[string]string{
		"Pulumi.yaml": "# kept\nname: shop\ndescription: a \"b\" <c>\nruntime: nodejs # kept, too\n" +
			"main: shop/index.ts\n",
		"shop/index.ts": "// shop: a \"b\" <c> ${HOME}\n",
		"package.json":  `{"name": "shop", "description": "a \"b\" <c>"}`,
		"logo.png":      "\x00${PROJECT}",
	} {
		if got := text(t, made, name); got != want {
			t.Errorf("%s is %q", name, got)
		}
	}
	if _, err := from.Render(Project{"shop", "a\x1b[2Jb"}); err == nil {
		t.Error("a description with control characters is accepted")
	}
	_, err = from.Render(Project{"../shop", ""})
	refuses(t, err, "cannot be the name of a project")
}

func TestATemplateThatReachesBeyondItsProjectIsRefused(t *testing.T) {
	project := File{Path: projectFile, Content: []byte("name: x\nruntime: yaml\n")}
	for name, c := range map[string]struct {
		file File
		why  string
	}{
		"a path that leads out":          {File{Path: "../x"}, "not in its directory"},
		"an absolute path":               {File{Path: "/etc/x"}, "not in its directory"},
		"a path with backslashes":        {File{Path: `..\x`}, "not in its directory"},
		"a path that is not clean":       {File{Path: "a/./b"}, "not in its directory"},
		"a hook of git":                  {File{Path: "a/.GIT/hooks/post-checkout"}, "git repository's own files"},
		"git's short name on Windows":    {File{Path: "git~1/config"}, "git repository's own files"},
		"a name with control characters": {File{Path: "a\x1b[2J"}, "control characters"},
		"a file that is too large":       {File{Path: "a", Content: make([]byte, maxFile+1)}, "too large"},
		"a key for secrets": {File{Path: "Pulumi.dev.yaml", Content: []byte("encryptedkey: x\n")},
			"its maker knows"},
		"a project file of another form": {File{Path: "Pulumi.json", Content: []byte("{}")}, "must be named"},
		"files of others to take along": {File{Path: "sub/Pulumi.yaml",
			Content: []byte("deploy: {include: [../../../.ssh]}\n")}, "outside the project"},
		"configuration elsewhere": {File{Path: "sub/Pulumi.yaml",
			Content: []byte("stackConfigDir: ../..\n")}, "outside the project"},
	} {
		if _, err := parse("x", []File{project, c.file}); err == nil {
			t.Errorf("%s is accepted", name)
		} else {
			refuses(t, err, c.why)
		}
	}
	_, err := parse("x", slices.Repeat([]File{project}, maxFiles+1))
	refuses(t, err, "at most")
	_, err = parse("x", nil)
	refuses(t, err, "no Pulumi.yaml")
}

func TestALinkOfATemplateIsNotFollowed(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"Pulumi.yaml": "name: x\nruntime: yaml\n", ".git/config": "x"})
	if _, err := FromDirectory(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "users")); err != nil {
		t.Fatal(err)
	}
	_, err := FromDirectory(dir)
	refuses(t, err, "symbolic links")
}

func TestALinkInTheDirectoryOfAProjectIsNotFollowed(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	for link, to := range map[string]string{"out": elsewhere, "file": filepath.Join(elsewhere, "kept")} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, elsewhere, map[string]string{"kept": "kept"})
	if err := Write(dir, []File{{Path: "out/x", Content: []byte("x")}}); err == nil {
		t.Error("a file is written through a link")
	}
	if err := Write(dir, []File{{Path: "file", Content: []byte("x")}}); err != nil {
		t.Fatal(err)
	}
	if got := text(t, elsewhere, "kept"); got != "kept" {
		t.Errorf("the link's file is overwritten with %q", got)
	}
}

func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
