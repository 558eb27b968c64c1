package devserver

import (
	"path/filepath"
	"testing"
)

// What starts the servers is tested where they are, in the module of deployctl-embedded.

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func mustOpen(t *testing.T, path string) home {
	t.Helper()
	h, err := openHome(path)
	must(t, err)
	return h
}

// newHome is a home whose name has every character that a file: URI gives a meaning to.
func newHome(t *testing.T) string { return filepath.Join(t.TempDir(), "a home?#%20&é") }
