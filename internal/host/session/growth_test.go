package session

import (
	"context"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/gofrs/flock"
)

func TestASessionThatIsForgottenWhileItIsMadeIsClosed(t *testing.T) {
	h := newHouse(t)
	file := filepath.Join(t.TempDir(), "lock")
	held, wanted := flock.New(file), flock.New(file) // the end of the session releases it
	if err := held.Lock(); err != nil {
		t.Fatal(err)
	}
	s := &Session{update: h.update, ready: make(chan struct{}), pins: []io.Closer{held}}
	h.sessions.all[h.update.String()] = s
	over, cancel := context.WithCancel(t.Context())
	cancel()
	h.sessions.Forget(over, h.update)
	if len(h.sessions.Updates()) != 0 {
		t.Error("it is still found")
	}
	if free, err := wanted.TryLock(); free || err != nil {
		t.Errorf("it was closed before it was made: %v", err)
	}
	close(s.ready)
	if _, err := wanted.TryLockContext(waittest.Context(t), 5*time.Millisecond); err != nil {
		t.Errorf("it is never closed: %v", err)
	}
}
