package sandbox

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/sandbox/launcher"
	"github.com/deployctl/deployctl/internal/sys/doors"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/usertest"
)

// TestAllOfThisHoldsForAWorkerThatIsNotRoot runs the tests of this package again.
func TestAllOfThisHoldsForAWorkerThatIsNotRoot(t *testing.T) {
	soaktest.Only(t)
	t.Run("without a capability", func(t *testing.T) { usertest.Run(t, ".") })
	t.Run("with those of run-as", func(t *testing.T) {
		usertest.Run(t, ".", ofRunAs()...)
	})
}

// ofRunAs are the capabilities that a worker which is not root needs.
func ofRunAs() (numbers []uintptr) {
	for _, c := range switching {
		numbers = append(numbers, uintptr(c.number))
	}
	return numbers
}

func TestAWorkerThatIsNotRootMovesAndRemovesWhatBelongsToPrograms(t *testing.T) {
	usertest.Run(t, "^TestWhatBelongsToProgramsIsMovedAndRemoved$", ofRunAs()...)
}

// TestWhatBelongsToProgramsIsMovedAndRemoved does what a worker does with bundles, and at its end.
func TestWhatBelongsToProgramsIsMovedAndRemoved(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		p, rooms := policy(t, o), place(t)
		b, err := p.Box("mine", rooms)
		if err != nil {
			t.Fatal(err)
		}
		bundles, err := b.Bundles()
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Do(func() error { return bundles.MkdirAll("unpacking/src", 0o700) }); err != nil {
			t.Fatal(err)
		}
		if err := bundles.Rename("unpacking", "bundle"); err != nil {
			t.Errorf("a bundle: %v", err)
		}
		if out, err := inBox(t, b, "mkdir -p deep/deeper && touch deep/deeper/file && chmod 0 deep/deeper deep"); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := bundles.RemoveAll("bundle"); err != nil {
			t.Errorf("a bundle that is not used any more: %v", err)
		}
		if err := errors.Join(bundles.Close(), b.Close()); err != nil {
			t.Errorf("the end of an update: %v", err)
		}
		if err := RemoveAll(rooms); err != nil {
			t.Errorf("the end of the worker: %v", err)
		}
	})
}

func TestAWorkerThatLacksACapabilityOfRunAsSaysSo(t *testing.T) {
	for without, lacking := range switching {
		t.Run(lacking.name, func(t *testing.T) {
			var numbers []uintptr
			for i, c := range switching {
				if i != without {
					numbers = append(numbers, uintptr(c.number))
				}
			}
			t.Setenv("SANDBOX_TEST_LACKS", lacking.name)
			usertest.Run(t, "^TestWhatThisProcessLacksIsSaid$", numbers...)
		})
	}
}

func TestWhatThisProcessLacksIsSaid(t *testing.T) {
	name := os.Getenv("SANDBOX_TEST_LACKS")
	if name == "" {
		t.Skip("it is run by another test")
	}
	_, _, err := New(Options{Mode: RunAs, RunAs: userIDs(1)})
	if err == nil || !strings.Contains(err.Error(), "it lacks "+name) {
		t.Errorf("%v", err)
	}
}

// TestTheProcessesOfABoxAreLetInAndNoOthersOfTheirUser has a process of a box, and one of another box of the same
// organization, connect to the port of the first, and the plugin of the one dialed for both.
func TestTheProcessesOfABoxAreLetInAndNoOthersOfTheirUser(t *testing.T) {
	modes(t, func(t *testing.T, o Options) {
		p, rooms := policy(t, o), place(t)
		mine, other := box(t, p, "mine", rooms), box(t, p, "mine", rooms)
		listener, err := doors.Listen(mine, func(net.Addr) {})
		address := greet(t, listener, err)
		knock := strings.ReplaceAll("exec 3<>/dev/tcp/AT && cat <&3", "AT", strings.Replace(address, ":", "/", 1))
		for b, want := range map[*Box]string{mine: needleText, other: ""} {
			// while a process of each box has ended, and was not waited for
			ended := exec.Command("/bin/true")
			l, err := b.Prepare(ended)
			if err == nil {
				err = l.Start(ended, ended.Start)
			}
			if err != nil {
				t.Fatal(err)
			}
			if out, _ := inBox(t, b, "bash -c '"+knock+"'"); out != want {
				t.Errorf("it hears %q, and not %q", out, want)
			}
			_ = ended.Wait()
			b.Ended(ended.Process.Pid)
		}
		if conn, _, err := doors.Dial(context.Background(), other, listening(t, mine)); err == nil {
			t.Error("the port of another update is dialed")
			_ = conn.Close()
		}
		conn, sealed, err := doors.Dial(context.Background(), mine, listening(t, mine))
		if err != nil || !sealed {
			t.Fatal(sealed, err)
		}
		_ = conn.Close()
	})
}

