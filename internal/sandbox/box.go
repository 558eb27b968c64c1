package sandbox

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
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
	handed   string   // in mode namespace: what Hand has made, if it has

	mu      sync.Mutex
	started map[int]bool
	left    left // in mode namespace: where what they leave is found

	starting sync.RWMutex // held for reading while a process is started that runs before it is one of started
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

// Processes are those that were started in the box and have not been waited for. It waits for those that are being
// started: they may run already.
func (b *Box) Processes() []int {
	b.starting.Lock()
	defer b.starting.Unlock()
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

// start starts a command, by a function, that is one of the box from its first instruction on; of none if b is nil.
func (b *Box) start(cmd *exec.Cmd, start func() error) error {
	if b == nil {
		return start()
	}
	b.starting.RLock()
	defer b.starting.RUnlock()
	err := start()
	if err == nil {
		b.add(cmd.Process.Pid)
	}
	return err
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
