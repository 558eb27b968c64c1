package organizations

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/flight"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// ServiceFolder has what is said of the service as a whole, and modeKey the mode that it is in; there is no object if
// it is in none.
const (
	ServiceFolder = "service/"
	modeKey       = ServiceFolder + "mode"
)

// lastMode is the mode as last read.
type lastMode struct {
	reading flight.Group[struct{}] // of the only object

	mu   sync.Mutex
	mode deployments.Mode
	read time.Time // zero: never
}

func (l *lastMode) get(now time.Time) (deployments.Mode, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.mode, !l.read.IsZero() && now.Sub(l.read) < deployments.ModeKnownWithin
}

// put keeps a mode that was read at a time, unless a later one is known.
func (l *lastMode) put(m deployments.Mode, read time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !read.Before(l.read) {
		l.mode, l.read = m, read
	}
}

// Mode returns the mode that the service is in, as it was deployments.ModeKnownWithin ago at the earliest; the zero
// Mode if it is in none. An object that this service did not write, or that is damaged, says nothing: whoever can put
// one there can stop the service in other ways, and SetMode replaces it. All who ask at once wait for one read.
func (s *Store) Mode(ctx context.Context) (deployments.Mode, error) {
	now := s.sealed.Now()
	if m, known := s.mode.get(now); known {
		return onlyOn(m, now), nil
	}
	_, err := s.mode.reading.Do(ctx, "", "reading the mode", func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.readMode(ctx)
	})
	switch {
	case ctx.Err() != nil:
		return deployments.Mode{}, bucket.Failed(ctx.Err(), "read "+modeKey)
	case err != nil:
		return deployments.Mode{}, err
	}
	m, _ := s.mode.get(now)
	return onlyOn(m, now), nil
}

// readMode reads the mode, unless it was read while this one waited.
func (s *Store) readMode(ctx context.Context) error {
	now := s.sealed.Now()
	if _, known := s.mode.get(now); known {
		return nil
	}
	var m deployments.Mode
	_, err := s.sealed.GetJSON(ctx, modeKey, &m)
	if err != nil && !errors.Is(err, bucket.ErrAbsent) && bucket.Unreadable(err) == nil {
		return err
	} else if err != nil {
		m = deployments.Mode{}
	}
	s.mode.put(m, now)
	return nil
}

func onlyOn(m deployments.Mode, now time.Time) deployments.Mode {
	if !m.On(now) {
		return deployments.Mode{}
	}
	return m
}

// SetMode puts the service into a mode from now on, in place of any that it is in; the zero Mode ends that.
func (s *Store) SetMode(ctx context.Context, m deployments.Mode) error {
	now := s.sealed.Now().UTC()
	if err := m.Validate(now); err != nil {
		return err
	}
	if m.Kind == "" {
		if err := s.sealed.Objects.Delete(ctx, modeKey); err != nil {
			return bucket.Failed(err, "end the mode of the service")
		}
		s.mode.put(deployments.Mode{}, s.sealed.Now())
		return nil
	}
	m.Since, m.Until = now, m.Until.UTC()
	if err := s.sealed.PutJSON(ctx, modeKey, m, bucket.Condition{}); err != nil {
		return err
	}
	s.mode.put(m, s.sealed.Now())
	return nil
}
