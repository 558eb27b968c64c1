package devserver

import (
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
)

// leastFree is with how many free bytes a disk counts as full: Temporal's log of writes alone grows by as much between two looks.
const leastFree = 4 << 20

// DiskFull says, as CodeUnavailable, that the service of a home cannot write because its disk is full; nil where it is not, or the
// system does not tell. What was acknowledged is safe; what waits goes on once there is room.
func DiskFull(path string) error {
	h, err := findHome(path)
	if err != nil {
		return nil
	}
	for dir := string(h); ; dir = filepath.Dir(dir) { // the home may not be there yet
		if !exists(dir) && dir != filepath.Dir(dir) {
			continue
		}
		free, files, told := room(dir)
		switch {
		case told && free < leastFree:
			return deployments.Errorf(deployments.CodeUnavailable,
				"the embedded service cannot write: the disk of %s is full (%.1f MiB free); make room, and it goes on by itself", h, float64(free)/(1<<20))
		case told && files == 0:
			return deployments.Errorf(deployments.CodeUnavailable,
				"the embedded service cannot write: the file system of %s can hold no more files; remove some, and it goes on by itself", h)
		}
		return nil
	}
}
