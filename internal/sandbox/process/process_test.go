//go:build unix

package process

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/sandbox"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// TestMain lets the test binary run as the owner of a child if it is started under that name.
func TestMain(m *testing.M) {
	if filepath.Base(os.Args[0]) == "owner" {
		box, err := ownersBox(os.Args[1:])
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", "/bin/sleep 3600 & echo $$ $!; wait"}, Box: box,
			Stdout: func(line string) { fmt.Println(line) }})
		if err != nil {
			fmt.Println(p, err)
		}
		select {}
	}
	os.Exit(m.Run())
}

// sh starts a shell script and returns a channel of its lines of output.
func sh(t *testing.T, script string) (*Process, <-chan string) {
	t.Helper()
	lines := make(chan string, 100)
	p, err := Start(Command{
		Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"PATH=/usr/bin:/bin"},
		Stdout: func(line string) { lines <- line }, Stderr: func(line string) { lines <- "stderr: " + line },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	return p, lines
}

// gone waits until no process has that id, except perhaps an unreaped one.
func gone(t *testing.T, pid string) {
	t.Helper()
	waittest.Until(t, "process "+pid+" has gone", func() bool { return !alive(pid) })
}

func alive(pid string) bool {
	state, err := exec.Command("ps", "-o", "stat=", "-p", pid).Output()
	return err == nil && !strings.HasPrefix(string(state), "Z")
}

func TestOutputIsCompleteWhenAProcessIsDone(t *testing.T) {
	p, lines := sh(t, `echo one; echo two >&2; printf three; exit 7`)
	<-p.Done()
	var got []string
	for range 3 {
		got = append(got, <-lines)
	}
	slices.Sort(got)
	if strings.Join(got, ",") != "one,stderr: two,three" || p.Exit().String() != "exit status 7" {
		t.Errorf("%v %v", got, p.Exit())
	}
}

func TestAProcessGetsOnlyTheEnvironmentThatItIsGiven(t *testing.T) {
	t.Setenv("SERVICE_SECRET", "hidden")
	p, err := Start(Command{Path: "/usr/bin/env", Stdout: func(line string) {
		if strings.HasPrefix(line, "SERVICE_SECRET") {
			t.Error(line)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	<-p.Done()
}

func TestKillEndsTheWholeGroup(t *testing.T) {
	p, lines := sh(t, `sleep 3600 & echo $!; wait`)
	child := <-lines
	p.Kill()
	gone(t, child)
	if p.Exit() != (Exit{Code: -1, Signal: "killed"}) {
		t.Errorf("%+v", p.Exit())
	}
}

func TestWhatAProcessLeavesBehindInItsGroupIsEnded(t *testing.T) {
	p, lines := sh(t, `sleep 3600 & echo $!`)
	<-p.Done()
	gone(t, <-lines)
}

func TestStopLetsAProcessEndByItself(t *testing.T) {
	p, lines := sh(t, `trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done`)
	<-lines
	p.Stop(waittest.Patience)
	for line := range lines { // the shell may also report the end of its sleep
		if line == "bye" {
			break
		}
	}
	if p.Exit().Code != 3 {
		t.Errorf("%v", p.Exit())
	}
}

func TestStopKillsAProcessThatDoesNotListen(t *testing.T) {
	p, lines := sh(t, `trap '' TERM; echo ready; while :; do sleep 0.01; done`)
	<-lines
	p.Stop(10 * time.Millisecond)
	if p.Exit().Signal != "killed" {
		t.Errorf("%v", p.Exit())
	}
	p.Stop(waittest.Patience) // a second call does nothing
}

func TestNobodyWaitsForAnInputThatIsNotGiven(t *testing.T) {
	p, lines := sh(t, `read x; echo "said $x" $?; cat; ( cat; exec sleep 0 ); echo end`)
	for _, want := range []string{"said  1", "end"} {
		if got := <-lines; got != want {
			t.Errorf("it wrote %q, not %q", got, want)
		}
	}
	<-p.Done()
}

func TestAProcessSeesTheEndOfItsStdinWhenItIsStopped(t *testing.T) {
	lines := make(chan string, 1)
	p, err := Start(Command{Path: "/bin/sh", Args: []string{"-c", `trap '' TERM; echo ready; cat; exit 5`},
		Env: []string{"PATH=/usr/bin:/bin"}, Stdin: true,
		Stdout: func(line string) { lines <- line }, Stderr: func(string) {}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	<-lines
	p.Stop(waittest.Patience)
	if p.Exit().Code != 5 {
		t.Errorf("%v", p.Exit())
	}
}

// ownersBox returns a box with the directory of an owner's argument; nil without an argument.
func ownersBox(args []string) (*sandbox.Box, error) {
	if len(args) == 0 {
		return nil, nil
	}
	policy, _, err := sandbox.New(sandbox.Options{Mode: sandbox.Namespace})
	if err != nil {
		return nil, err
	}
	return policy.Box("mine", args[0])
}

func TestAProcessAndWhatItStartedDieWithAnOwnerThatIsKilled(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, args := range map[string][]string{"without a sandbox": {"owner"},
		"in namespaces": {"owner", t.TempDir()}} {
		t.Run(name, func(t *testing.T) {
			if len(args) > 1 && runtime.GOOS != "linux" {
				t.Skip("only Linux has namespaces")
			}
			owner := &exec.Cmd{Path: self, Args: args}
			out, err := owner.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			said, _ := bufio.NewReader(out).ReadString('\n')
			_ = owner.Process.Signal(syscall.SIGKILL)
			_ = owner.Wait()
			pids := strings.Fields(said)
			if len(pids) != 2 {
				t.Fatal(said)
			}
			for _, pid := range pids {
				gone(t, pid)
			}
		})
	}
}

func TestAGuardThatEndedIsReplaced(t *testing.T) {
	var mine groups
	kept, ended, again := sleeper(t), sleeper(t), sleeper(t)
	mine.add(kept)
	mine.add(ended)
	mine.add(again)
	mine.add(again) // another group with this id, before the first one is removed
	mine.killGuard(t)
	mine.remove(ended)
	mine.remove(again)
	mine.orphan()
	gone(t, strconv.Itoa(kept))
	gone(t, strconv.Itoa(again))
	if !alive(strconv.Itoa(ended)) {
		t.Error("a group that was removed was killed")
	}
}

func TestAGuardIsKeptWithoutGroups(t *testing.T) {
	var mine groups
	if err := mine.keep(); err != nil {
		t.Fatal(err)
	}
	mine.killGuard(t)
	kept := sleeper(t)
	mine.add(kept)
	mine.orphan()
	gone(t, strconv.Itoa(kept))
}

func TestAGuardThatDoesNotListenIsReplacedAndKillsNothing(t *testing.T) {
	var mine groups
	kept := sleeper(t)
	mine.add(kept)
	old := mine.current()
	if err := old.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	for n := 0; mine.current() == nil || mine.current() == old; n++ { // until its pipe is full
		mine.add(kept)
		if mine.remove(kept); n > 1<<20 {
			t.Fatal("it is still in use")
		}
	}
	_ = old.Process.Signal(syscall.SIGCONT) // it has ended
	gone(t, strconv.Itoa(old.Process.Pid))
	if !alive(strconv.Itoa(kept)) {
		t.Error("the group was killed")
	}
	mine.orphan()
	gone(t, strconv.Itoa(kept))
}

// current returns the guard that runs; nil if none does.
func (g *groups) current() *guardProcess {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.guard
}

// orphan lets the guard see what it sees when its owner has ended, and starts no other one.
func (g *groups) orphan() {
	g.mu.Lock()
	defer g.mu.Unlock()
	_ = g.guard.reads.Close()
	g.guard, g.ids, g.always = nil, nil, false
}

// killGuard kills the guard, and returns when there is another one.
func (g *groups) killGuard(t *testing.T) {
	t.Helper()
	old := g.current()
	_ = old.Process.Kill()
	waittest.Until(t, "another guard has started", func() bool { return g.current() != nil && g.current() != old })
}

// sleeper starts a process that leads a group, and returns its id.
func sleeper(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("sleep", "3600")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}

// In the service's own session, a process could change the scheduling priority of the service.
func TestAProcessLeadsASessionOfItsOwn(t *testing.T) {
	for name, box := range map[string]*sandbox.Box{"without a sandbox": nil, "in namespaces": boxed(t)} {
		t.Run(name, func(t *testing.T) {
			lines := make(chan string, 10)
			p, err := Start(Command{
				Path: "/bin/sh", Args: []string{"-c", "cut -d' ' -f6 /proc/$$/stat"},
				Env: []string{"PATH=/usr/bin:/bin"},
				Box: box, Stdout: func(line string) { lines <- line },
			})
			if err != nil {
				t.Fatal(err)
			}
			<-p.Done()
			if session := <-lines; session != strconv.Itoa(p.Pid()) {
				t.Errorf("process %d is of session %s", p.Pid(), session)
			}
		})
	}
}

func TestAMissingExecutableIsAnError(t *testing.T) {
	if _, err := Start(Command{Path: "/nowhere/tool"}); err == nil {
		t.Error("no error")
	}
}

func TestLinesComeWithoutTheirEndsAndLongOnesInPieces(t *testing.T) {
	long := strings.Repeat("x", longestLine+5)
	var got []string
	Lines(io.MultiReader(strings.NewReader("a\r\n\nb\n"), strings.NewReader(long)),
		func(line string) { got = append(got, line) })
	want := []string{"a", "", "b", long[:longestLine], "xxxxx"}
	if !slices.Equal(got, want) {
		t.Errorf("%d pieces", len(got))
	}
}
