package guard

import (
	"fmt"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"
)

// TestMain makes the test binary a process that closes itself, and says what has come of that.
func TestMain(m *testing.M) {
	if os.Getenv("GUARD_TEST_SECLUDED") == "" {
		os.Exit(m.Run())
	}
	seclude()
	open, _ := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	name, _ := os.ReadFile("/proc/self/comm")
	fmt.Printf("%d %s", open, name)
}

func TestAGuardIsClosedToOthersAndHasItsName(t *testing.T) {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "GUARD_TEST_SECLUDED=1")
	said, err := cmd.Output()
	if err != nil || string(said) != "0 "+Name+"\n" {
		t.Errorf("it says %q, %v", said, err)
	}
}
