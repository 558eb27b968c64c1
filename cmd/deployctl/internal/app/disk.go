package app

import (
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
)

// diskPause is the time between two checks of the embedded service's disk.
const diskPause = 2 * time.Second

// watchDisk reports, until stop is called, each time that the disk of the embedded service becomes full: without a
// message, a command that waits for the service would seem to hang.
func watchDisk(home string, say func(string)) (stop func()) {
	ended := make(chan struct{})
	go func() {
		ticks := time.NewTicker(diskPause)
		defer ticks.Stop()
		for full := false; ; {
			err := devserver.DiskFull(home)
			if err != nil && !full {
				say(err.Error())
			}
			full = err != nil
			select {
			case <-ended:
				return
			case <-ticks.C:
			}
		}
	}()
	return sync.OnceFunc(func() { close(ended) })
}
