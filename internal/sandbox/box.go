package sandbox

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

// Box is what the processes of one update are started in, and the directories that are theirs. Its methods may be
// called from any goroutine. A nil Box starts processes as they are.
type Box struct {
	policy   *Policy
	id       *identity // nil: this process's own
	rooms    string    // the directory of all organizations; other rooms than room are hidden
	room     string
	real     string   // the real path of rooms
	own      []string // those of the parts of room
	plugins  string   // that of the directory of plugins
	temp     string   // of what this process makes for the box; Close removes it
	aside    string   // of what is mounted for single processes; Close removes it
	slashTmp string   // what /tmp is for the processes

	mu      sync.Mutex
	started map[int]bool
	left    left // in mode namespace: where what they leave is found
}

// Box makes a Box for an update of an organization, whose directory is rooms/RoomName(organization). Close it.
func (p *Policy) Box(organization, rooms string) (*Box, error) {
	b := &Box{policy: p, started: map[int]bool{}, left: left{}}
	var err error
	if b.rooms, err = filepath.Abs(rooms); err != nil {
		return nil, err
	}
	b.room = filepath.Join(b.rooms, RoomName(organization))
	if p.Mode() == RunAs {
		if b.id, err = p.ids.of(organization); err != nil {
			return nil, err
		}
	}
	if err := b.furnish(); err != nil {
		return nil, fmt.Errorf("make the directories of organization %s: %w", organization, err)
	}
	return b, nil
}

// Party returns a name of the organization whose box it is, for what is shared out among organizations; "" for a Box of
// nobody.
func (b *Box) Party() string {
	if b == nil || b.room == "" {
		return ""
	}
	return filepath.Base(b.room)
}

// Open makes a Box that keeps nothing apart, and only knows its processes.
func Open() *Box { return &Box{started: map[int]bool{}} }

// furnish makes the directories of the box. Under another user's id, that user owns the parts of the room and nobody
// else enters them. The room itself stays this process's, so that no part can be replaced by a link, and lets only that
// user's group in: its name, which a hash of the organization's is, keeps nobody out.
func (b *Box) furnish() error {
	err := os.MkdirAll(b.room, 0o700)
	if err == nil {
		b.real, err = filepath.EvalSymlinks(b.rooms)
	}
	if err == nil {
		err = own(filepath.Dir(b.rooms), b.rooms)
	}
	if err != nil {
		return err
	}
	if b.id != nil {
		if err := passable(b.rooms, b.id); err != nil {
			return err
		}
		if err := errors.Join(os.Lchown(b.room, -1, b.id.gid), os.Chmod(b.room, 0o710)); err != nil {
			return err
		}
	}
	for _, part := range parts {
		dir := filepath.Join(b.room, part)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		real, err := filepath.EvalSymlinks(dir)
		if err != nil {
			return err
		}
		b.own = append(b.own, real)
		if b.id == nil {
			continue
		}
		if err := os.Lchown(dir, b.id.uid, b.id.gid); err != nil {
			return err
		}
	}
	if err := b.furnishPlugins(); err != nil {
		return err
	}
	err = b.Do(func() (err error) {
		b.temp, err = os.MkdirTemp(filepath.Join(b.room, temps), "")
		return err
	})
	if err != nil || b.policy.Mode() != Namespace {
		return err
	}
	return b.furnishNamespace()
}

// own reports that a directory is not this user's: its owner could put other programs into it. One that was made in
// TMPDIR may have been removed as old by the system, and made again by anybody.
func own(dirs ...string) error {
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if !mine(info) {
			return fmt.Errorf("%s is not this user's directory any more, so nothing is run there: start the worker again, "+
				"and keep the system from removing old files in its TMPDIR", dir)
		}
	}
	return nil
}

// furnishNamespace makes what stands for /tmp, and the home. Beside the parts of the room there is a directory that
// programs cannot see: what is mounted for them must not lie where they could put a link in its place.
func (b *Box) furnishNamespace() error {
	aside := filepath.Join(b.room, "aside")
	err := os.MkdirAll(aside, 0o700)
	if err == nil {
		aside, err = filepath.EvalSymlinks(aside)
	}
	if err == nil {
		b.aside, err = os.MkdirTemp(aside, "")
	}
	if err != nil {
		return err
	}
	b.slashTmp = filepath.Join(b.aside, "tmp")
	if b.policy.ofOneUser() { // whose states may name files there
		b.slashTmp = filepath.Join(aside, "tmp")
		if err := b.furnishHome(); err != nil {
			return err
		}
	}
	return os.MkdirAll(b.slashTmp, 0o700)
}

// furnishPlugins makes the directory of plugins. It stays this process's own.
func (b *Box) furnishPlugins() error {
	dir := b.Plugins()
	err := os.MkdirAll(dir, 0o755)
	if err == nil && b.id != nil {
		err = os.Chmod(dir, 0o755) // whatever the umask
	}
	if err != nil {
		return err
	}
	b.plugins, err = filepath.EvalSymlinks(dir)
	return err
}

// Plugins returns the directory of the plugins that the worker has downloaded for the box's organization. The box's
// processes can read it and cannot change it, except where processes are not kept apart.
func (b *Box) Plugins() string { return filepath.Join(b.room, Plugins) }

// passable makes the directory of all rooms one through which everybody may pass, and nothing more, and checks that
// there is a way to it.
func passable(rooms string, id *identity) error {
	if err := os.Chmod(rooms, 0o711); err != nil {
		return err
	}
	for dir := filepath.Dir(rooms); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err != nil {
			return err
		}
		if info.Mode().Perm()&0o001 == 0 {
			return fmt.Errorf("%s cannot pass through %s: keep the worker's files elsewhere (TMPDIR)", id, dir)
		}
		if dir == filepath.Dir(dir) {
			return nil
		}
	}
}

