package main

import (
	"errors"
	"os/exec"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/settings"
)

// reviver starts the embedded service again for a client that waits for it, if it was killed. One that was stopped stays
// so: whoever stopped it meant that.
type reviver struct {
	home     string
	settings settings.Settings // of the client
	say      func(string)

	mu      sync.Mutex
	child   *background // the one that was started last
	started time.Time
	told    *background // the one whose failure has been told
}

// revivePause is the least time between two starts, so that a service that dies at once is not started in a hot loop.
const revivePause = 2 * time.Second

// look is client.Options.Missed: it starts the service unless somebody has the home. Of several clients that do so at
// once, one gets the home's lock, and the others' processes end.
func (r *reviver) look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	status, err := devserver.ReadStatus(r.home)
	if err != nil || status.State != devserver.Stopped || !r.child.ended() {
		return
	}
	if r.child.failed() && r.told != r.child {
		r.told = r.child
		r.say(r.child.failure().Error())
	}
	if !status.Died || time.Since(r.started) < revivePause {
		return
	}
	if r.told == nil {
		r.say("The embedded service has died; starting it again in the background, where it goes on.")
	}
	r.started = time.Now()
	if child, err := startBackground(r.home, r.settings); err == nil {
		r.child = child
	} else {
		r.say(err.Error())
	}
}

// failed says whether the process has ended by itself, with an error; a kill is none.
func (b *background) failed() bool {
	var exit *exec.ExitError
	return b != nil && b.ended() && errors.As(b.err, &exit) && exit.Exited()
}
