package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"testing"
)

// entry is a file in a package.
type entry struct {
	mode     fs.FileMode
	uid, gid int
	content  string
}

func unpack(t *testing.T, path string) map[string]entry {
	t.Helper()
	if strings.HasSuffix(path, ".zip") {
		return unzip(t, path)
	}
	in, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	return gunzip(t, in)
}

func gunzip(t *testing.T, in io.Reader) map[string]entry {
	t.Helper()
	plain, err := gzip.NewReader(in)
	if err != nil {
		t.Fatal(err)
	}
	return untar(t, plain)
}

func untar(t *testing.T, in io.Reader) map[string]entry {
	t.Helper()
	found, last := map[string]entry{}, ""
	for r := tar.NewReader(in); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if h.Name <= last {
			t.Errorf("%s comes after %s", h.Name, last)
		}
		if h.ModTime.Unix() != 1767323045 {
			t.Errorf("%s is of %v", h.Name, h.ModTime)
		}
		found[h.Name], last = entry{fs.FileMode(h.Mode), h.Uid, h.Gid, string(content)}, h.Name
	}
}

func unzip(t *testing.T, path string) map[string]entry {
	t.Helper()
	r, err := zip.OpenReader(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	found := map[string]entry{}
	for _, f := range r.File {
		in, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(in)
		if err != nil {
			t.Fatal(err)
		}
		found[f.Name] = entry{mode: f.Mode().Perm(), content: string(content)}
	}
	return found
}

// deb returns what dpkg has of a package, and what it installs.
func deb(t *testing.T, path string) (control, files map[string]entry) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	parts := members(t, string(content))
	if parts["debian-binary"] != "2.0\n" {
		t.Errorf("it is of the version %q", parts["debian-binary"])
	}
	return gunzip(t, strings.NewReader(parts["control.tar.gz"])), gunzip(t, strings.NewReader(parts["data.tar.gz"]))
}

// members reads an archive of ar.
func members(t *testing.T, text string) map[string]string {
	t.Helper()
	rest, ok := strings.CutPrefix(text, "!<arch>\n")
	if !ok {
		t.Fatalf("it begins with %.8q", text)
	}
	found := map[string]string{}
	for len(rest) > 60 {
		size, err := strconv.Atoi(strings.TrimSpace(rest[48:58]))
		if err != nil || rest[58:60] != "`\n" || len(rest) < 60+size {
			t.Fatalf("a member begins with %.60q, %v", rest, err)
		}
		found[strings.TrimSpace(rest[:16])] = rest[60 : 60+size]
		rest = rest[60+size+size%2:]
	}
	return found
}
