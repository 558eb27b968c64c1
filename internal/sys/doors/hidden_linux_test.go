package doors

import (
	"context"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/usertest"
	"golang.org/x/sys/unix"
)

// TestAllOfThisHoldsForAUserWithoutPrivileges runs the tests of this package again: root sees what others do not.
func TestAllOfThisHoldsForAUserWithoutPrivileges(t *testing.T) { usertest.Run(t, ".") }

// hidden are processes whose files this user cannot see.
func hidden(t *testing.T) map[string]household {
	t.Helper()
	ended := exec.Command("/bin/true")
	if err := ended.Start(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Waitid(unix.P_PID, ended.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ended.Wait() })
	secretive := process(t, "hide", 0)
	in, err := secretive.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if said := heard(t, secretive, nil); said != "hidden" {
		t.Fatalf("it says %q", said)
	}
	t.Cleanup(func() { _ = in.Close() })
	return map[string]household{
		"a process that has ended": {ended.Process.Pid}, "a process that is not dumpable": {secretive.Process.Pid},
	}
}

func TestAProcessWhoseFilesCannotBeSeenLetsNobodyElseIn(t *testing.T) {
	for name, h := range hidden(t) {
		address, refused := serve(t, h)
		if got := heard(t, process(t, address, 0), nil); got != "" {
			t.Errorf("beside %s, a stranger hears %q", name, got)
			continue
		}
		<-refused
	}
}

func TestAPortIsNotThePluginsBecauseItsFilesCannotBeSeen(t *testing.T) {
	_, port := plugin(t)
	for name, h := range hidden(t) {
		if conn, _, err := Dial(context.Background(), h, port); err == nil {
			t.Errorf("the port of another is connected to for %s", name)
			_ = conn.Close()
		}
	}
	if got := knock("127.0.0.1:" + strconv.Itoa(int(port))); got != "hello" {
		t.Errorf("the port was closed: %q", got)
	}
}

// hide makes this process one whose files only root can see, and waits for the end of its input.
func hide() {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		panic(err)
	}
	_, _ = os.Stdout.WriteString("hidden\n")
	_, _ = os.Stdin.Read(make([]byte, 1))
}
