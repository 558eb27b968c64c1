package app

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestNoPackageAsksTheTerminalForItsColors starts a binary with the packages of this one on a terminal that answers
// nothing.
func TestNoPackageAsksTheTerminalForItsColors(t *testing.T) {
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	defer func() { _ = master.Close() }()
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	terminal, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), "TERM=xterm-256color", "COLORTERM=", "CI=")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = terminal, terminal, terminal
	cmd.SysProcAttr = &unix.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = terminal.Close()
	said, _ := io.ReadAll(master) // the end of a terminal is an error
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	if !bytes.Contains(said, []byte("PASS")) || bytes.Contains(said, []byte("\x1b")) {
		t.Errorf("the terminal is sent %q", said)
	}
}
