package sandbox

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// asked is a process of a box that reads the file that it is asked for, and answers with its content.
type asked struct {
	in  *os.File
	out *os.File
}

func startAsked(t *testing.T, b *Box) asked {
	t.Helper()
	in, toIn, err1 := os.Pipe()
	fromOut, out, err2 := os.Pipe()
	cmd := exec.Command("/bin/sh", "-c", `while read -r path; do echo "is $(head -n 1 "$path" 2>/dev/null)"; done`)
	cmd.Env, cmd.Dir, cmd.Stdin, cmd.Stdout = []string{"PATH=/usr/bin:/bin"}, b.Home(), in, out
	l, err := b.Prepare(cmd)
	if err := errors.Join(err1, err2, err); err != nil {
		t.Fatal(err)
	}
	if err := l.Start(cmd, cmd.Start); err != nil {
		t.Fatal(err)
	}
	_ = errors.Join(in.Close(), out.Close())
	t.Cleanup(func() { _ = errors.Join(toIn.Close(), cmd.Wait(), fromOut.Close()) })
	return asked{toIn, fromOut}
}

func (a asked) read(t *testing.T, path string) string {
	t.Helper()
	answer := make([]byte, 100)
	_, err := fmt.Fprintln(a.in, path)
	n, errOut := a.out.Read(answer)
	if err := errors.Join(err, errOut); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(strings.TrimPrefix(string(answer[:n]), "is"))
}

// volume makes the directory of a mounted secret as Kubernetes does: the file is a link, by way of a link that is
// replaced.
func volume(t *testing.T, dir string) string {
	t.Helper()
	write(t, filepath.Join(dir, "..1", "key"), "needle\n")
	if err := errors.Join(os.Symlink("..1", filepath.Join(dir, "..data")),
		os.Symlink("..data/key", filepath.Join(dir, "key"))); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "key")
}

func replaceVolume(t *testing.T, dir string) {
	t.Helper()
	write(t, filepath.Join(dir, "..2", "key"), "needle\n")
	next := filepath.Join(dir, "..next")
	if err := errors.Join(os.Symlink("..2", next), os.Rename(next, filepath.Join(dir, "..data"))); err != nil {
		t.Fatal(err)
	}
}

func replaceFile(t *testing.T, path string) {
	t.Helper()
	if err := os.Rename(write(t, path+".new", "needle\n"), path); err != nil {
		t.Fatal(err)
	}
}

func TestASecretThatIsReplacedWhileAProcessRunsStaysHidden(t *testing.T) {
	dir := t.TempDir()
	file, mounted, named := write(t, filepath.Join(dir, "file", "key"), "needle\n"),
		volume(t, filepath.Join(dir, "volume")),
		volume(t, filepath.Join(dir, "named"))
	target, linked := write(t, filepath.Join(dir, "target", "key"), "needle\n"), filepath.Join(dir, "linked", "key")
	if err := errors.Join(os.Mkdir(filepath.Dir(linked), 0o700), os.Symlink(target, linked)); err != nil {
		t.Fatal(err)
	}
	named = filepath.Join(filepath.Dir(named), "..data", "key")
	p, warnings, err := New(Options{Mode: Namespace, Shared: []string{dir}, Hide: []string{file, mounted, named, linked}})
	if err != nil || len(warnings) != 0 {
		t.Fatal(err, warnings)
	}
	process := startAsked(t, box(t, p, "mine", t.TempDir()))
	look := func(when string) {
		t.Helper()
		for _, path := range []string{
			file, file + ".new", mounted, named, linked, target, filepath.Join(dir, "volume", "..2", "key"),
			filepath.Join(dir, "named", "..2", "key"),
		} {
			if got := process.read(t, path); got != "" {
				t.Errorf("%s it reads %q from %s", when, got, path)
			}
		}
	}
	look("at first")
	replaceFile(t, file)
	replaceVolume(t, filepath.Join(dir, "volume"))
	replaceVolume(t, filepath.Join(dir, "named"))
	replaceFile(t, target)
	look("once the files are replaced,")
	replaceFile(t, linked)
	look("once a link is replaced by a file,")
}

