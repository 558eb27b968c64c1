package launcher

import (
	"errors"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// arrange makes the file system of this mount namespace the one of the view.
func (v View) arrange() error {
	trees := make([]int, len(v)) // before anything covers them, and with the rights that they have
	for i, p := range v {
		var err error
		if trees[i], err = p.tree(); p.Access != Writable && outOfReach(err) {
			trees[i] = missing
		} else if err != nil {
			return &os.PathError{Op: "open", Path: p.Path, Err: err}
		}
	}
	devices, err := openDevices()
	if err != nil {
		return err
	}
	all := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY | unix.MOUNT_ATTR_NOSUID | unix.MOUNT_ATTR_NODEV}
	if err := unix.MountSetattr(unix.AT_FDCWD, "/", unix.AT_RECURSIVE, &all); err != nil {
		return &os.PathError{Op: "protect (which needs Linux 5.12)", Path: "/", Err: err}
	}
	if err := devices.attach(); err != nil {
		return &os.PathError{Op: "replace", Path: "/dev", Err: err}
	}
	for i, p := range v {
		if trees[i] == missing {
			continue
		}
		if err := v.pin(i); err != nil {
			return &os.PathError{Op: "pin", Path: p.Path, Err: err}
		}
		if err := attach(trees[i], p.Path); err != nil {
			return &os.PathError{Op: "arrange", Path: p.Path, Err: err}
		}
	}
	for i, p := range v { // nothing is to be put where something is hidden
		if p.Access != Hidden || trees[i] == missing {
			continue
		}
		if err := readOnly(unix.AT_FDCWD, p.Path, 0); err != nil && !errors.Is(err, os.ErrNotExist) {
			return &os.PathError{Op: "close", Path: p.Path, Err: err}
		}
	}
	return nil
}

// readOnly makes a mount, or with AT_RECURSIVE also those below it, one in which nothing can be changed.
func readOnly(dir int, path string, flags uint) error {
	return unix.MountSetattr(dir, path, flags, &unix.MountAttr{Attr_set: unix.MOUNT_ATTR_RDONLY})
}

// missing is the tree of a place that does not exist, where nothing can be put either, or to which there is no way.
const missing = -1

func outOfReach(err error) bool {
	return errors.Is(err, os.ErrNotExist) || errors.Is(err, os.ErrPermission)
}

// tree opens what is to be found at a place, as mounts that are attached nowhere yet.
func (p Place) tree() (int, error) {
	from := p.Path
	if p.From != "" && p.Access != Layered {
		from = p.From
	}
	if p.Access == Hidden {
		fd, err := open(p.Path)
		if err != nil {
			return missing, err
		}
		var info unix.Stat_t
		if err := errors.Join(unix.Fstat(fd, &info), unix.Close(fd)); err != nil {
			return missing, err
		}
		if info.Mode&unix.S_IFMT == unix.S_IFDIR {
			return empty("mode", "0700", "size", "1m")
		}
		from = "/dev/null"
	}
	if p.Access == Layered {
		return p.layers()
	}
	tree, err := clone(from)
	if err == nil && p.Access == Readable {
		err = readOnly(tree, "", unix.AT_EMPTY_PATH|unix.AT_RECURSIVE)
	}
	return tree, err
}

// layers puts a directory that the command can change over one that it cannot. Where the system does not do that for a
// process without privileges (before Linux 5.11), the command sees the latter alone.
func (p Place) layers() (int, error) {
	var dirs [2]string
	for i, name := range []string{"changes", "work"} {
		dirs[i] = p.From + "/" + name
		if err := os.MkdirAll(dirs[i], 0o700); err != nil {
			return missing, err
		}
	}
	escape := strings.NewReplacer("\\", "\\\\", ":", "\\:").Replace
	tree, err := made("overlay", "lowerdir", escape(p.Path), "upperdir", escape(dirs[0]), "workdir", escape(dirs[1]),
		"userxattr", "")
	if err != nil {
		return Place{Path: p.Path, Access: Readable}.tree()
	}
	return tree, nil
}

