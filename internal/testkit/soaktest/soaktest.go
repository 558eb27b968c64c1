// Package soaktest keeps tests out of `make test` that `make soak` plays.
package soaktest

import (
	"flag"
	"testing"
)

// Full has tests play what takes long, too. `make soak` gives the flag, `make test` does not.
var Full = flag.Bool("full", false, "play what takes long, too, and attacks at full size")

// Only skips, without -full, what takes long and adds a variant to what `make test` plays anyway, here or in a cheaper
// test, such as a transcript of the engine.
func Only(t *testing.T) {
	t.Helper()
	if !*Full {
		t.Skip("it takes long; make soak plays it")
	}
}

// ButFor is Only for all rows of a table but each nth, from the first on.
func ButFor(t *testing.T, nth, row int) {
	t.Helper()
	if row%nth != 0 {
		Only(t)
	}
}
