package devserver

import (
	"fmt"
	"path/filepath"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/diskspace"
)

// leastFree is with how many free bytes a disk counts as full: Temporal's log of writes alone grows by as much between
// two looks.
const leastFree = 4 << 20

// DiskFull says, as CodeUnavailable, that the service of a home cannot write because its disk is full; nil where it is
// not, or the system does not tell. What was acknowledged is safe; what waits goes on once there is room.
func DiskFull(path string) error {
	h, err := findHome(path)
	if err != nil {
		return nil
	}
	for dir := string(h); ; dir = filepath.Dir(dir) { // the home may not be there yet
		if !exists(dir) && dir != filepath.Dir(dir) {
			continue
		}
		if why := Full(dir); why != "" {
			return deployments.Errorf(deployments.CodeUnavailable,
				"the embedded service cannot write: the disk of %s %s; it continues once there is space", h, why)
		}
		return nil
	}
}

// Full says why nothing can be written below a directory, as the end of a sentence about its disk, and what to do;
// empty where something can, or where the system does not tell.
func Full(dir string) string {
	space, told := diskspace.Of(dir)
	switch {
	case told && space.Free < leastFree:
		return fmt.Sprintf("is full (%.1f MiB free); make room", float64(space.Free)/(1<<20))
	case told && space.FreeFiles == 0:
		return "can hold no more files; remove some"
	}
	return ""
}
