package project

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

// lay writes a tree of files and gives its root. A text that begins with "-> " is a symbolic link.
func lay(t *testing.T, files map[string]string) string {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if target, isLink := strings.CutPrefix(text, "-> "); isLink {
			err = os.Symlink(target, path)
		} else {
			err = os.WriteFile(path, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func gather(t *testing.T, dir string) (*Bundle, error) {
	t.Helper()
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	return p.Gather()
}

func paths(b *Bundle) []string {
	var list []string
	for _, f := range b.Manifest.Files {
		list = append(list, f.Path)
	}
	return list
}

const definition = "name: shop\nruntime: yaml\n"

func TestABundleIsTheProjectWithoutWhatIsIgnored(t *testing.T) {
	dir := lay(t, map[string]string{
		"Pulumi.yaml": definition, "src/index.ts": "1", "src/generated/a.ts": "2", "src/generated/keep.ts": "3",
		"build":                   "a file",
		"node_modules/x/index.js": "no", "src/node_modules/y.js": "no", ".git/HEAD": "no", "venv/pyvenv.cfg": "no",
		"venv/bin/python": "no",
		".gitignore":      "src\n", "notes.log": "no", "docs/a/b.log": "no", "docs/a/b.txt": "yes", "out/build/x": "no",
		".deployctlignore": "# comment\n*.log\nsrc/generated/*\n!src/generated/keep.ts\nbuild/\n/docs/**/c.txt\n",
	})
	b, err := gather(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".deployctlignore", ".gitignore", "Pulumi.yaml", "build", "docs/a/b.txt", "src/generated/keep.ts",
		"src/index.ts"}
	if got := paths(b); !slices.Equal(got, want) {
		t.Errorf("the bundle holds %q, want %q", got, want)
	}
	if b.Manifest.Dir != "" {
		t.Errorf("the program is in %q", b.Manifest.Dir)
	}
}

func TestADefaultThatIsIgnoredCanBeTakenBack(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition, "node_modules/x.js": "1",
		".deployctlignore": "!node_modules/\n"})
	b, err := gather(t, dir)
	if err != nil || !slices.Contains(paths(b), "node_modules/x.js") {
		t.Errorf("the bundle holds %q, %v", paths(b), err)
	}
}

func TestPolicyPacksAreDirectoriesOfTheBundle(t *testing.T) {
	dir := lay(t, map[string]string{
		"project/Pulumi.yaml": definition, "rules/PulumiPolicy.yaml": "runtime: nodejs\n", "rules/index.js": "1",
		"rules/node_modules/x.js": "no", "rules/secret": "no", "rules/.deployctlignore": "secret\n", "empty/x": "1",
	})
	p, err := Find(filepath.Join(dir, "project"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := p.Gather(filepath.Join(dir, "rules"), filepath.Join(dir, "rules"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"Pulumi.yaml"}
	for n := range 2 {
		for _, name := range []string{".deployctlignore", "PulumiPolicy.yaml", "index.js"} {
			want = append(want, fmt.Sprintf(".deployctl-policies/%d/rules/", n)+name)
		}
	}
	slices.Sort(want)
	if got := paths(b); !slices.Equal(got, want) {
		t.Errorf("the bundle holds %q, want %q", got, want)
	}
	if _, err := p.Gather(filepath.Join(dir, "empty")); err == nil || !strings.Contains(err.Error(), "PulumiPolicy.yaml") {
		t.Errorf("a directory without PulumiPolicy.yaml: %v", err)
	}
}

func TestPathsOutsideAreIncludedOnRequest(t *testing.T) {
	root := lay(t, map[string]string{
		"app/Pulumi.yaml": definition + "deploy:\n  include: [../shared, ../VERSION]\n",
		"app/link":        "-> ../shared/lib.js",
		"shared/lib.js":   "1", "shared/node_modules/x.js": "no", "VERSION": "2", "other/secret": "no",
	})
	b, err := gather(t, filepath.Join(root, "app"))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := paths(b), []string{"VERSION", "app/Pulumi.yaml", "app/link", "shared/lib.js"}; !slices.Equal(got,
		want) || b.Manifest.Dir != "app" {
		t.Errorf("the bundle holds %q in %q, want %q", got, b.Manifest.Dir, want)
	}
	if b.Manifest.Files[2].Digest != b.Manifest.Files[3].Digest {
		t.Error("a link's content is not what it leads to")
	}
}

func TestAProgramOfAWorkspaceTakesTheWorkspaceAlong(t *testing.T) {
	takesWorkspaceAlong(t, map[string]string{
		"package.json": `{"workspaces": ["libs/*", "infra"]}`, "package-lock.json": "{}",
		"libs/ours/package.json": `{"name": "@corp/ours"}`,
		"infra/package.json":     `{"dependencies": {"@corp/ours": "^1.0.0"}}`,
		"infra/Pulumi.yaml":      "name: shop\nruntime: nodejs\n",
	})
	takesWorkspaceAlong(t, map[string]string{
		"pyproject.toml": "[tool.uv.workspace]\nmembers = ['libs/*', 'infra']\n", "uv.lock": "version = 1\n",
		"libs/ours/package.json": "", "libs/ours/pyproject.toml": "[project]\nname = 'ours'\n",
		"infra/pyproject.toml": "[project]\nname = 'infra'\ndependencies = ['ours']\n",
		"infra/Pulumi.yaml":    "name: shop\nruntime: python\n",
	})
}

func takesWorkspaceAlong(t *testing.T, files map[string]string) {
	t.Helper()
	root := lay(t, files)
	if _, err := gather(t, filepath.Join(root, "infra")); err == nil ||
		!strings.Contains(err.Error(), `add ".." to deploy.include`) {
		t.Errorf("without its workspace: %v", err)
	}
	files["infra/Pulumi.yaml"] += "deploy: {include: [..]}\n"
	root = lay(t, files)
	b, err := gather(t, filepath.Join(root, "infra"))
	if err != nil || b.Manifest.Dir != "infra" || !slices.Contains(paths(b), "libs/ours/package.json") {
		t.Errorf("%v %v", b, err)
	}
}

func TestLinksThatCannotTravelAreRefused(t *testing.T) {
	for sentence, target := range map[string]string{
		"outside the project": "-> /etc", "leads nowhere": "-> nothing", "a directory that it is in": "-> .",
	} {
		dir := lay(t, map[string]string{"Pulumi.yaml": definition, "sub/link": target})
		if _, err := gather(t, dir); err == nil || !strings.Contains(err.Error(), sentence) {
			t.Errorf("%s: %v", target, err)
		}
		if err := os.WriteFile(filepath.Join(dir, IgnoreFile), []byte("sub/link\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := gather(t, dir); err != nil {
			t.Errorf("%s, ignored: %v", target, err)
		}
	}
}

func TestAFileThatIsTooLargeIsNamed(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition})
	file, err := os.Create(filepath.Join(dir, "disk.img"))
	if err == nil {
		err = file.Truncate(MaxFile + 1)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, err := gather(t, dir); err == nil || !strings.Contains(err.Error(), "disk.img is 256 MiB") ||
		!strings.Contains(err.Error(), IgnoreFile) {
		t.Error(err)
	}
}

func TestModesAreOnlyWhetherAFileRuns(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition, "run.sh": "1"})
	if err := os.Chmod(filepath.Join(dir, "run.sh"), 0o700); err != nil {
		t.Fatal(err)
	}
	b, err := gather(t, dir)
	if err != nil || b.Manifest.Files[0].Mode != 0o644 || b.Manifest.Files[1].Mode != 0o755 {
		t.Errorf("%+v, %v", b.Manifest.Files, err)
	}
}

// shelf is a service that has some files.
type shelf struct {
	has []string
	put []string
}

func (s *shelf) Missing(_ context.Context, _ deployments.StackName, m deployments.Manifest) ([]string, error) {
	var missing []string
	for _, f := range m.Files {
		if !slices.Contains(s.has, f.Digest) {
			missing = append(missing, f.Digest)
		}
	}
	return missing, nil
}

func (s *shelf) PutFile(_ context.Context, _ deployments.StackName, _ string, content []byte) error {
	s.put = append(s.put, string(content))
	return nil
}

func (s *shelf) PutManifest(context.Context, deployments.StackName, deployments.Manifest) (string, error) {
	return "bundle", nil
}

func TestOnlyWhatIsMissingIsUploaded(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition, "a.txt": "there", "b.txt": "new"})
	b, err := gather(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	s := &shelf{has: []string{b.Manifest.Files[0].Digest, b.Manifest.Files[1].Digest}}
	if _, err := b.Upload(t.Context(), s, deployments.StackName{}); err != nil ||
		!slices.Equal(s.put, []string{"new"}) {
		t.Errorf("uploaded %q, %v", s.put, err)
	}
}

func TestAFileThatChangesWhileItIsUploadedIsNamed(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": definition, "a.txt": "one"})
	b, err := gather(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte("two"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Upload(t.Context(), &shelf{}, deployments.StackName{}); err == nil ||
		!strings.Contains(err.Error(), "a.txt changed while") {
		t.Error(err)
	}
}

func TestAFileWhoseNameIsNotUTF8IsNamed(t *testing.T) {
	dir := lay(t, map[string]string{"Pulumi.yaml": "name: web\nruntime: yaml\n"})
	if err := os.WriteFile(filepath.Join(dir, "caf\xe9.txt"), nil, 0o600); err != nil {
		t.Skip("the file system has no such names")
	}
	p, err := Find(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Gather(); err == nil || !strings.Contains(err.Error(), `caf\xe9.txt" is not UTF-8`) {
		t.Errorf("it is gathered with %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, IgnoreFile), []byte("caf?.txt\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Gather(); err != nil {
		t.Errorf("it is not excluded: %v", err)
	}
}
