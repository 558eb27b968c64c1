// Package assets computes the hashes of assets and archives that a program leaves to its engine, with the ecosystem's
// algorithm. It reads files through the sandbox, as the program itself could, and fetches URLs.
package assets

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"

	"github.com/pulumi/pulumi/sdk/v3/go/common/resource"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/archive"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/asset"

	"github.com/deployctl/deployctl/internal/remote"
	"github.com/deployctl/deployctl/internal/sandbox"
)

// hasher computes the hashes of assets and archives that a program has left to its engine, the same as the ecosystem's.
// It reads only what the program itself could read, because a hash tells whether a file that nobody may read has some
// content. It asks the sandbox to open a file, and reads what that opened: the program can put something else in its
// place at any time.
type hasher struct {
	ctx context.Context
	Source
}

// Source is where the assets of a program come from.
type Source struct {
	Box    *sandbox.Box    // reads files; nil: without a sandbox
	Dir    string          // of the program: relative paths begin there
	Remote *remote.Fetcher // fetches the rest
}

// Hash sets the missing hashes in values of a program.
func (s Source) Hash(ctx context.Context, values resource.PropertyMap) error {
	h := hasher{ctx, s}
	for key, v := range values {
		if err := h.value(v); err != nil {
			return fmt.Errorf("the hash of the asset in %q cannot be computed: %w", key, err)
		}
	}
	return nil
}

func (h hasher) value(v resource.PropertyValue) error {
	switch {
	case v.IsAsset():
		return h.asset(v.AssetValue())
	case v.IsArchive():
		return h.archive(v.ArchiveValue())
	case v.IsSecret():
		return h.value(v.SecretValue().Element)
	case v.IsOutput():
		return h.value(v.OutputValue().Element)
	case v.IsArray():
		for _, e := range v.ArrayValue() {
			if err := h.value(e); err != nil {
				return err
			}
		}
	case v.IsObject():
		for _, e := range v.ObjectValue() {
			if err := h.value(e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (h hasher) asset(a *asset.Asset) error {
	if a.Hash != "" {
		return nil
	}
	c, err := h.contentOf(a)
	if err != nil {
		return err
	}
	a.Hash, err = c.hash()
	return err
}

// archive hashes a file as it is, and anything else as a tar file. What it is made of gets hashes, too.
func (h hasher) archive(a *archive.Archive) error {
	if err := h.members(a); err != nil || a.Hash != "" {
		return err
	}
	if formatOf(a) != "" {
		c, err := h.open(a.Path, a.URI)
		if err == nil {
			a.Hash, err = c.hash()
		}
		return err
	}
	sum := sha256.New()
	t := tarball{h, tar.NewWriter(sum), map[string]bool{}}
	if err := t.pack("", a); err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	a.Hash = hex.EncodeToString(sum.Sum(nil))
	return nil
}

// members hashes what an archive is made of, if that is listed. What is neither an asset nor an archive is refused when
// the archive is packed.
func (h hasher) members(a *archive.Archive) error {
	for _, name := range slices.Sorted(maps.Keys(a.Assets)) {
		var err error
		switch m := a.Assets[name].(type) {
		case *asset.Asset:
			err = h.asset(m)
		case *archive.Archive:
			err = h.archive(m)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// content is what an asset holds, or a file.
type content struct {
	io.Reader           // ends when nobody waits for the hash any more
	file      io.Closer // nil: none
	size      int64     // -1: nobody knows
}

func (c content) close() {
	if c.file != nil {
		_ = c.file.Close() // it was only read
	}
}

// hash reads and closes the content.
func (c content) hash() (string, error) {
	defer c.close()
	sum := sha256.New()
	n, err := io.Copy(sum, c)
	if err == nil && c.size >= 0 && n != c.size {
		err = fmt.Errorf("it has changed from %d bytes to %d meanwhile", c.size, n)
	}
	if err != nil {
		return "", err // what was read is not all of it
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

func (h hasher) contentOf(a *asset.Asset) (content, error) {
	if a.IsText() {
		return inMemory([]byte(a.Text)), nil
	}
	return h.open(a.Path, a.URI)
}

// open opens the file at a path, or what is at a URI.
func (h hasher) open(path, uri string) (content, error) {
	if path != "" {
		return h.openFile(path)
	}
	at, err := url.Parse(uri)
	switch {
	case err != nil:
		return content{}, err
	case at.Scheme == "http" || at.Scheme == "https":
		return h.fetch(uri)
	case at.Scheme == "file" && at.Path != "" && (at.Host == "" || at.Host == "localhost"):
		return h.openFile(at.Path)
	}
	return content{}, fmt.Errorf("%q is neither a file of this machine nor a page: use a path, or a URI with http, "+
		"https or file", uri)
}

func (h hasher) openFile(path string) (content, error) {
	file, err := h.Box.Open(h.at(path))
	if errors.Is(err, fs.ErrNotExist) {
		return content{}, notInProject(path)
	}
	if err != nil {
		return content{}, err
	}
	info, err := file.Stat()
	if err == nil && info.IsDir() {
		err = &os.PathError{Op: "read", Path: path, Err: errDirectory}
	}
	if err != nil {
		_ = file.Close()
		return content{}, err
	}
	return content{patient{h.ctx, file}, file, info.Size()}, nil
}

// notInProject is the error about a file or directory that is not there, by the name that the program gives it.
func notInProject(path string) error {
	return fmt.Errorf("%s: %w: it is not in the project, or .deployctlignore excludes it", path, fs.ErrNotExist)
}

// at is a path of the program's.
func (h hasher) at(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(h.Dir, path)
}

func (h hasher) fetch(uri string) (content, error) {
	body, err := h.Remote.Open(h.ctx, h.Box.Room(), uri)
	if err != nil {
		return content{}, err
	}
	return content{body, body, -1}, nil
}

// patient reads until nobody waits any more.
type patient struct {
	ctx context.Context
	io.Reader
}

func (p patient) Read(to []byte) (int, error) {
	if err := p.ctx.Err(); err != nil {
		return 0, err
	}
	return p.Reader.Read(to)
}
