//go:build linux || darwin

package devserver

import "syscall"

// room gives how many bytes this user may still write to the file system of dir, and how many files it may still hold.
func room(dir string) (free, files uint64, told bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return 0, 0, false
	}
	if files = s.Ffree; s.Files == 0 { // a file system that does not count them
		files = 1
	}
	return s.Bavail * uint64(s.Bsize), files, true // Bsize has another type on other systems
}
