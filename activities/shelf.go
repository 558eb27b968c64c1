package activities

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/gofrs/flock"
)

const (
	// keepBundles is how long a bundle's directory stays after the last session that used it began.
	keepBundles = 24 * time.Hour
	// lockRetry is how often a wanted lock is tried again: no system tells when one becomes free without blocking a
	// thread.
	lockRetry = 50 * time.Millisecond
)

// shelf is where a worker keeps the directories of bundles. Worker processes may share one.
type shelf struct {
	dir     string
	tidying sync.Mutex
}

// rooms is where each organization has a room: a directory that belongs to its sandbox, with all that its programs get
// to see.
func (s *shelf) rooms() string { return filepath.Join(s.dir, "organizations") }

// room is the room of an organization.
func (s *shelf) room(organization string) string {
	return filepath.Join(s.rooms(), sandbox.RoomName(organization))
}

// bundles is where the directories of bundles are in a room.
func bundles(room string) string { return filepath.Join(room, sandbox.Bundles) }

// modules is where it is kept which bundles of a room have installed what; see installDependencies.
func modules(room string) string { return filepath.Join(room, sandbox.Modules) }

// place is the directory of a stack's bundle. Bundles do not change, so there is one per stack and bundle.
func (s *shelf) place(stack deployments.StackName, bundle string) string {
	name := sha256.Sum256([]byte(stack.String() + "\x00" + bundle))
	return filepath.Join(bundles(s.room(stack.Organization)), hex.EncodeToString(name[:16]))
}

// placeOf is the directory of an organization's bundle that a path is in; false when it is in none.
func (s *shelf) placeOf(organization, path string) (string, bool) {
	places := bundles(s.room(organization))
	real, err := filepath.EvalSymlinks(places)
	if err != nil {
		return "", false
	}
	rest, err := filepath.Rel(real, path)
	if err != nil || !filepath.IsLocal(rest) {
		return "", false
	}
	name, _, _ := strings.Cut(rest, string(filepath.Separator))
	return filepath.Join(places, name), true
}

// use keeps a bundle's directory, which need not be there yet, from being collected until the lock is closed.
func (s *shelf) use(ctx context.Context, place string) (*flock.Flock, error) {
	lock, err := s.lock(place)
	if err != nil {
		return nil, err
	}
	if _, err := lock.TryRLockContext(ctx, lockRetry); err != nil {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, local(err)
	}
	if bundles, err := os.OpenRoot(filepath.Dir(place)); err == nil {
		now := time.Now()
		_ = errors.Join(bundles.Chtimes(filepath.Base(place), now, now), bundles.Close()) // at worst it is made again
	}
	return lock, nil
}

// beside is a file of this worker's own about a directory that belongs to a program: the program neither sees nor
// replaces it.
func (s *shelf) beside(dir, suffix string) string {
	name := sha256.Sum256([]byte(dir))
	return filepath.Join(s.uses(), hex.EncodeToString(name[:16])+suffix)
}

// begin notes that something is being installed into a directory.
func (s *shelf) begin(dir string) error { return os.WriteFile(s.beside(dir, installing), nil, 0o600) }

// end notes that all is installed.
func (s *shelf) end(dir string) error { return os.Remove(s.beside(dir, installing)) }

// interrupted reports whether what is installed into a directory is not whole.
func (s *shelf) interrupted(dir string) bool {
	_, err := os.Stat(s.beside(dir, installing))
	return err == nil
}

const installing = ".installing"

// share lets other bundles find installed modules.
func (s *shelf) share(modules, shared string) error {
	_ = os.Remove(shared) // it may lead to a bundle that is gone
	return os.Symlink(modules, shared)
}

func (s *shelf) uses() string { return filepath.Join(s.dir, "uses") }

// lock is the lock of a bundle's directory. Some share one, so that their number is bounded and none is ever removed.
func (s *shelf) lock(place string) (*flock.Flock, error) {
	if err := os.MkdirAll(s.uses(), 0o700); err != nil {
		return nil, local(err)
	}
	return flock.New(filepath.Join(s.uses(), filepath.Base(place)[:2]), flock.SetPermissions(0o600)), nil
}

// tidy collects, unless this process is at it.
func (s *shelf) tidy() {
	if s.tidying.TryLock() {
		defer s.tidying.Unlock()
		s.collect(time.Now())
	}
}

// collect removes the directories of bundles that nobody uses and nobody has begun to use for keepBundles, with what
// was installed into them, and what interrupted processes have left. What cannot be removed stays until the next time.
func (s *shelf) collect(now time.Time) {
	for _, former := range []string{"bundles", "modules"} { // where they were before organizations had rooms
		_ = os.RemoveAll(filepath.Join(s.dir, former))
	}
	rooms, _ := os.ReadDir(s.rooms())
	for _, r := range rooms {
		s.collectIn(filepath.Join(s.rooms(), r.Name()), now)
	}
}

func (s *shelf) collectIn(room string, now time.Time) {
	entries, _ := os.ReadDir(bundles(room))
	for _, e := range entries {
		path := filepath.Join(bundles(room), e.Name())
		info, err := e.Info()
		switch {
		case err != nil || now.Sub(info.ModTime()) < keepBundles:
		case strings.HasPrefix(e.Name(), "."):
			_ = os.RemoveAll(path)
		case e.IsDir():
			s.discard(path, now)
		}
	}
	left, _ := os.ReadDir(filepath.Join(room, "tmp"))
	for _, e := range left { // what sessions of interrupted processes have left
		if info, err := e.Info(); err == nil && now.Sub(info.ModTime()) >= keepBundles {
			_ = os.RemoveAll(filepath.Join(room, "tmp", e.Name()))
		}
	}
	links, _ := os.ReadDir(modules(room))
	for _, l := range links {
		if link := filepath.Join(modules(room), l.Name()); !leadsToBundle(room, link) {
			_ = os.Remove(link)
		}
	}
}

// leadsToBundle reports whether the bundle is there that a link leads into. The link is not followed: what becomes of
// it must tell a program nothing about other files.
func leadsToBundle(room, link string) bool {
	to, err := os.Readlink(link)
	if err != nil {
		return false
	}
	rest, err := filepath.Rel(bundles(room), to)
	if err != nil || !filepath.IsLocal(rest) {
		return false
	}
	name, _, _ := strings.Cut(rest, string(filepath.Separator))
	_, err = os.Lstat(filepath.Join(bundles(room), name))
	return err == nil
}

// discard removes a bundle's directory, unless it is in use. It is moved out of the way first, so that none is there in
// part.
func (s *shelf) discard(place string, now time.Time) {
	lock, err := s.lock(place)
	if err != nil {
		return
	}
	defer func() { _ = lock.Close() }() // which frees it
	if free, err := lock.TryLock(); err != nil || !free {
		return
	}
	if info, err := os.Stat(place); err != nil || now.Sub(info.ModTime()) < keepBundles {
		return
	}
	gone := filepath.Join(filepath.Dir(place), ".gone-"+filepath.Base(place))
	_ = os.RemoveAll(gone)
	if os.Rename(place, gone) != nil {
		return
	}
	_ = os.RemoveAll(gone)
	for _, beside := range []string{installing, ".lock"} { // of a program in the bundle's own directory
		_ = os.Remove(s.beside(place, beside))
	}
}
