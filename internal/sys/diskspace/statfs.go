//go:build linux || darwin

package diskspace

import "syscall"

// Of returns the space of the file system that has a directory; told is false where the system does not tell.
func Of(dir string) (space Space, told bool) {
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return Space{}, false
	}
	size := uint64(s.Bsize) // it has another type on other systems
	space = Space{Total: s.Blocks * size, Free: s.Bavail * size, FreeFiles: s.Ffree}
	if s.Files == 0 { // a file system that does not count files
		space.FreeFiles = 1
	}
	return space, true
}
