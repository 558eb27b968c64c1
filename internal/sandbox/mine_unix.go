//go:build unix

package sandbox

import (
	"io/fs"
	"os"
	"syscall"
)

// mine reports whether a file is this user's.
func mine(info fs.FileInfo) bool {
	at, known := info.Sys().(*syscall.Stat_t)
	return known && int(at.Uid) == os.Geteuid()
}
