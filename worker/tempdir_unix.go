//go:build unix

package worker

import (
	"io/fs"
	"os"
	"syscall"
)

// openAsIs opens a file that is there. It follows no link, and does not wait for the other end of a pipe.
const openAsIs = os.O_RDONLY | syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// belongsTo reports whether a file or directory is a user's.
func belongsTo(info fs.FileInfo, user int) bool {
	at, known := info.Sys().(*syscall.Stat_t)
	return known && int(at.Uid) == user
}
