package sandbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/deployctl/deployctl/internal/sandbox/launcher"
	"golang.org/x/sys/unix"
)

// Launch is a process that is to become a command; see Prepare and Spare.
type Launch struct {
	box     *Box              // nil: not known yet, or none
	command *launcher.Command // nil: not known yet
	orders  launcher.Orders   // but for what depends on the box
	wire    *os.File          // our end of the socket; nil: the process is the command itself
	theirs  *os.File
	answers *json.Decoder // what is said at the other end
	staged  bool          // an outer launcher is what is started
}

// Prepare makes a command that was not started yet one of the box. Start it with what Prepare has made of it, at once:
// see Launch.Start.
func (b *Box) Prepare(cmd *exec.Cmd) (*Launch, error) {
	if !b.Apart() || cmd.Err != nil {
		return &Launch{box: b}, nil
	}
	c := b.command(cmd)
	l, err := b.Spare(cmd)
	if err == nil {
		l.command = &c
	}
	return l, err
}

// Apart tells whether processes of the box start as the launcher, so that there can be Spare ones.
func (b *Box) Apart() bool { return b != nil && b.policy.Mode() != Off }

// Spare makes a process of the box of which nobody knows yet what command it will be: what takes a while is done before
// it is needed. Start it, at once, and then call Become, or Discard.
func (b *Box) Spare(cmd *exec.Cmd) (*Launch, error) {
	l := &Launch{box: b}
	if err := l.make(cmd, b.policy.mode, b.id); err != nil {
		return nil, err
	}
	return l, l.order(b) // the socket holds the orders until they are read
}

// Early tells whether processes of all boxes start in the same way, so that there can be spare ones of no box yet.
func (p *Policy) Early() bool { return p.Mode() == Namespace }

// Spare makes a process that is of no box yet, nor knows its command. Start it, at once, and then call Join or Discard.
func (p *Policy) Spare(cmd *exec.Cmd) (*Launch, error) {
	l := &Launch{}
	return l, l.make(cmd, p.mode, nil)
}

// Join makes a spare process of no box, which has started, one of a box.
func (l *Launch) Join(b *Box, cmd *exec.Cmd) error {
	if err := l.order(b); err != nil {
		return err
	}
	l.box = b
	b.remember(cmd.Process.Pid)
	b.add(cmd.Process.Pid)
	return nil
}

// order sends the orders for a box.
func (l *Launch) order(b *Box) error {
	o := l.orders
	o.Limits = b.policy.limits
	if o.Confine {
		var err error
		if o.View, err = b.view(); err != nil {
			return fmt.Errorf("decide what programs see: %w", err)
		}
	}
	return json.NewEncoder(l.wire).Encode(o)
}

// command is what a command of the box executes.
func (b *Box) command(cmd *exec.Cmd) launcher.Command {
	env := cmd.Environ()
	if b.policy.Mode() == Namespace {
		env = b.sees().withoutCaches(env)
	}
	return launcher.Command{Path: cmd.Path, Args: cmd.Args, Env: append(env, b.Environment()...), Dir: cmd.Dir}
}

// make turns a command into the launcher.
func (l *Launch) make(cmd *exec.Cmd, mode Mode, id *identity) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.Path, cmd.Args, cmd.Env, cmd.Dir = "/proc/self/exe", []string{launcher.Name}, []string{"GOMAXPROCS=1"}, "/"
	if mode == RunAs {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(id.uid),
			Gid: uint32(id.gid)} //nolint:gosec // ids fit
	} else {
		l.orders = launcher.Orders{Confine: true, UID: os.Geteuid(), GID: os.Getegid()}
		if l.orders.DeathSignal = cmd.SysProcAttr.Pdeathsig; l.orders.DeathSignal != 0 {
			l.orders.Parent = os.Getpid()
		}
		l.staged, cmd.Args = true, append(cmd.Args, launcher.Outer)
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.wire, l.theirs = os.NewFile(uintptr(pair[0]), "launcher"), os.NewFile(uintptr(pair[1]),
		"launcher") //nolint:gosec // descriptors
	l.answers = json.NewDecoder(io.LimitReader(l.wire, 4096))
	cmd.ExtraFiles = []*os.File{l.theirs} // its descriptor 3
	return nil
}

// Start starts the process, by a function that starts the command. It returns once the command runs, or the spare
// process; or the reason why it does not: then the process was killed and waited for. The command's Process may be
// another afterwards. The process is one of the box before anybody is told which ones are.
func (l *Launch) Start(cmd *exec.Cmd, start func() error) error {
	if l.wire == nil {
		return scarce(l.box.start(cmd, start))
	}
	return l.started(cmd, start())
}

