package guard

import (
	"os"

	"golang.org/x/sys/unix"
)

// seclude closes this process to others of the same user: one that opened its standard input could keep it from seeing
// the end of its owner, or name groups to kill. It also names the process, which is shown as "exe" otherwise.
func seclude() {
	// Where the system refuses one of these, the process does its work as well.
	_ = os.WriteFile("/proc/self/comm", []byte(Name), 0) //nolint:forbidigo // no program can replace it
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
}
