package docs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"golang.org/x/mod/modfile"
)

// ofItsOwn are the modules that a tool of `make test` has in another version than the product, with the reason.
var ofItsOwn = map[string]map[string]string{
	"peers": {
		"gocloud.dev": "the stock CLI needs what the product's version does not have",
	},
	"lint": {
		"github.com/Masterminds/semver/v3": "the linter needs it",
		"github.com/mattn/go-colorable":    "the linter needs it",
		"github.com/rogpeppe/go-internal":  "the linter needs it",
		"github.com/sirupsen/logrus":       "the linter needs it",
	},
}

// TestWhatTheToolsShareWithTheProductIsCompiledOnce holds that the tools of `make test`, and the servers of
// `make test-production`, have the modules that the product has in its versions. Another version of one is compiled
// once more, and so is all that imports it: a tenth of the first `make test` of a machine.
func TestWhatTheToolsShareWithTheProductIsCompiledOnce(t *testing.T) {
	product := requirements(t, ".")
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

// requirements returns the versions of the modules that the go.mod in a directory of the tree names: those that it asks
// for, or that it replaces them with.
func requirements(t *testing.T, dir string) map[string]string {
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
	versions := map[string]string{}
	for _, r := range file.Require {
		versions[r.Mod.Path] = r.Mod.Version
	}
	for _, r := range file.Replace {
		if _, required := versions[r.Old.Path]; required && r.New.Version != "" {
			versions[r.Old.Path] = r.New.Version
		}
	}
	return versions
}