func (l *Launch) started(cmd *exec.Cmd, err error) error {
	_ = l.theirs.Close() // the launcher's own is what holds the socket open now
	if err != nil {
		return scarce(errors.Join(err, l.Discard()))
	}
	if l.staged {
		if err := l.enter(cmd); err != nil {
			_ = cmd.Wait() // what it has open
			return errors.Join(err, l.Discard())
		}
	}
	if l.box != nil {
		l.box.remember(cmd.Process.Pid)
		l.box.add(cmd.Process.Pid)
	}
	if l.command != nil {
		if err := l.become(*l.command); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // says that it was killed, or that it gave up
			l.box.Ended(cmd.Process.Pid)
			return err
		}
	}
	return nil
}

// enter makes the launcher that an outer launcher has started the command's process.
func (l *Launch) enter(cmd *exec.Cmd) error {
	var b launcher.Begun
	said := l.answers.Decode(&b)
	if _, err := cmd.Process.Wait(); err != nil {
		return err
	}
	switch {
	case said != nil:
		return silent(said)
	case b.PID == 0:
		return explain(b.Failure, "the launcher")
	}
	var err error
	cmd.Process, err = os.FindProcess(b.PID)
	return err
}

// Become makes a spare process a command, which is not to be started itself. It returns once the command runs, or the
// reason why it does not.
func (l *Launch) Become(cmd *exec.Cmd) error {
	if cmd.Err != nil {
		return errors.Join(cmd.Err, l.Discard())
	}
	return l.become(l.box.command(cmd))
}

// Discard lets a spare process end.
func (l *Launch) Discard() error {
	if l.wire == nil {
		return nil
	}
	return l.wire.Close()
}

// become sends the command. The answer ends, empty, when the launcher has become the command.
func (l *Launch) become(c launcher.Command) error {
	defer func() { _ = l.wire.Close() }()
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = l.wire.Write(text)
	err = errors.Join(err, unix.Shutdown(int(l.wire.Fd()), unix.SHUT_WR))
	var failed launcher.Failure
	// it may have ended before it was told the command, and have said why
	if said := l.answers.Decode(&failed); said != nil {
		if !errors.Is(said, io.EOF) {
			err = errors.Join(err, said)
		}
		if err != nil {
			err = silent(err)
		}
		return err
	}
	return explain(failed, c.Path)
}

// explain makes an error of why the launcher could not become a command.
func explain(f launcher.Failure, path string) error {
	if f.Step == "" {
		return scarce(&os.PathError{Op: "fork/exec", Path: path, Err: f.Errno})
	}
	return scarce(fmt.Errorf("start %s in the sandbox: %s: %w", filepath.Base(path), f.Step, f.Errno))
}

// realPath is where an open file is, whatever links led there.
func realPath(f *os.File) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// nonblocking has a pipe opened without anybody at its other end.
const nonblocking = unix.O_NONBLOCK

// openWithoutMagic opens a file or a directory for reading, by the links of file systems alone. Those below /proc lead
// wherever the rights of this process reach, which has created the namespaces of all programs.
func openWithoutMagic(path string) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_RDONLY | unix.O_CLOEXEC | unix.O_NONBLOCK | unix.O_LARGEFILE,
		Resolve: unix.RESOLVE_NO_MAGICLINKS}
	for {
		fd, err := unix.Openat2(unix.AT_FDCWD, path, &how)
		switch {
		case err == nil:
			return os.NewFile(uintptr(fd), path), nil //nolint:gosec // a descriptor
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ELOOP):
			err = unix.ENOENT
		case errors.Is(err, unix.ENOSYS):
			err = fmt.Errorf("that is safe from Linux 5.6 on only: %w", err)
		}
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
}

// ofTheKernel reports whether the kernel makes up what is read from a file.
func ofTheKernel(f *os.File) bool {
	var system unix.Statfs_t
	err := unix.Fstatfs(int(f.Fd()), &system) //nolint:gosec // a descriptor
	return err != nil || slices.Contains([]int64{unix.PROC_SUPER_MAGIC, unix.SYSFS_MAGIC},
		int64(system.Type)) //nolint:unconvert // an int32 elsewhere
}

// scoped tells whether programs reach only one another by signals and abstract sockets.
var scoped = launcher.Scoped

// probe tries the whole way into namespaces of its own.
func (p *Policy) probe() error {
	cmd := &exec.Cmd{}
	l := &Launch{command: &launcher.Command{}}
	if err := l.make(cmd, Namespace, nil); err != nil {
		return err
	}
	l.orders.View, l.orders.Limits = p.sees("").view(), p.limits
	if err := json.NewEncoder(l.wire).Encode(l.orders); err != nil {
		return errors.Join(err, l.Discard())
	}
	if err := l.Start(cmd, cmd.Start); err != nil {
		return err
	}
	return cmd.Wait()
}
