package sandbox

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/deployctl/deployctl/internal/testkit/usertest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// runningWith returns the processes of the machine whose command line has a text.
func runningWith(t *testing.T, text string) (found []int) {
	t.Helper()
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if said, _ := os.ReadFile(line); bytes.Contains(said, []byte(text)) { // it may have ended
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(line)))
			found = append(found, pid)
		}
	}
	return found
}

// TestWhatAProgramLeavesEndsWithItsUpdate leaves processes in sessions of their own, whose parents have ended: some
// that wait, one that ignores what it can, and chains of which each process starts the next one and ends. Their
// number is bounded, and the chains end by themselves: a limit of processes holds for no root.
func TestWhatAProgramLeavesEndsWithItsUpdate(t *testing.T) {
	p := policy(t, Options{Mode: Namespace})
	rooms := place(t)
	b, other := box(t, p, "evil", rooms), box(t, p, "acme", rooms)
	mark := "mark-" + filepath.Base(rooms)
	t.Cleanup(func() {
		for _, pid := range runningWith(t, mark) {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	hop := write(t, filepath.Join(b.Home(), mark+".sh"),
		`[ $1 -gt 0 ] && setsid /bin/sh "$0" $(($1 - 1)) </dev/null >/dev/null 2>&1 &`)
	if out, err := inBox(t, b, `
for n in 1 2 3 4 5 6 7 8 9; do
	(setsid sh -c "echo > begun-$n; sleep 1000; : `+mark+`" </dev/null >/dev/null 2>&1 &)
done
(setsid sh -c "trap '' HUP INT TERM; echo > begun-10; sleep 1000; : `+mark+`" </dev/null >/dev/null 2>&1 &)
for n in 1 2 3; do setsid sh `+hop+` 20000 </dev/null >/dev/null 2>&1 & done
for n in 1 2 3 4 5 6 7 8 9 10; do while [ ! -e begun-$n ]; do sleep 0.01; done; done
wait`); err != nil { // the end of its group ends what has no session of its own yet
		t.Fatalf("%s: %v", out, err)
	}
	if found := runningWith(t, mark); len(found) < 10 {
		t.Fatalf("only %v wait", found)
	}
	neighbour := waiting(t, other)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	for range 20 { // one of a chain is not always seen
		if found := runningWith(t, mark); len(found) > 0 {
			t.Fatalf("%v are still there", found)
		}
	}
	if ended(neighbour) {
		t.Error("a process of another organization has ended, too")
	}
}

// loseFirstThread has this process go on without its first thread.
const loseFirstThread = "DEPLOYCTL_TEST_LOSES_ITS_FIRST_THREAD"

func init() { // it runs in the first thread
	if os.Getenv(loseFirstThread) != "" {
		go func() {
			_, _ = os.Stdin.Read(make([]byte, 1)) // until the test ends it
			os.Exit(0)
		}()
		_, _, _ = unix.Syscall(unix.SYS_EXIT, 0, 0, 0)
	}
}

// TestAProcessWithoutItsFirstThreadHasNotEnded has one whose state is that of a process which has ended.
func TestAProcessWithoutItsFirstThreadHasNotEnded(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), loseFirstThread+"=1")
	input, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	pid := cmd.Process.Pid
	defer func() { _, _ = cmd.Process.Kill(), cmd.Wait() }()
	waittest.Until(t, "its first thread has ended", func() bool {
		text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
		return err == nil && bytes.Contains(text, []byte(") Z "))
	})
	if ended(pid) {
		t.Error("it counts as ended, and is running")
	}
	if err := input.Close(); err != nil {
		t.Fatal(err)
	}
	waittest.Until(t, "it has ended, though nothing has waited for it", func() bool { return ended(pid) })
}

// TestWhatIsLeftIsNotTakenForEndedIfItCannotBeLookedFor has no file descriptor left.
func TestWhatIsLeftIsNotTakenForEndedIfItCannotBeLookedFor(t *testing.T) {
	file, err := os.Open(namespaceOf(os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	var limit unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &limit); err != nil {
		t.Fatal(err)
	}
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 0, Max: limit.Max}); err != nil {
		t.Fatal(err)
	}
	err = left{"user:[0]": file}.end()
	if again := unix.Setrlimit(unix.RLIMIT_NOFILE, &limit); again != nil {
		t.Fatal(again)
	}
	if !errors.Is(err, unix.EMFILE) {
		t.Errorf("it is said to have ended: %v", err)
	}
}

// TestWhatAProgramLeavesEndsThoughItHidesItself leaves processes whose files and namespaces the kernel shows to nobody
// but root: the executable of one of them is root's, and may be executed by everybody and read by nobody.
func TestWhatAProgramLeavesEndsThoughItHidesItself(t *testing.T) {
	if !usertest.Again() {
		if os.Geteuid() == 0 {
			dir, err := os.MkdirTemp("/opt", "unreadable-")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(dir) })
			text, err := os.ReadFile("/bin/sleep")
			if err := errors.Join(err, os.WriteFile(filepath.Join(dir, "sleep"), text, 0o711), //nolint:gosec // it is run
				os.Chmod(dir, 0o755)); err != nil { //nolint:gosec // for everybody
				t.Fatal(err)
			}
			t.Setenv(unreadableVariable, filepath.Join(dir, "sleep"))
		}
		usertest.Run(t, "^"+t.Name()+"$")
		return
	}
	hidden := os.Getenv(unreadableVariable)
	if hidden == "" {
		t.Skip("it is run by root's test")
	}
	p := policy(t, Options{Mode: Namespace})
	b := box(t, p, "evil", place(t))
	seconds := strconv.Itoa(1_000_000 + os.Getpid())
	if out, err := inBox(t, b, `setsid -f sh -c "echo > begun; exec `+hidden+" "+seconds+`" </dev/null >/dev/null 2>&1
while [ ! -e begun ]; do sleep 0.01; done`); err != nil { // else the end of its group ends it
		t.Fatal(out, err)
	}
	waittest.Until(t, "it waits", func() bool { return len(runningWith(t, "sleep\x00"+seconds)) > 0 })
	pid := runningWith(t, "sleep\x00"+seconds)[0]
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	if _, err := os.Readlink(namespaceOf(pid)); err == nil {
		t.Fatal("it does not hide itself")
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if !ended(pid) {
		t.Error("it is there still")
	}
}

// unreadableVariable has an executable that nobody but root can read.
const unreadableVariable = "DEPLOYCTL_TEST_UNREADABLE"
