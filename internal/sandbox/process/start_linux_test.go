package process

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

func TestTheIDOfAProcessThatHasEndedIsItsOwnUntilItIsReaped(t *testing.T) {
	cmd := exec.Command("true")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if !awaitEnd(cmd.Process) {
		t.Fatal("its end cannot be waited for")
	}
	if err := syscall.Kill(cmd.Process.Pid, 0); err != nil {
		t.Errorf("its id was given back: %v", err)
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if awaitEnd(cmd.Process) {
		t.Error("the end of a process that was reaped is waited for")
	}
}

func TestNothingIsSentToTheIDOfAProcessThatWasReaped(t *testing.T) {
	p, _ := sh(t, "exit 0")
	p.Exit()
	p.signal(func(*os.Process) { t.Error("a signal is sent to whoever has its id now") })
}
