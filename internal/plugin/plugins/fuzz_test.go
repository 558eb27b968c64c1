package plugins

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// FuzzLocks reads lock files of projects of strangers.
func FuzzLocks(f *testing.F) {
	f.Add([]byte("lock: 1\nplugins:\n- {kind: resource, name: aws, version: 1.2.3, sha256: {linux-amd64: aa}}\n"))
	f.Add([]byte("lock: &a 1\nplugins: [*a, *a]"))
	f.Add([]byte("a: &a [x, x]\nb: &b [*a, *a]\nlock: 1\nplugins: *b"))
	f.Fuzz(func(t *testing.T, text []byte) {
		l, err := ParseLock(text)
		if err != nil {
			return
		}
		for _, one := range l.Plugins {
			if found := l.Find(one.plugin()); found == nil || found.Name != one.Name {
				t.Errorf("%+v is not found", one)
			}
		}
	})
}

// FuzzArchives unpacks what the server of a stranger's plugin sends: nothing leaves the directory.
func FuzzArchives(f *testing.F) {
	for _, entries := range [][]tar.Header{
		{{Name: "plugin", Mode: 0o755, Size: 1}, {Name: "../out", Size: 1}},
		{{Name: "a", Typeflag: tar.TypeSymlink, Linkname: ".."}, {Name: "a/out", Size: 1}},
		{{Name: "b", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
	} {
		var text bytes.Buffer
		w := tar.NewWriter(&text)
		for i := range entries {
			if err := w.WriteHeader(&entries[i]); err != nil {
				f.Fatal(err)
			}
			_, _ = w.Write(make([]byte, entries[i].Size))
		}
		_ = w.Close()
		f.Add(text.Bytes())
	}
	f.Fuzz(func(t *testing.T, archive []byte) {
		around := t.TempDir()
		dir := filepath.Join(around, "plugin")
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var zipped bytes.Buffer
		w := gzip.NewWriter(&zipped)
		_, _ = w.Write(archive)
		_ = w.Close()
		_ = unpack(&zipped, dir)
		entries, err := os.ReadDir(around)
		if err != nil || len(entries) != 1 {
			t.Errorf("beside the plugin there is %v, %v", entries, err)
		}
		_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
			if err == nil && d.Type()&fs.ModeSymlink != 0 {
				if to, err := filepath.EvalSymlinks(path); err == nil && !within(dir, to) {
					t.Errorf("%s leads to %s", path, to)
				}
			}
			return nil
		})
	})
}

func within(dir, path string) bool {
	at, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(at)
}
