package step

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestAProviderThatIsAskedToCancelMayFinishBothAnswers(t *testing.T) {
	const never = time.Hour
	for name, c := range map[string]struct {
		ends, answers time.Duration // of the call, and of the request to cancel it
		waited        time.Duration
		killed        bool
	}{
		"it answers while the call ends":    {2 * time.Second, time.Second, 2 * time.Second, false},
		"it tidies up after the call":       {0, tidying / 2, tidying / 2, false},
		"it tidies up for long":             {0, never, tidying, false},
		"the call goes on until the kill":   {never, 0, cancelGrace, true},
		"it does neither until it is ended": {never, never, cancelGrace + tidying, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				done, asked, kill := make(chan struct{}), make(chan struct{}), make(chan struct{})
				go func() {
					defer close(done)
					select {
					case <-time.After(c.ends):
					case <-kill:
					}
				}()
				time.AfterFunc(c.answers, func() { close(asked) })
				began, killed := time.Now(), false
				awaitCancelled(done, asked, func() { killed = true; close(kill) })
				if waited := time.Since(began); waited != c.waited || killed != c.killed {
					t.Errorf("it is waited for %s, and killed: %t", waited, killed)
				}
			})
		})
	}
}
