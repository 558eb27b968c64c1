//go:build unix

package monitor

import (
	"os"
	"path/filepath"
	"testing"

	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

func TestPositionsAreThoseInTheProjectByWhateverNameTheProgramGoes(t *testing.T) {
	world, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	other, real := filepath.Join(world, "other"), filepath.Join(world, "real")
	root := filepath.Join(world, "root")
	program := filepath.Join(root, "src")
	for _, err := range []error{
		os.MkdirAll(filepath.Join(other, "node_modules"), 0o700),
		os.MkdirAll(filepath.Join(real, "src"), 0o700),
		os.Symlink(real, root),
		os.Symlink(filepath.Join(other, "node_modules"), filepath.Join(program, "node_modules")),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	p := placesOf(Project{Root: root, ProgramDir: program})
	for uri, want := range map[string]string{
		"file://" + program + "/index.js":                "project:///src/index.js#3,4",
		"file://" + real + "/src/a b.js":                 "project:///src/a%20b.js#3,4",
		"file://" + other + "/node_modules/sdk/stack.ts": "project:///src/node_modules/sdk/stack.ts#3,4",
		"file://" + other + "/index.js":                  "",
		"https://" + program + "/index.js":               "",
	} {
		if got := p.position(&pulumirpc.SourcePosition{Uri: uri, Line: 3, Column: 4}); got != want {
			t.Errorf("%s is at %q, not at %q", uri, got, want)
		}
	}
}
