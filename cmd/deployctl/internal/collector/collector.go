// Package collector puts off the first garbage collection of a process. Initializing the packages of this binary
// allocates some 15 MiB that stay in use. With Go's defaults the collector examines them several times before main
// begins, which takes a fifth of the processor time of a short command.
//
// Go initializes packages in the order of their paths, after those that they import. This one imports only the
// runtime, so that it comes before nearly all that allocate. The settings of the user, GOGC and GOMEMLIMIT, win.
package collector

import (
	"math"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
)

// first is the memory, in bytes, with which the first collection begins. Most commands end before.
const first = 64 << 20

func init() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	debug.SetGCPercent(-1)
	debug.SetMemoryLimit(first)
	runtime.SetFinalizer(new([16]byte), func(*[16]byte) { Begin() }) // is called after the first collection
}

// Begin lets the collector run as Go's defaults have it from now on. A memory limit that is set afterwards stays.
func Begin() { begin() }

var begin = sync.OnceFunc(func() {
	if debug.SetMemoryLimit(-1) != first {
		return // the user has chosen another
	}
	debug.SetMemoryLimit(math.MaxInt64)
	debug.SetGCPercent(100)
})
