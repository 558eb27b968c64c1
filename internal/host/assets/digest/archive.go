package digest

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/deployctl/deployctl/internal/sandbox/remote"
)

// errDirectory is why a directory is not read as a file.
var errDirectory = errors.New("is a directory: use an archive")

// tarball is an archive as a tar file, whose hash is that of the archive. Which parts it has, in which order and with
// which names, is what the ecosystem has agreed on.
type tarball struct {
	hasher
	*tar.Writer
	names map[string]bool
}

// formats are the extensions of files that are archives.
var formats = []string{".tar", ".tgz", ".tar.gz", ".zip", ".jar"}

// formatOf is the extension of an archive that is one file, or empty.
func formatOf(a *Item) string {
	name := a.Path
	if at, err := url.Parse(a.URI); name == "" && err == nil {
		name = at.Path
	}
	if i := slices.IndexFunc(formats, func(f string) bool { return strings.HasSuffix(name, f) }); i >= 0 {
		return formats[i]
	}
	return ""
}

// pack adds what an archive holds, below a directory.
func (t tarball) pack(below string, a *Item) error {
	format := formatOf(a)
	switch {
	case a.Members != nil:
		return t.packMembers(below, a.Members)
	case format != "":
		return t.packFile(below, a, format)
	case a.Path != "":
		if _, err := files.Stat(a.Path); errors.Is(err, fs.ErrNotExist) {
			return notInProject(a.Path)
		}
		return t.packDirectory(below, a.Path)
	}
	return fmt.Errorf("%q is not an archive: those end with %s", a.URI, strings.Join(formats, ", "))
}

func (t tarball) packMembers(below string, members map[string]*Item) error {
	for _, name := range slices.Sorted(maps.Keys(members)) {
		var err error
		if member := members[name]; member.Archive {
			err = t.pack(joined(below, name), member)
		} else {
			var c content
			if c, err = t.contentOf(member); err == nil {
				err = t.add(below, name, c)
			}
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// packDirectory adds files, also those that links lead to. Directories that links lead to are left out, the whole one
// included.
func (t tarball) packDirectory(below, dir string) error {
	if files.IsLink(dir) {
		return nil
	}
	return fs.WalkDir(files.FS(dir), ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.Name() == ".pulumi" && entry.IsDir():
			return fs.SkipDir
		case entry.Name() == ".pulumi" || entry.IsDir():
			return nil
		case name == ".":
			return fmt.Errorf("%s is neither a directory nor an archive: those end with %s", dir,
				strings.Join(formats, ", "))
		}
		c, err := openFile(filepath.Join(dir, filepath.FromSlash(name)))
		if errors.Is(err, errDirectory) && entry.Type()&fs.ModeSymlink != 0 {
			return nil
		}
		if err != nil {
			return err
		}
		return t.add(below, name, c)
	})
}

// packFile adds what is in an archive that is a file.
func (t tarball) packFile(below string, a *Item, format string) error {
	c, err := t.open(a.Path, a.URI)
	if err != nil {
		return err
	}
	defer c.close()
	switch format {
	case ".zip", ".jar":
		return t.packZip(below, c)
	case ".tgz", ".tar.gz":
		unpacked, err := gzip.NewReader(c)
		if err != nil {
			return err
		}
		return t.packTar(below, unpacked)
	}
	return t.packTar(below, c)
}

func (t tarball) packTar(below string, from io.Reader) error {
	members := tar.NewReader(from)
	for {
		header, err := members.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case header.Typeflag == tar.TypeDir:
			continue
		case header.Typeflag != tar.TypeReg:
			return fmt.Errorf("%s in the archive is neither a file nor a directory", header.Name)
		}
		if err := t.add(below, path.Clean(header.Name), content{Reader: members, size: header.Size}); err != nil {
			return err
		}
	}
}

func (t tarball) packZip(below string, c content) error {
	at, isFile := c.file.(io.ReaderAt)
	if !isFile {
		kept, err := fetched(c)
		if err != nil {
			return err
		}
		defer kept.close()
		at, c = kept.file.(io.ReaderAt), kept
	}
	members, err := zip.NewReader(at, c.size)
	if err != nil {
		return err
	}
	for _, member := range members.File {
		if member.FileInfo().IsDir() {
			continue
		}
		if err := t.packMember(below, member); err != nil {
			return err
		}
	}
	return nil
}

func (t tarball) packMember(below string, member *zip.File) error {
	unpacked, err := member.Open()
	if err != nil {
		return err
	}
	size := int64(member.UncompressedSize64) //nolint:gosec // a negative one is refused by the tar file
	return t.add(below, path.Clean(member.Name), content{unpacked, unpacked, size})
}

// add adds a file and closes its content. Of several with one name the first counts.
func (t tarball) add(below, name string, c content) error {
	defer func() { c.close() }()
	name = joined(below, name)
	if t.names[name] {
		return nil
	}
	t.names[name] = true
	if c.size < 0 {
		kept, err := fetched(c)
		if err != nil {
			return err
		}
		c = kept
	}
	if err := t.WriteHeader(&tar.Header{Name: name, Mode: 0o600, Size: c.size}); err != nil {
		return err
	}
	_, err := io.Copy(t, c) // fewer bytes fail the next header, more this one
	return err
}

// fetched reads content whose size nobody knows, because it comes from a URL.
func fetched(c content) (content, error) {
	body, isRemote := c.file.(*remote.Body)
	if !isRemote {
		return content{}, errors.New("nobody knows its size")
	}
	file, err := body.Keep()
	if err != nil {
		return content{}, err
	}
	return content{file, file, file.Size}, nil
}

func inMemory(text []byte) content {
	return content{Reader: bytes.NewReader(text), size: int64(len(text))}
}

// joined is a name below a directory; at the top it stays as it is.
func joined(below, name string) string {
	if below == "" {
		return name
	}
	return path.Join(below, name)
}
