package process

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox"
)

// boxed returns a box with namespaces.
func boxed(t *testing.T) *sandbox.Box {
	t.Helper()
	return boxOf(t, namespaces(t))
}

// namespaces returns a policy that keeps processes apart in namespaces.
func namespaces(t *testing.T) *sandbox.Policy {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has namespaces")
	}
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.Namespace})
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

func boxOf(t *testing.T, policy *sandbox.Policy) *sandbox.Box {
	t.Helper()
	box, err := policy.Box("mine", t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = box.Close() })
	return box
}

func TestASpareProcessBecomesACommand(t *testing.T) {
	box := boxed(t)
	spares := NewSpares(box, 1, nil)
	defer spares.Close()
	spares.adding.Wait()
	pids := box.Processes()
	lines := make(chan string, 10)
	p, err := Start(Command{
		Path: "/bin/sh", Args: []string{"-c", "echo $GREETING; pwd; kill -TERM $$"}, Dir: "/usr",
		Env: []string{"GREETING=hello"},
		Box: box, Spares: spares, Stdout: func(line string) { lines <- line },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	if said := []string{<-lines, <-lines}; said[0] != "hello" || said[1] != "/usr" || p.Exit().Signal != "terminated" {
		t.Errorf("it says %q and ends with %v", said, p.Exit())
	}
	if len(pids) != 1 || p.Pid() != pids[0] || len(box.Processes()) != 0 {
		t.Errorf("process %d was none of %d, or is still known: %d", p.Pid(), pids, box.Processes())
	}
}

func TestASpareProcessThatCannotBecomeACommandSaysWhyAndEnds(t *testing.T) {
	box := boxed(t)
	spares := NewSpares(box, 1, nil)
	defer spares.Close()
	spares.adding.Wait()
	pid := box.Processes()[0]
	if _, err := Start(Command{Path: "/nowhere/tool", Box: box, Spares: spares}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	gone(t, strconv.Itoa(pid))
}

// reserveOf returns a reserve with one process, and its id.
func reserveOf(t *testing.T, policy *sandbox.Policy) (*Spares, int) {
	t.Helper()
	reserve := NewReserve(policy)
	t.Cleanup(reserve.Close)
	reserve.Fill(1)
	reserve.adding.Wait()
	if len(reserve.waiting) != 1 {
		t.Fatalf("%d processes", len(reserve.waiting))
	}
	return reserve, reserve.waiting[0].cmd.Process.Pid
}

// lists starts a command of a box that lists two directories, and returns what it says and its id.
func lists(t *testing.T, box *sandbox.Box, spares *Spares, dirs ...string) (said string, pid int) {
	t.Helper()
	lines := make(chan string, 100)
	p, err := Start(Command{
		Path: "/bin/sh", Args: append([]string{"-c", `for d; do ls -A "$d" 2>&1; done`, "sh"}, dirs...),
		Env: []string{"PATH=/usr/bin:/bin"}, Box: box, Spares: spares,
		Stdout: func(line string) { lines <- line },
	})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
	close(lines)
	for line := range lines {
		said += line + "\n"
	}
	return said, p.Pid()
}

// The room of another organization is hidden from it as from a process that was started for the box.
func TestAProcessOfAReserveJoinsABox(t *testing.T) {
	policy := namespaces(t)
	reserve, pid := reserveOf(t, policy)
	rooms := t.TempDir()
	mine, err := policy.Box("mine", rooms)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mine.Close() }()
	other, err := policy.Box("other", rooms)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	spares := NewSpares(mine, 1, reserve)
	defer spares.Close()
	spares.adding.Wait()
	said, became := lists(t, mine, spares, filepath.Join(rooms, sandbox.RoomName("mine")), rooms)
	if became != pid {
		t.Errorf("process %d is none of the reserve, which had %d", became, pid)
	}
	direct, _ := lists(t, mine, nil, filepath.Join(rooms, sandbox.RoomName("mine")), rooms)
	if said != direct || !strings.Contains(said, sandbox.Bundles) || strings.Contains(said, sandbox.RoomName("other")) {
		t.Errorf("it sees %q; one that was started for the box sees %q", said, direct)
	}
	if left := mine.Processes(); len(left) != 0 {
		t.Errorf("%d are still known", left)
	}
}

func TestAProcessOfAReserveThatHasEndedIsReplaced(t *testing.T) {
	policy := namespaces(t)
	reserve, pid := reserveOf(t, policy)
	process, err := os.FindProcess(pid)
	if err != nil {
		t.Fatal(err)
	}
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, strconv.Itoa(pid))
	box := boxOf(t, policy)
	spares := NewSpares(box, 1, reserve)
	defer spares.Close()
	spares.adding.Wait()
	if said, became := lists(t, box, spares, "/"); became == pid || !strings.Contains(said, "proc\n") {
		t.Errorf("process %d says %q", became, said)
	}
}

func TestASpareProcessThatHasEndedIsReplaced(t *testing.T) {
	box := boxOf(t, namespaces(t))
	spares := NewSpares(box, 1, nil)
	defer spares.Close()
	spares.adding.Wait()
	process := spares.waiting[0].cmd.Process
	if err := process.Kill(); err != nil {
		t.Fatal(err)
	}
	gone(t, strconv.Itoa(process.Pid))
	if said, became := lists(t, box, spares, "/"); became == process.Pid || !strings.Contains(said, "proc\n") {
		t.Errorf("process %d says %q", became, said)
	}
}

func TestAReserveIsFilledToANumberAndEndsWithItsOwner(t *testing.T) {
	reserve, first := reserveOf(t, namespaces(t))
	reserve.Fill(2)
	reserve.Fill(2)
	reserve.adding.Wait()
	if len(reserve.waiting) != 2 {
		t.Fatalf("%d processes", len(reserve.waiting))
	}
	second := reserve.waiting[1].cmd.Process.Pid
	reserve.Close()
	gone(t, strconv.Itoa(first))
	gone(t, strconv.Itoa(second))
	reserve.Fill(1)
	reserve.adding.Wait()
	if len(reserve.waiting) != 0 {
		t.Error("a closed reserve is filled")
	}
}

func TestSpareProcessesThatNobodyNeedsEnd(t *testing.T) {
	box := boxed(t)
	spares := NewSpares(box, 2, nil)
	spares.adding.Wait()
	pids := box.Processes()
	spares.Close()
	for _, pid := range pids {
		gone(t, strconv.Itoa(pid))
	}
	if len(pids) != 2 || len(box.Processes()) != 0 {
		t.Errorf("%d are known, of %d", box.Processes(), pids)
	}
}
