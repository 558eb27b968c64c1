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

	"golang.org/x/sys/unix"
)

// launcher is the name under which this binary is the launcher.
const launcher = "deployctl-launcher"

// orders are what the launcher is told, over a socket: neither its arguments nor its environment are the command's.
type orders struct {
	Path   string // empty: nothing is started, it is a probe
	Args   []string
	Env    []string
	Dir    string
	Limits Limits
	// Confine: the launcher is in namespaces of its own. It hides Hide there, but for Show.
	Confine bool
	Hide    []string
	Show    []string
	// UID and GID are those that the command is to have in the user namespace: the ones that it has outside.
	UID, GID int
}

// Launch is a command that is about to be started; see Prepare.
type Launch struct {
	box    *Box
	orders orders
	wire   *os.File // our end of the socket
	theirs *os.File
}

// Prepare makes a command that was not started yet one of the box. Start it with what Prepare has made of it, at once, and
// call Started with the result.
func (b *Box) Prepare(cmd *exec.Cmd) (*Launch, error) {
	l := &Launch{box: b}
	if b == nil || b.policy.Mode() == Off || cmd.Err != nil {
		return l, nil
	}
	l.orders = orders{
		Path: cmd.Path, Args: cmd.Args, Env: append(cmd.Environ(), b.Environment()...), Dir: cmd.Dir,
		Limits: b.policy.limits, Hide: append(slices.Clone(b.policy.hide), b.rooms),
	}
	for _, part := range parts {
		l.orders.Show = append(l.orders.Show, filepath.Join(b.room, part))
	}
	return l, l.make(cmd, b.policy.mode, b.id)
}

// make turns the command into the launcher.
func (l *Launch) make(cmd *exec.Cmd, mode Mode, id *identity) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	attributes := cmd.SysProcAttr
	if mode == RunAs {
		attributes.Credential = &syscall.Credential{Uid: uint32(id.uid), Gid: uint32(id.gid)} //nolint:gosec // ids fit
	} else {
		l.orders.Confine, l.orders.UID, l.orders.GID = true, os.Geteuid(), os.Getegid()
		attributes.Cloneflags |= unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWIPC
		attributes.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP} // in its own namespaces, until the command starts
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	l.wire, l.theirs = os.NewFile(uintptr(pair[0]), "launcher"), os.NewFile(uintptr(pair[1]), "launcher") //nolint:gosec // descriptors
	cmd.Path, cmd.Args, cmd.Env, cmd.Dir = "/proc/self/exe", []string{launcher}, []string{"GOMAXPROCS=1"}, "/"
	cmd.ExtraFiles = []*os.File{l.theirs} // its descriptor 3
	return nil
}

// Started is called after the command's Start with its result. It returns once the command runs, or the reason why it does
// not: then the process was killed and waited for.
func (l *Launch) Started(cmd *exec.Cmd, err error) error {
	if l.wire != nil {
		defer func() { _ = errors.Join(l.wire.Close(), l.theirs.Close()) }() // the second time does nothing
	}
	if err != nil {
		return err
	}
	if l.wire != nil {
		_ = l.theirs.Close() // the launcher's own is what holds the socket open now
		if err := l.instruct(); err != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait() // says that it was killed, or that it gave up
			return err
		}
	}
	if l.box != nil {
		l.box.add(cmd.Process.Pid)
	}
	return nil
}

// instruct sends the orders. The answer ends, empty, when the launcher has become the command.
func (l *Launch) instruct() error {
	text, err := json.Marshal(l.orders)
	if err != nil {
		return err
	}
	_, err = l.wire.Write(text)
	if err = errors.Join(err, unix.Shutdown(int(l.wire.Fd()), unix.SHUT_WR)); err != nil {
		return fmt.Errorf("start it in the sandbox: %w", err)
	}
	answer, err := io.ReadAll(io.LimitReader(l.wire, 4096))
	if err != nil || len(answer) == 0 {
		return err
	}
	var failed failure
	if err := json.Unmarshal(answer, &failed); err != nil {
		return fmt.Errorf("start it in the sandbox: %s", answer)
	}
	return failed.error(l.orders.Path)
}

// failure is what the launcher says when it could not become the command.
type failure struct {
	Step  string // empty: the command itself could not be executed
	Errno syscall.Errno
}

func (f failure) error(path string) error {
	if f.Step == "" {
		return &os.PathError{Op: "fork/exec", Path: path, Err: f.Errno}
	}
	return fmt.Errorf("start %s in the sandbox: %s: %w", filepath.Base(path), f.Step, f.Errno)
}

// realPath is where an open file is, whatever links led there.
func realPath(f *os.File) (string, error) {
	return os.Readlink(fmt.Sprintf("/proc/self/fd/%d", f.Fd()))
}

// probe tries the whole way into namespaces of its own.
func (p *Policy) probe() error {
	cmd := &exec.Cmd{}
	l := &Launch{orders: orders{Hide: p.hide, Limits: p.limits}}
	if err := l.make(cmd, Namespace, nil); err != nil {
		return err
	}
	if err := l.Started(cmd, cmd.Start()); err != nil {
		return err
	}
	return cmd.Wait()
}
