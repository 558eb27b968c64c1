package app

import (
	"errors"
	"os/exec"
	"sync"
	"time"

	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/terminal/settings"
)

// restarter restarts a killed embedded service for a client that waits for it. A service that a user has stopped stays
// stopped.
type restarter struct {
	home     string
	settings settings.Settings // of the client
	say      func(string)

	mu       sync.Mutex
	child    *background // started last
	started  time.Time
	reported *background // whose failure has been reported
	refused  string      // the last error of a start that was reported
}

// restartPause is the shortest time between two starts, so that a service that fails at once is not started in a loop.
const restartPause = 2 * time.Second

// look is client.Options.Missed: it starts the service unless a process has locked the home. If several clients do so
// at once, one gets the lock, and the processes of the others end.
func (r *restarter) look() {
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
	if !status.Died || time.Since(r.started) < restartPause {
		return
	}
	r.started = time.Now()
	child, err := startBackground(r.home, r.settings)
	switch {
	case err != nil && err.Error() != r.refused:
		r.refused = err.Error()
		r.say("The embedded service has died, and cannot be restarted: " + r.refused)
	case err == nil:
		r.child = child
		if r.reported == nil {
			r.say("The embedded service has died; restarting it in the background, where the update continues.")
		}
	}
}

// failed reports whether the process ended by itself with an error; being killed does not count.
func (b *background) failed() bool {
	var exit *exec.ExitError
	return b != nil && b.ended() && errors.As(b.err, &exit) && exit.Exited()
}
