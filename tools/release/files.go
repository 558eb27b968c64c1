package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// file is one in a package: a regular file, or a directory if its name ends in a slash. Those without a source have
// their content.
type file struct {
	name     string // slashes, and none at the begin
	mode     fs.FileMode
	uid, gid int
	content  []byte
	source   string // a path here
}

func (f file) read() ([]byte, error) {
	if f.source == "" {
		return f.content, nil
	}
	return os.ReadFile(f.source)
}

// complete returns files in the order of their names, with the directories that lead to them.
func complete(files []file) []file {
	all := slices.Clone(files)
	named := map[string]bool{}
	for _, f := range files {
		named[f.name] = true
	}
	for _, f := range files {
		for dir := path.Dir(strings.TrimSuffix(f.name, "/")); dir != "." && !named[dir+"/"]; dir = path.Dir(dir) {
			named[dir+"/"] = true
			all = append(all, file{name: dir + "/", mode: 0o755})
		}
	}
	slices.SortFunc(all, func(a, b file) int { return strings.Compare(a.name, b.name) })
	return all
}

// writeTar writes files in the order that they have. Everything in them is theirs or the release's: owners have no
// names, and times are the release's.
func writeTar(w io.Writer, prefix string, files []file, when time.Time) error {
	out := tar.NewWriter(w)
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: prefix + f.name, Mode: int64(f.mode), Uid: f.uid, Gid: f.gid,
			Size: int64(len(content)), ModTime: when, Format: tar.FormatGNU}
		if strings.HasSuffix(f.name, "/") {
			header.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(header); err != nil {
			return err
		}
		if _, err := out.Write(content); err != nil {
			return err
		}
	}
	return out.Close()
}

// tarGz returns files as writeTar writes them, compressed.
func tarGz(prefix string, files []file, when time.Time) ([]byte, error) {
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b) // with neither a name nor a time in its header
	if err := writeTar(zipped, prefix, files, when); err != nil {
		return nil, err
	}
	err := zipped.Close()
	return b.Bytes(), err
}

// writeZip writes files in the order that they have; directories are made where it is unpacked.
func writeZip(w io.Writer, prefix string, files []file, when time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		content, err := f.read()
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: prefix + f.name, Method: zip.Deflate, Modified: when}
		header.SetMode(f.mode)
		in, err := out.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := in.Write(content); err != nil {
			return err
		}
	}
	return out.Close()
}

// create writes a file of the release.
func create(dist, name string, write func(io.Writer) error) error {
	out, err := os.OpenFile(filepath.Join(dist, name), os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644) //nolint:gosec // for all
	if err != nil {
		return err
	}
	if err := write(out); err != nil {
		_ = out.Close()
		return err
	}
	return out.Close()
}