func TestASecretAmongFilesThatProgramsNeedIsHiddenAloneAndWarnedOf(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	tools := filepath.Join(t.TempDir(), "tools")
	t.Setenv("PATH", filepath.Join(tools, "bin")+":/usr/bin:/bin")
	tool := write(t, filepath.Join(tools, "bin", "tool"), "tool\n")
	keys := []string{
		write(t, filepath.Join(home, "key"), "needle\n"), write(t, filepath.Join(home, ".config", "key"), "needle\n"),
		write(t, filepath.Join(tools, "key"), "needle\n"), write(t, filepath.Join(tools, "bin", "key"), "needle\n"),
	}
	p, warnings, err := New(Options{Mode: Namespace, OneUser: true, Hide: keys})
	if err != nil {
		t.Fatal(err)
	}
	process := startAsked(t, box(t, p, "mine", t.TempDir()))
	for _, key := range keys {
		if got := process.read(t, key); got != "" {
			t.Errorf("it reads %q from %s", got, key)
		}
		if said := strings.Join(warnings, "\n"); !strings.Contains(said, "read "+key+" once it is replaced") {
			t.Errorf("nothing warns of %s: %s", key, said)
		}
	}
	if got := process.read(t, tool); got != "tool" {
		t.Errorf("it reads %q from a tool", got)
	}
}

func TestDirectoriesThatProgramsNeedAreKnown(t *testing.T) {
	p := &Policy{needed: neededPlaces(Options{}, nil)}
	for _, dir := range []string{"/", "/etc", "/tmp", os.TempDir(), "/usr", "/usr/share/keys", "/var/lib", "/dev/shm"} {
		if !p.needs(dir) {
			t.Errorf("%s is not needed", dir)
		}
	}
	for _, dir := range []string{"/keys", "/etc/deployctl", "/run/secrets", "/var/run/secrets/eks", "/etc/ssl/private",
		"/opt/deployctl/keys"} {
		if p.needs(dir) {
			t.Errorf("%s is needed", dir)
		}
	}
}

// state is what others of the same user may change of a process.
func state(t *testing.T, pid int) string {
	t.Helper()
	var files unix.Rlimit
	var processors unix.CPUSet
	nice, err1 := unix.Getpriority(unix.PRIO_PROCESS, pid)
	io, _, errno := unix.Syscall(unix.SYS_IOPRIO_GET, 1, uintptr(pid), 0)
	attributes, err2 := unix.SchedGetAttr(pid, 0)
	err := errors.Join(err1, err2, unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &files),
		unix.SchedGetaffinity(pid, &processors))
	if err != nil || errno != 0 {
		t.Fatal(err, errno)
	}
	return fmt.Sprint(files, processors.Count(), nice, io, attributes.Policy)
}

func TestAProcessChangesLimitsAndPrioritiesOfItsOwnAlone(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		b := box(t, policy(t, o), "mine", place(t))
		pid := secretHolder(t)
		before := state(t, pid)
		out, err := inBox(t, b, strings.ReplaceAll(`
refused() { "$@" >/dev/null 2>&1 && echo "WRONG: $*"; }
works() { said=$("$@" 2>&1) || echo "WRONG: $* fails: $said"; }
refused prlimit --pid PID --nofile=20:20
refused taskset -p 1 PID
refused chrt --batch -p 0 PID
refused chrt --idle -p 0 PID
refused renice -n 5 -p PID
refused ionice -c 3 -p PID
works nice -n 5 true
works taskset 1 true
works chrt --batch 0 true
works ionice -c 3 true
works prlimit --nofile=20:20 true
ulimit -n 30 || echo "WRONG: ulimit"
echo $(($(nice -n 1 nice) - $(nice)))`, "PID", strconv.Itoa(pid)))
		if err != nil || out != "1\n" {
			t.Errorf("%v: %s", err, out)
		}
		if after := state(t, pid); after != before {
			t.Errorf("a process outside was %s and is %s", before, after)
		}
	})
}

func TestAProcessChangesNoPrioritiesOfItsUserOrAGroup(t *testing.T) {
	b := box(t, policy(t, Options{Mode: Namespace}), "mine", place(t))
	pid := secretHolder(t) // in the group of this process
	before := state(t, pid)
	out, _ := inBox(t, b, fmt.Sprintf("renice -n 5 -u %d; renice -n 5 -g %d; ionice -c 3 -u %[1]d; ionice -c 3 -P %d",
		os.Getuid(), unix.Getpgrp(), unix.Getpgrp()))
	if after := state(t, pid); after != before {
		t.Errorf("a process outside was %s and is %s: %s", before, after, out)
	}
}

