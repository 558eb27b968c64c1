package sandbox

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"

	"github.com/deployctl/deployctl/internal/sandbox/launcher"
)

// Directory is one in which a program can put links and pipes in the place of anything at any time. What is done by way
// of its Root stays in the room of the box.
type Directory struct {
	*os.Root
	// Path is where it is in Root, which may be above it.
	Path string
}

// OpenDirectory opens a directory of a room, or one above it, for the service's own housekeeping. The caller closes it.
func OpenDirectory(path string) (Directory, error) {
	root, err := os.OpenRoot(path)
	return Directory{root, "."}, err
}

// Above returns a directory at or above a path into which programs of any organization could put files; "" if there is
// none. Rooms must not lie below it: tools look for packages and settings (node_modules, go.work, .yarnrc.yml) in each
// directory above a program, and would run what another organization has put there.
func (p *Policy) Above(path string) string {
	path, err := filepath.Abs(path)
	if err != nil {
		return ""
	}
	switch p.Mode() {
	case RunAs:
		return p.ids.above(path)
	case Namespace:
		for at := existing(path); !p.ofOneUser(); at = filepath.Dir(at) {
			if place, ok := p.around[at]; ok && place.Access == launcher.Writable {
				return at
			}
			if at == filepath.Dir(at) {
				break
			}
		}
	}
	return ""
}

// Bundles opens the directory of the box's bundles. Use it within Do, so that what is made belongs to the box's user,
// and close it.
func (b *Box) Bundles() (Directory, error) {
	return OpenDirectory(filepath.Join(b.room, Bundles))
}

// Temp makes a directory for what this process gets for the box's organization. It belongs to the box's user; Close
// removes it.
func (b *Box) Temp() (dir string, err error) {
	err = b.Do(func() error {
		dir, err = os.MkdirTemp(b.temp, "")
		return err
	})
	return dir, err
}

// Cache opens the directory in which this process keeps what it has its tools make for the box's organization. Use it
// within Do, so that what is made belongs to the box's user, and close it.
func (b *Box) Cache() (Directory, error) {
	if b == nil || b.room == "" {
		own, err := ownCache()
		return Directory{own, "."}, err
	}
	home, err := os.OpenRoot(b.Home())
	return Directory{home, ".cache"}, err
}

// ownCache opens the directory of this user's caches.
func ownCache() (*os.Root, error) {
	dir, err := userCache()
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenRoot(dir)
}

// userCache is the directory of this user's caches: without HOME, one below TMPDIR that this user has made.
func userCache() (string, error) {
	if dir, err := os.UserCacheDir(); err == nil {
		return dir, nil
	}
	dir := filepath.Join(os.TempDir(), "deployctl-"+strconv.Itoa(os.Getuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return "", err
	}
	if !info.IsDir() || !mine(info) || info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("there is no HOME, and %s, which would take its place, is not this user's alone: set HOME", dir)
	}
	return dir, nil
}

// mostEntries bounds what Entries keeps of one directory: a program can put any number there.
const mostEntries = 100_000

// Entries lists a directory below this one; of more than 100,000 entries, some of them.
func (d Directory) Entries(path string) ([]fs.DirEntry, error) {
	dir, err := d.OpenFile(path, os.O_RDONLY|nonblocking, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = dir.Close() }()
	entries, err := dir.ReadDir(mostEntries)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return entries, err
}

// Locks makes a directory for the files on which this process and others of the service keep locks for the box's
// organization. It is the service's own: a program that could take such a lock, or put a pipe in its place, would hold
// the service up.
func (b *Box) Locks() (dir string, err error) {
	if b != nil && b.room != "" {
		dir = filepath.Join(b.room, "locks")
	} else if dir, err = userCache(); err == nil {
		dir = filepath.Join(dir, "deployctl", "locks")
	} else {
		return "", err
	}
	return dir, os.MkdirAll(dir, 0o700)
}
