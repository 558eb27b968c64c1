package docs

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"golang.org/x/mod/modfile"
)

// ofItsOwn are the modules that a tool of `make test` has in another version than the product, with the reason.
var ofItsOwn = map[string]map[string]string{
	"peers": {
		"gocloud.dev":             "the stock CLI needs what the product's version does not have",
		"github.com/google/pprof": "e2e names it for tests of SQLite, which are not compiled",
	},
	"lint": {
		"github.com/Masterminds/semver/v3": "the linter needs it",
		"github.com/mattn/go-colorable":    "the linter needs it",
		"github.com/rogpeppe/go-internal":  "the linter needs it",
		"github.com/sirupsen/logrus":       "the linter needs it",
	},
}

// ofTheEmbeddedService are modules that the product does not need: they are what the embedded servers are made of.
var ofTheEmbeddedService = []string{"go.temporal.io/server", "github.com/temporalio/ui-server/v2",
	"github.com/versity/versitygw", "modernc.org/sqlite", "github.com/gofiber/fiber/v3", "github.com/labstack/echo/v4",
	"go.uber.org/fx"}

// TestTheModulesOfTheWorkspaceHaveTheSameVersions holds that a module is built with the same versions in the workspace
// and without it: a workspace takes the highest version that one of its modules asks for.
func TestTheModulesOfTheWorkspaceHaveTheSameVersions(t *testing.T) {
	dirs, language := workspace(t)
	first := map[string]string{} // the module that requires a module first
	versions := map[string]string{}
	for _, dir := range dirs {
		file := goMod(t, dir)
		if file.Go.Version != language {
			t.Errorf("%s/go.mod has go %s, go.work has %s", dir, file.Go.Version, language)
		}
		for _, r := range file.Require {
			path, version := r.Mod.Path, r.Mod.Version
			if known, ok := versions[path]; ok && known != version {
				t.Errorf("%s has %s in version %s, %s in %s: raise it in both with go -C DIR get", first[path], path, known,
					dir, version)
			}
			first[path], versions[path] = dir, version
		}
	}
	if len(dirs) < 3 || len(versions) < 100 {
		t.Errorf("the modules %v require %d others", dirs, len(versions))
	}
}

// TestTheProductNeedsNoEmbeddedServer holds that the product's go.mod lists what the product needs. It replaces
// nothing, because what imports a module does not see its replacements.
func TestTheProductNeedsNoEmbeddedServer(t *testing.T) {
	file := goMod(t, ".")
	for _, r := range file.Require {
		if slices.Contains(ofTheEmbeddedService, r.Mod.Path) {
			t.Errorf("the product's go.mod requires %s, which is for deployctl-embedded and e2e", r.Mod.Path)
		}
	}
	for _, r := range file.Replace {
		t.Errorf("the product's go.mod replaces %s", r.Old.Path)
	}
}

// TestWhatTheToolsShareWithTheProductIsCompiledOnce holds that the tools of `make test`, and the servers of
// `make test-production`, have the modules that the workspace has in its versions. Another version of one is compiled
// once more, and so is all that imports it: a tenth of the first `make test` of a machine.
func TestWhatTheToolsShareWithTheProductIsCompiledOnce(t *testing.T) {
	product := map[string]string{}
	dirs, _ := workspace(t)
	for _, dir := range dirs {
		maps.Copy(product, requirements(t, dir))
	}
	for _, dir := range dirs { // what one replaces is replaced in the whole workspace
		maps.Copy(product, replacements(goMod(t, dir)))
	}
	for _, tool := range []string{"peers", "fakeprovider", "lint", "workflowcheck", "crosscheck", "temporal",
		"versitygw"} {
		own := requirements(t, filepath.Join("tools", tool))
		for path, version := range own {
			wanted, shared := product[path]
			switch _, excepted := ofItsOwn[tool][path]; {
			case shared && version != wanted && !excepted:
				t.Errorf("tools/%s has %s in version %s, the product in %s: go -C tools/%[1]s get %[2]s@%[4]s, or replace it",
					tool, path, version, wanted)
			case version == wanted && excepted:
				t.Errorf("tools/%s has %s in the product's version and needs no exception", tool, path)
			}
		}
		for path := range ofItsOwn[tool] {
			if own[path] == "" {
				t.Errorf("tools/%s does not have %s and needs no exception for it", tool, path)
			}
		}
	}
}

// TestWhatIsReleasedIsBuiltAsItWasTested holds that a release and the tests are built with the same flags.
func TestWhatIsReleasedIsBuiltAsItWasTested(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	flags := regexp.MustCompile(`(?m)^export GOFLAGS := (.*)$`).FindSubmatch(makefile)
	release, err := os.ReadFile(filepath.Join(root, "tools", "release", "build.go"))
	if err != nil {
		t.Fatal(err)
	}
	if flags == nil || !bytes.Contains(release, fmt.Appendf(nil, "const goflags = %q\n", flags[1])) {
		t.Errorf("tools/release/build.go does not build with the Makefile's GOFLAGS %q", flags)
	}
}

// workspace returns the directories of the modules that are built together, and their version of Go.
func workspace(t *testing.T) (dirs []string, language string) {
	t.Helper()
	path := filepath.Join(root, "go.work")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.ParseWork(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range file.Use {
		dirs = append(dirs, use.Path)
	}
	return dirs, file.Go.Version
}

// goMod reads the go.mod in a directory of the tree.
func goMod(t *testing.T, dir string) *modfile.File {
	t.Helper()
	path := filepath.Join(root, dir, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// requirements returns the versions of the modules that the go.mod in a directory of the tree names: those that it asks
// for, or that it replaces them with.
func requirements(t *testing.T, dir string) map[string]string {
	t.Helper()
	versions, file := map[string]string{}, goMod(t, dir)
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for path, version := range replacements(file) {
		if _, required := versions[path]; required {
			versions[path] = version
		}
	}
	return versions
}

// replacements returns the versions by which a module replaces those of others.
func replacements(file *modfile.File) map[string]string {
	versions := map[string]string{}
	for _, r := range file.Replace {
		if r.New.Version != "" {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions
}