// call386 is an executable for 32-bit processors that asks for the open files of a process, and ends with the error.
func call386(pid int) []byte {
	code := binary.LittleEndian.AppendUint32([]byte{0xbb}, uint32(pid)) // mov ebx, pid
	code = append(code,
		0xb9, 7, 0, 0, 0, 0x31, 0xd2, 0x31, 0xf6, // mov ecx, RLIMIT_NOFILE; xor edx, edx; xor esi, esi
		0xb8, 0x54, 1, 0, 0, 0xcd, 0x80, // mov eax, prlimit64; int 0x80
		0xf7, 0xd8, 0x89, 0xc3, // neg eax; mov ebx, eax
		0xb8, 1, 0, 0, 0, 0xcd, 0x80) // mov eax, exit; int 0x80
	const base, headers = 0x08048000, 52 + 32
	size := uint32(headers + len(code))
	var file bytes.Buffer
	file.WriteString("\x7fELF\x01\x01\x01" + strings.Repeat("\x00", 9))
	for _, field := range []any{
		uint16(2), uint16(3), uint32(1), uint32(base + headers), uint32(52), uint32(0), uint32(0),
		uint16(52), uint16(32), uint16(1), uint16(0), uint16(0), uint16(0),
		uint32(1), uint32(0), uint32(base), uint32(base), size, size, uint32(5), uint32(0x1000),
	} {
		_ = binary.Write(&file, binary.LittleEndian, field)
	}
	return append(file.Bytes(), code...)
}

func TestA32BitProcessIsRefusedTheSame(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		t.Skip("it is made for this architecture")
	}
	b := box(t, policy(t, Options{Mode: Namespace}), "mine", place(t))
	dir := b.Home()
	for pid, want := range map[int]syscall.Errno{0: 0, secretHolder(t): unix.EPERM} {
		path := filepath.Join(dir, strconv.Itoa(pid))
		if err := os.WriteFile(path, call386(pid), 0o700); err != nil { //nolint:gosec // it is run
			t.Fatal(err)
		}
		if err := exec.Command(path).Run(); err != nil {
			t.Skipf("the system runs no 32-bit programs, or has asked for less: %v", err)
		}
		_, err := inBox(t, b, "exec "+path)
		var ended *exec.ExitError
		if want == 0 && err != nil || want != 0 && (!errors.As(err, &ended) || ended.ExitCode() != int(want)) {
			t.Errorf("of process %d: %v, and not %v", pid, err, want)
		}
	}
}

func TestADirectoryAboveWhatIsHiddenIsNotReplaced(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		dir := place(t)
		above := filepath.Join(dir, "above")
		secrets, rooms := filepath.Join(above, "state", "keys"), filepath.Join(above, "work", "rooms")
		for _, made := range []string{secrets, rooms} {
			if err := os.MkdirAll(made, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		write(t, filepath.Join(secrets, "key"), "needle")
		o.Hide, o.Shared = []string{secrets}, []string{dir}
		p := policy(t, o)
		if err := errors.Join(os.Chmod(dir, 0o711), os.Chmod(above, 0o711)); err != nil {
			t.Fatal(err)
		}
		others := box(t, p, "others", rooms)
		if err := others.Do(func() error {
			return os.WriteFile(filepath.Join(others.Home(), "program"),
				[]byte("needle"), 0o600)
		}); err != nil {
			t.Fatal(err)
		}
		mine := box(t, p, "mine", rooms)
		moves, err := inBox(t, mine, fmt.Sprintf(`cd %s; for d in %s above above/state above/work above/state/keys above/work/rooms; do
			mv $d $d.moved && echo "moved $d" && mkdir -p $d; ln -s $d.moved/* $d; done; true`, dir, dir))
		if err != nil || strings.Contains(moves, "moved ") {
			t.Errorf("%v: %s", err, moves)
		}
		out, err := inBox(t, mine, fmt.Sprintf(`grep -rs needle %s; true`, dir))
		if err != nil || strings.Contains(out, "needle") {
			t.Errorf("%v: the next process sees %s", err, out)
		}
	})
}
