package docs

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var fuzzTarget = regexp.MustCompile(`(?m)^func (Fuzz\w+)\(f \*testing\.F\)`)

func TestMakePlaysEveryFuzzTarget(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	listed := map[string]bool{}
	for _, word := range strings.Fields(string(makefile)) {
		listed[word] = true
	}
	found := 0
	err = fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata"):
			return fs.SkipDir
		case !strings.HasSuffix(name, "_test.go"):
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		for _, target := range fuzzTarget.FindAllStringSubmatch(string(text), -1) {
			found++
			if at := path.Dir(name) + ":" + target[1]; !listed[at] {
				t.Errorf("the Makefile does not list %s among FUZZED or FUZZED_PARTS", at)
			}
		}
		return err
	})
	if err != nil || found == 0 {
		t.Errorf("%d targets are found: %v", found, err)
	}
}