// Home is the directory of the organization's tools and caches: what its processes have as HOME.
func (b *Box) Home() string { return filepath.Join(b.room, homes) }

// Environment is what the environment of the box's processes ends with, as KEY=value.
func (b *Box) Environment() []string {
	if b == nil || b.temp == "" {
		return nil
	}
	temp := b.temp
	switch b.policy.Mode() {
	case Off:
		if b.policy.ofOneUser() {
			return nil
		}
		return []string{"TMPDIR=" + temp}
	case Namespace:
		temp = temporaryPlaces[0]
	}
	env := []string{"TMPDIR=" + temp, "XDG_RUNTIME_DIR=" + temp, "HOME=" + b.Home(),
		"XDG_CACHE_HOME=" + filepath.Join(b.Home(), ".cache"), "XDG_CONFIG_HOME=" + filepath.Join(b.Home(), ".config"),
		"XDG_DATA_HOME=" + filepath.Join(b.Home(), ".local", "share"),
		"XDG_STATE_HOME=" + filepath.Join(b.Home(), ".local", "state")}
	if b.id != nil {
		env = append(env, "USER="+b.id.name, "LOGNAME="+b.id.name)
	}
	return env
}

// PulumiHome is where the plugins are that are installed for programs of the box, unless their environment names
// another place; empty: below their HOME.
func (b *Box) PulumiHome() string {
	if b == nil || b.policy.Mode() != Namespace {
		return ""
	}
	return pulumiHome()
}

// UID is the user id of the box's processes.
func (b *Box) UID() int {
	if b == nil || b.id == nil {
		return os.Geteuid()
	}
	return b.id.uid
}

// Processes are those that were started in the box and have not been waited for.
func (b *Box) Processes() []int {
	b.mu.Lock()
	defer b.mu.Unlock()
	pids := make([]int, 0, len(b.started))
	for pid := range b.started {
		pids = append(pids, pid)
	}
	return pids
}

// remember has Close find what a process leaves, which is of no command yet.
func (b *Box) remember(pid int) {
	if b.policy.Mode() != Namespace {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.left.remember(pid)
}

func (b *Box) add(pid int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.started[pid] = true
}

// Ended says that a process was waited for: its id may be another's from now on.
func (b *Box) Ended(pid int) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.started, pid)
}

// Do calls f, whose accesses to files are those of the box's user: a link that a program has left leads it nowhere
// where the program itself could not go. It does not hold for goroutines that f starts.
func (b *Box) Do(f func() error) error {
	if b == nil || b.id == nil {
		return f()
	}
	return b.id.do(f)
}

// Open opens a file or a directory for reading that a program has named, if the program itself could read it. Pipes and
// devices, which may have no end, are refused, and so is what the system says of the process that reads it, below
// /proc. What the system links to there, the files and directories of other processes, is not found: this process may
// follow such links where the program may not.
func (b *Box) Open(path string) (*os.File, error) {
	var file *os.File
	err := b.Do(func() (err error) {
		if b.Apart() {
			file, err = openWithoutMagic(b.outside(path))
		} else {
			file, err = os.OpenFile(path, os.O_RDONLY|nonblocking, 0)
		}
		return err
	})
	if named := (*os.PathError)(nil); errors.As(err, &named) {
		named.Path = path // as the program has named it
	}
	if err != nil {
		return nil, err
	}
	if b != nil && b.policy.Mode() == Namespace {
		err = b.visible(file, path)
	}
	if err == nil {
		err = ordinary(file, path)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

// ordinary is an error unless a file is a directory or has content of its own.
func ordinary(file *os.File, path string) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	if !info.IsDir() && !info.Mode().IsRegular() || ofTheKernel(file) {
		return fmt.Errorf("%s is neither a directory nor a file with content of its own", path)
	}
	return nil
}

// maxFile bounds the files that are read whole: those of programs that the worker itself understands are far smaller.
const maxFile = 16 << 20

// ReadFile reads a whole file of at most 16 MiB as Open opens it.
func (b *Box) ReadFile(path string) ([]byte, error) {
	file, err := b.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err == nil && len(text) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d MiB: make it smaller", path, maxFile>>20)
	}
	return text, err
}

// visible is an error if a file lies in what the box's processes do not see: the same as if it were not there.
func (b *Box) visible(file *os.File, path string) error {
	real, err := realPath(file)
	if err != nil {
		return err
	}
	if b.whole().hides(real) {
		return &os.PathError{Op: "open", Path: path, Err: syscall.ENOENT}
	}
	return nil
}

// below tells whether a path is a directory or in it.
func below(dir, path string) bool {
	rest, err := filepath.Rel(dir, path)
	return err == nil && filepath.IsLocal(rest)
}

// EndLeft ends what the box's processes, which have ended, have left behind. Only in mode namespace it is found.
func (b *Box) EndLeft() error {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.left.end()
}

// Close ends what the box's processes have left behind, and removes its temporary directories.
func (b *Box) Close() error {
	if b == nil || b.temp == "" {
		return nil
	}
	ended := b.EndLeft()
	var aside error
	if b.aside != "" {
		aside = RemoveAll(b.aside)
	}
	err := b.Do(func() error { return RemoveAll(b.temp) })
	return errors.Join(ended, aside, err)
}
