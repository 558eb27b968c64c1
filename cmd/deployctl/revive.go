package main

import (
	"errors"
	"os/exec"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/settings"
)

// reviver restarts a killed embedded service for a client that waits for it. A service that was stopped stays stopped,
// because a user wanted that.
type reviver struct {
	home     string
	settings settings.Settings // of the client
	say      func(string)

	mu       sync.Mutex
	child    *background // the one that was started last
	started  time.Time
	reported *background // the one whose failure has been reported
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
	if r.child.failed() && r.reported != r.child {
		r.reported = r.child
		r.say(r.child.failure().Error())
	}
	if !status.Died || time.Since(r.started) < revivePause {
		return
	}
	if r.reported == nil {
		r.say("The embedded service has died; restarting it in the background, where the update continues.")
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