// pin keeps the command from renaming the directories between a place that it can change and the one with an index that
// it cannot: the next process would look for that where it is no more. The kernel renames no directory on which
// something is mounted, so each is mounted on itself. A rename from one of them into another one is answered EXDEV, as
// between file systems.
func (v View) pin(index int) error {
	path := v[index].Path
	for i := index - 1; i >= 0; i-- {
		above := v[i].Path
		if !strings.HasPrefix(path, strings.TrimSuffix(above, "/")+"/") {
			continue
		}
		if v[i].Access != Writable || v[i].From != "" {
			return nil
		}
		for at := len(above) + 1; at < len(path); at++ {
			if path[at] != '/' {
				continue
			}
			tree, err := clone(path[:at])
			if err == nil {
				err = attach(tree, path[:at])
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return nil
}

// device is a file of /dev, and the mount of it.
type device struct {
	name string
	tree int
}

type deviceList []device

// openDevices opens what programs may use of /dev: neither disks, nor the terminals, memory and queues of others.
func openDevices() (deviceList, error) {
	var all deviceList
	for _, name := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		tree, err := clone("/dev/" + name)
		if errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return nil, &os.PathError{Op: "open", Path: "/dev/" + name, Err: err}
		}
		all = append(all, device{name, tree})
	}
	return all, nil
}

// attach makes /dev a directory with these devices.
func (l deviceList) attach() error {
	tree, err := empty("mode", "0755", "size", "1m")
	if err == nil {
		err = attach(tree, "/dev")
	}
	if err != nil {
		return err
	}
	for _, d := range l {
		if err := attach(d.tree, "/dev/"+d.name); err != nil {
			return err
		}
	}
	for name, target := range map[string]string{
		"fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
		"ptmx": "pts/ptmx",
	} {
		if err := os.Symlink(target, "/dev/"+name); err != nil {
			return err
		}
	}
	// It is memory of no process: when that runs out, the kernel would end those of others first.
	memory, err := empty("mode", "1777", "size", "256m", "nr_inodes", "65536")
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir("/dev/shm", 0o777), os.Mkdir("/dev/pts", 0o755)); err != nil {
		return err
	}
	if err := attach(memory, "/dev/shm"); err != nil {
		return err
	}
	// Where they cannot be made, there are none.
	if terminals, err := made("devpts", "mode", "0620", "ptmxmode", "0666", "max", "256"); err == nil {
		if err := attach(terminals, "/dev/pts"); err != nil {
			return err
		}
	}
	return readOnly(unix.AT_FDCWD, "/dev", 0)
}

// open opens a path on which there are no links.
func open(path string) (int, error) {
	return unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC,
		Resolve: unix.RESOLVE_NO_SYMLINKS})
}

// clone opens a copy of the mounts at and below a path.
func clone(path string) (int, error) {
	fd, err := open(path)
	if err != nil {
		return missing, err
	}
	defer func() { _ = unix.Close(fd) }()
	return unix.OpenTree(fd, "", unix.AT_EMPTY_PATH|unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC|unix.AT_RECURSIVE)
}

// empty makes a file system in memory.
func empty(options ...string) (int, error) { return made("tmpfs", options...) }

// made makes a file system with options, each a name and a value, which is empty for those without one.
func made(kind string, options ...string) (int, error) {
	fd, err := unix.Fsopen(kind, unix.FSOPEN_CLOEXEC)
	if err != nil {
		return missing, err
	}
	defer func() { _ = unix.Close(fd) }()
	for i := 0; i+1 < len(options); i += 2 {
		var err error
		if options[i+1] == "" {
			err = unix.FsconfigSetFlag(fd, options[i])
		} else {
			err = unix.FsconfigSetString(fd, options[i], options[i+1])
		}
		if err != nil {
			return missing, err
		}
	}
	if err := unix.FsconfigCreate(fd); err != nil {
		return missing, err
	}
	return unix.Fsmount(fd, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NOSUID)
}

// attach puts mounts onto a path, which it makes where everything else is hidden.
func attach(tree int, path string) error {
	at, err := open(path)
	if errors.Is(err, os.ErrNotExist) {
		if err = point(tree, path); err == nil {
			at, err = open(path)
		}
	}
	if err != nil {
		return err
	}
	defer func() { _ = unix.Close(at) }()
	err = unix.MoveMount(tree, "", at, "", unix.MOVE_MOUNT_F_EMPTY_PATH|unix.MOVE_MOUNT_T_EMPTY_PATH)
	return errors.Join(err, unix.Close(tree))
}

// point makes a file or directory onto which mounts can be put.
func point(tree int, path string) error {
	info, err := os.Stat("/proc/self/fd/" + strconv.Itoa(tree))
	if err != nil {
		return err
	}
	dir := path
	if !info.IsDir() {
		dir = path[:strings.LastIndexByte(path, '/')]
	}
	if err := os.MkdirAll(dir, 0o700); err != nil || info.IsDir() {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}
