package pythonproject

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
)

// files is a file system by path.
type files map[string]string

func (f files) read(path string) ([]byte, error) {
	text, ok := f[filepath.ToSlash(path)]
	if !ok {
		return nil, fs.ErrNotExist
	}
	return []byte(text), nil
}

func TestAProgramOfAUVWorkspaceIsFoundByItsPatterns(t *testing.T) {
	root := "[tool.uv.workspace]\nmembers = ['packages/*', 'infra']\nexclude = ['packages/old']\n"
	for dir, want := range map[string]string{
		"/repo/infra": "/repo", "/repo/packages/one": "/repo", "/repo/packages/old": "", "/repo/other": "", "/repo": "",
	} {
		got := Workspace(filepath.FromSlash(dir), filepath.FromSlash("/"), files{"/repo/pyproject.toml": root}.read)
		if filepath.ToSlash(got) != want {
			t.Errorf("%s is a member of %q", dir, got)
		}
	}
	if got := Workspace("/repo/infra", "/", files{"/repo/pyproject.toml": "["}.read); got != "" {
		t.Errorf("a manifest that cannot be read makes %q", got)
	}
}

func TestPackagesAreSharedOnlyIfNothingButTheLockFilesDecidesThem(t *testing.T) {
	noPackage := "[tool.poetry]\npackage-mode = false\n"
	for name, c := range map[string]struct {
		manager string
		files   files
		want    bool
	}{
		"names and versions": {Pip, files{
			"/requirements.txt": "pulumi>=3 # ours\npulumi-aws[x]==6.0 \\\n  --hash=sha256:0a\n"}, true},
		"another file":       {Pip, files{"/requirements.txt": "-r base.txt\n"}, false},
		"a directory":        {Pip, files{"/requirements.txt": "./lib\n"}, false},
		"the project itself": {Pip, files{"/requirements.txt": ".\n"}, false},
		"a URL":              {Pip, files{"/requirements.txt": "lib @ file:///lib\n"}, false},
		"no list":            {Pip, files{}, true},
		"uv with its root": {UV, files{"/uv.lock": "[[package]]\nname='a'\nsource={virtual='.'}\n" +
			"[[package]]\nname='b'\nsource={registry='r'}\n"}, true},
		"uv with a package of the project": {UV, files{"/uv.lock": "[[package]]\nname='a'\nsource={editable='.'}\n"}, false},
		"uv without a lock file":           {UV, files{}, false},
		"Poetry with a link":               {Poetry, files{"/poetry.lock": "", "/pyproject.toml": ""}, false},
		"Poetry without one":               {Poetry, files{"/poetry.lock": "", "/pyproject.toml": noPackage}, true},
		"Poetry with a directory": {Poetry, files{"/pyproject.toml": noPackage,
			"/poetry.lock": "[[package]]\nname='a'\n[package.source]\ntype='directory'\nurl='../a'\n"}, false},
	} {
		p := Project{Manager: c.manager, Dir: "/", Locked: len(c.files) > 0}
		if got := p.SelfContained(c.files.read); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRequirementsAreLookedForUpToTheProject(t *testing.T) {
	for _, c := range []struct{ there, want string }{
		{"/up/project/src/requirements.txt", "/up/project/src"}, {"/up/project/requirements.txt", "/up/project"},
		{"/up/requirements.txt", "/up/project"},
	} {
		p, err := Find(Program{Root: "/up/project", Dir: "/up/project/src"}, files{c.there: ""}.read)
		if err != nil || filepath.ToSlash(p.Dir) != c.want || p.Venv != "" {
			t.Errorf("%s: %+v %v", c.there, p, err)
		}
	}
}

func TestAPackageIsNamedByItsManifest(t *testing.T) {
	for text, want := range map[string]string{
		"[build-system]\nrequires=[]\n[project]\nname='parts'\n": "parts", "[project]\nname='parts'\n": "", "[": "",
	} {
		if got := Package("/", files{"/pyproject.toml": text}.read); got != want {
			t.Errorf("%s: %q", strings.TrimSpace(text), got)
		}
	}
}
