package plugins

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// archiveOf makes an archive of entries. A header without a type is that of a file with content.
func archiveOf(t *testing.T, content string, entries ...tar.Header) []byte {
	t.Helper()
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	w := tar.NewWriter(zipped)
	for _, h := range entries {
		body := ""
		if h.Typeflag == 0 {
			h.Typeflag, body = tar.TypeReg, content
		}
		if h.Size == 0 {
			h.Size = int64(len(body))
		}
		must(t, w.WriteHeader(&h))
		if body != "" {
			if _, err := w.Write([]byte(body)); err != nil {
				t.Fatal(err)
			}
		}
	}
	must(t, w.Close(), zipped.Close())
	return text.Bytes()
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// outside returns a directory that may be unpacked into, and checks at the end that nothing was written beside it.
func outside(t *testing.T) (dir string) {
	t.Helper()
	above := t.TempDir()
	dir = filepath.Join(above, "inside")
	must(t, os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(above, "victim"), []byte("whole"), 0o600))
	t.Cleanup(func() {
		text, err := os.ReadFile(filepath.Join(above, "victim"))
		found, listed := os.ReadDir(above)
		if err != nil || listed != nil || string(text) != "whole" || len(found) != 2 {
			t.Errorf("outside there are now %v, and the file says %q: %v %v", found, text, err, listed)
		}
	})
	return dir
}

func TestAnArchiveThatLeadsOutIsRefused(t *testing.T) {
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target, Mode: 0o777}
	}
	for name, entries := range map[string][]tar.Header{
		"a name with ..":        {{Name: "../victim", Mode: 0o644}},
		"a name with .. within": {{Name: "a/../../victim", Mode: 0o644}},
		"an absolute name":      {{Name: "/tmp/victim", Mode: 0o644}},
		"a link upwards":        {link("up", "../victim"), {Name: "up", Mode: 0o644}},
		"an absolute link":      {link("up", "/tmp"), {Name: "up/victim", Mode: 0o644}},
		"a file behind two links": {{Typeflag: tar.TypeDir, Name: "a/b", Mode: 0o755}, link("a/b/l", ".."),
			link("m", "a/b/l/../.."), {Name: "m/victim", Mode: 0o644}},
		"a hard link":               {{Typeflag: tar.TypeLink, Name: "hard", Linkname: "../victim"}},
		"a device":                  {{Typeflag: tar.TypeChar, Name: "null", Devmajor: 1, Devminor: 3}},
		"a pipe":                    {{Typeflag: tar.TypeFifo, Name: "pipe"}},
		"a file twice":              {{Name: "one", Mode: 0o644}, {Name: "one", Mode: 0o644}},
		"a file in place of a link": {link("one", "two"), {Name: "one", Mode: 0o644}},
		"a file below another file": {{Name: "one", Mode: 0o644}, {Name: "one/two", Mode: 0o644}},
	} {
		t.Run(name, func(t *testing.T) {
			archive := archiveOf(t, "broken", entries...)
			if err := unpack(bytes.NewReader(archive), outside(t)); err == nil {
				t.Error("it was unpacked")
			}
		})
	}
}

func TestAnArchiveIsUnpackedWithoutTheRightsThatItClaims(t *testing.T) {
	dir := outside(t)
	archive := archiveOf(t, "text",
		tar.Header{Typeflag: tar.TypeXGlobalHeader, PAXRecords: map[string]string{"comment": "x"}},
		tar.Header{Typeflag: tar.TypeDir, Name: "./", Mode: 0o700},
		tar.Header{Name: "./run", Mode: 0o4777}, tar.Header{Name: "data/deep/file", Mode: 0o222},
		tar.Header{Typeflag: tar.TypeSymlink, Name: "data/run", Linkname: "../run"})
	must(t, unpack(bytes.NewReader(archive), dir))
	for name, want := range map[string]fs.FileMode{"run": 0o755, "data/deep/file": 0o644, "data": fs.ModeDir | 0o755,
		"data/deep": fs.ModeDir | 0o755, ".": fs.ModeDir | 0o755} {
		if info, err := os.Lstat(filepath.Join(dir, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, want %v: %v", name, info.Mode(), want, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(dir, "data", "run")); err != nil || string(text) != "text" {
		t.Errorf("the link leads to %q: %v", text, err)
	}
}

func TestAnArchiveThatClaimsToBeHugeIsRefusedBeforeItIsWritten(t *testing.T) {
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	w := tar.NewWriter(zipped)
	must(t, w.WriteHeader(&tar.Header{Name: "huge", Typeflag: tar.TypeReg, Size: maxUnpacked + 1, Mode: 0o644}),
		zipped.Close())
	if err := unpack(&text, outside(t)); err == nil || !strings.Contains(err.Error(), "4096 MiB") {
		t.Errorf("%v", err)
	}
	for _, other := range []string{"", "no archive", string(gzipped(t, "no archive inside, which is longer than the "+
		"header of a file; "+strings.Repeat("x", 1024)))} {
		if err := unpack(strings.NewReader(other), outside(t)); err == nil {
			t.Errorf("%.10q was unpacked", other)
		}
	}
}

func gzipped(t *testing.T, content string) []byte {
	t.Helper()
	var text bytes.Buffer
	zipped := gzip.NewWriter(&text)
	_, err := zipped.Write([]byte(content))
	must(t, err, zipped.Close())
	return text.Bytes()
}
