package s3

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox"
)

func TestADirectoryThatIsSwappedMeanwhileTellsNoNamesOfHiddenFiles(t *testing.T) {
	hidden, own, at := t.TempDir(), t.TempDir(), filepath.Join(t.TempDir(), "site")
	err := errors.Join(os.WriteFile(filepath.Join(hidden, "key"), nil, 0o600),
		os.WriteFile(filepath.Join(own, "page"), nil, 0o600), os.Symlink(own, at))
	if err != nil {
		t.Fatal(err)
	}
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.Namespace, Hide: []string{hidden}})
	if err != nil {
		t.Fatal(err)
	}
	box, err := policy.Box("mine", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = box.Close() }()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
				_ = os.Symlink([]string{own, hidden}[i%2], at+".new")
				_ = os.Rename(at+".new", at)
			}
		}
	}()
	defer func() { close(stop); <-stopped }()
	d := Directory{conn: &connection{box: box}}
	for range 500 {
		if files, err := d.list(at); err == nil && !slices.Equal(files, []string{"page"}) {
			t.Fatalf("it lists %v", files)
		}
	}
}
