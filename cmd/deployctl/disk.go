package main

import (
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
)

// diskPause is how often the disk of the embedded service is looked at.
const diskPause = 2 * time.Second

// watchDisk says when the disk of the embedded service is full, once each time, until stop is called: what waits for it then would
// look as if it hung.
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
