package plugins

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

const (
	// maxUnpacked bounds the sum of the sizes of an archive's files, and maxEntries their number.
	maxUnpacked = 4 << 30
	maxEntries  = 200_000
)

// unpack unpacks a gzipped tar archive into a directory. Nothing in the archive leaves the directory, neither by its
// name nor by way of a link. Files are readable by everybody and writable by this user, and executable if the archive
// says so.
func unpack(archive io.Reader, dir string) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	zipped, err := gzip.NewReader(bufio.NewReader(archive))
	if err != nil {
		return fmt.Errorf("it is no gzipped archive: %w", err)
	}
	u := unpacking{root: root, left: maxUnpacked}
	entries := tar.NewReader(zipped)
	for n := 0; ; n++ {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			return u.openDirectories()
		}
		if err != nil {
			return fmt.Errorf("it is no tar archive: %w", err)
		}
		if n == maxEntries {
			return fmt.Errorf("it has more than %d files", maxEntries)
		}
		if err := u.entry(entry, entries); err != nil {
			return fmt.Errorf("its entry %.200q: %w", entry.Name, err)
		}
	}
}

// unpacking is an archive that is being unpacked.
type unpacking struct {
	root *os.Root
	left int64 // bytes that files may still have
}

func (u *unpacking) entry(entry *tar.Header, content io.Reader) error {
	if entry.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	name := filepath.Clean(filepath.FromSlash(entry.Name))
	if !filepath.IsLocal(name) {
		return errors.New("it leads out of the archive")
	}
	if name == "." {
		return nil
	}
	if err := u.root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	switch entry.Typeflag {
	case tar.TypeDir:
		return u.root.MkdirAll(name, 0o755)
	case tar.TypeSymlink:
		target := filepath.FromSlash(entry.Linkname)
		if filepath.IsAbs(target) || !filepath.IsLocal(filepath.Join(filepath.Dir(name), target)) {
			return errors.New("it is a link that leads out of the archive")
		}
		return u.root.Symlink(target, name)
	case tar.TypeReg:
		return u.file(name, entry, content)
	}
	return errors.New("it is neither a file nor a directory nor a symbolic link")
}

// file writes a file. One that exists is an error: it may be a link to another one.
func (u *unpacking) file(name string, entry *tar.Header, content io.Reader) error {
	if u.left -= entry.Size; u.left < 0 {
		return fmt.Errorf("the archive has more than %d MiB of files", maxUnpacked>>20)
	}
	mode := fs.FileMode(0o644)
	if entry.FileInfo().Mode()&0o111 != 0 {
		mode = 0o755
	}
	file, err := u.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(file, content) // the reader of tar ends it after entry.Size bytes
	return errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
}

// openDirectories gives everybody the right to read the directories, whatever the umask was.
func (u *unpacking) openDirectories() error {
	return fs.WalkDir(u.root.FS(), ".", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = u.root.Chmod(path, 0o755)
		}
		return err
	})
}
