package memory

import (
	"context"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// Mode returns the mode that was set last.
func (s *Service) Mode(context.Context) (deployments.Mode, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mode, nil
}

// SetMode sets it.
func (s *Service) SetMode(_ context.Context, m deployments.Mode) error {
	if err := m.Validate(time.Now()); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mode = m
	return nil
}
