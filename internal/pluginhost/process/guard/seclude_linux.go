package guard

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// seclude closes this process to others of the same user: one that opened its standard input could keep it from seeing
// the end of its owner, or name groups to kill. It also names the process, which is shown as "exe" otherwise.
func seclude() {
	// Where the system refuses one of these, the process does its work as well.
	_ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0)
	name, err := unix.BytePtrFromString(Name)
	if err == nil {
		_ = unix.Prctl(unix.PR_SET_NAME, uintptr(unsafe.Pointer(name)), 0, 0, 0)
		runtime.KeepAlive(name)
	}
}
