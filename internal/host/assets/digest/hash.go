package digest

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
	"slices"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/sandbox/remote"
)

// files opens files as this process can, but no pipe or device, which may have no end.
var files *sandbox.Box

// hash sets the missing hashes of an item and of what it is made of.
func hash(ctx context.Context, i *Item) error { return hasher{ctx}.item(i) }

// hasher computes hashes with the ecosystem's algorithm.
type hasher struct{ ctx context.Context }

func (h hasher) item(i *Item) error {
	if i.Archive {
		return h.archive(i)
	}
	return h.asset(i)
}

func (h hasher) asset(a *Item) error {
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
func (h hasher) archive(a *Item) error {
	for _, name := range slices.Sorted(maps.Keys(a.Members)) {
		if err := h.item(a.Members[name]); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	if a.Hash != "" {
		return nil
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

// content is what an asset holds, or a file.
type content struct {
	io.Reader
	file io.Closer // nil: none
	size int64     // -1: nobody knows
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

func (h hasher) contentOf(a *Item) (content, error) {
	if a.Text != nil {
		return inMemory([]byte(*a.Text)), nil
	}
	return h.open(a.Path, a.URI)
}

// open opens the file at a path, or what is at a URI.
func (h hasher) open(path, uri string) (content, error) {
	if path != "" {
		return openFile(path)
	}
	at, err := url.Parse(uri)
	switch {
	case err != nil:
		return content{}, err
	case at.Scheme == "http" || at.Scheme == "https":
		return h.fetch(uri)
	case at.Scheme == "file" && at.Path != "" && (at.Host == "" || at.Host == "localhost"):
		return openFile(at.Path)
	}
	return content{}, fmt.Errorf("%q is neither a file of this machine nor a page: use a path, or a URI with http, "+
		"https or file", uri)
}

func openFile(path string) (content, error) {
	file, err := files.Open(path)
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
	return content{file, file, info.Size()}, nil
}

// notInProject is the error about a file or directory that is not there, by the name that the program gives it.
func notInProject(path string) error {
	return fmt.Errorf("%s: %w: it is not in the project, or .deployctlignore excludes it", path, fs.ErrNotExist)
}

func (h hasher) fetch(uri string) (content, error) {
	body, err := remote.Open(h.ctx, uri)
	if err != nil {
		return content{}, err
	}
	return content{body, body, -1}, nil
}