// telling is a box that tells when somebody asks for its processes.
type telling struct {
	*Box
	by chan struct{}
}

func (t telling) Processes() []int {
	select {
	case t.by <- struct{}{}:
	default: // it was told before
	}
	return t.Box.Processes()
}

// TestAProcessThatConnectsBeforeItsStartHasReturnedIsLetIn is what a worker sees that is short of processor time. Only
// a process that is no launcher first can run before it is known.
func TestAProcessThatConnectsBeforeItsStartHasReturnedIsLetIn(t *testing.T) {
	b := telling{Open(), make(chan struct{}, 1)}
	listener, err := doors.Listen(b, func(net.Addr) {})
	address := greet(t, listener, err)
	at := strings.Replace(address, ":", "/", 1)
	cmd := exec.Command("/bin/bash", "-c", "exec 3<>/dev/tcp/"+at+"; read -u 3; echo $REPLY")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Prepare(cmd)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Start(cmd, func() error {
		err := cmd.Start()
		<-b.by // the process has connected
		return err
	}); err != nil {
		t.Fatal(err)
	}
	heard, err := io.ReadAll(out)
	if got := strings.TrimSpace(string(heard)); err != nil || got != needleText {
		t.Errorf("it hears %q, %v", got, err)
	}
	_ = cmd.Wait() // it has said what it has heard
}

// listening is the port of a process of a box.
func listening(t *testing.T, b *Box) uint16 {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{listenVariable + "=1"}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	l, err := b.Prepare(cmd)
	if err == nil {
		err = l.Start(cmd, cmd.Start)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = cmd.Wait()
		b.Ended(cmd.Process.Pid)
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address, err := net.ResolveTCPAddr("tcp", strings.TrimSpace(line))
	if err != nil {
		t.Fatal(err)
	}
	return uint16(address.Port) //nolint:gosec // a port
}

// listenVariable has this binary listen, say where, and wait for the end of its input.
const listenVariable = "SANDBOX_TEST_LISTEN"

func listen() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	go func() {
		for { // a connection is whoever's who has accepted it
			if _, err := listener.Accept(); err != nil {
				return
			}
		}
	}()
	_, _ = os.Stdout.WriteString(listener.Addr().String() + "\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}

// TestProgramsPutNothingAboveThoseOfOthers has directories in which the rooms of organizations could be.
func TestProgramsPutNothingAboveThoseOfOthers(t *testing.T) {
	if maySwitch() != nil {
		t.Skip(maySwitch())
	}
	ids, err := newIdentities(userIDs(10), filepath.Join(t.TempDir(), "users.json"), "/etc")
	if err != nil {
		t.Fatal(err)
	}
	base, err := os.MkdirTemp("/opt", "above-")
	if err != nil {
		t.Skip(err) // only root may do that
	}
	t.Cleanup(func() { _ = os.RemoveAll(base) })
	made := func(name string, mode os.FileMode, uid, gid int) string {
		dir := filepath.Join(base, name)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.Chmod(dir, mode), os.Lchown(dir, uid, gid)); err != nil {
			t.Fatal(err)
		}
		return dir
	}
	closed, everybodys := made("closed", 0o711, 0, 0), made("everybodys", 0o777|os.ModeSticky, 0, 0)
	theirs, group := made("theirs", 0o711, ids.first, 0), made("group", 0o770, 0, ids.last)
	worker := made("everybodys/worker", 0o711, 0, 0)
	link, within := filepath.Join(everybodys, "link"), filepath.Join(closed, "link")
	if err := errors.Join(os.Symlink(closed, link), os.Symlink(worker, within)); err != nil {
		t.Fatal(err)
	}
	p := &Policy{mode: RunAs, ids: ids}
	for path, want := range map[string]string{
		closed: "", filepath.Join(closed, "not", "there"): "", theirs: theirs, group: group,
		everybodys: everybodys, worker: everybodys, filepath.Join(worker, "not", "there"): everybodys,
		link: everybodys, within: everybodys,
	} {
		if got := p.Above(path); got != want {
			t.Errorf("above %s programs may change %q, and %q is said", path, want, got)
		}
	}
	shared := &Policy{mode: Namespace, around: seen{}}
	shared.around.set(launcher.Writable, everybodys)
	for path, want := range map[string]string{closed: "", worker: everybodys, within: everybodys} {
		if got := shared.Above(path); got != want {
			t.Errorf("above %s programs may change %q, and %q is said", path, want, got)
		}
	}
}
