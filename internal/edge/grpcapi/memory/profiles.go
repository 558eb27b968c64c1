package memory

import (
	"context"

	"github.com/deployctl/deployctl/deployments"
)

// ChangeProfile changes a profile, or makes one.
func (s *Service) ChangeProfile(_ context.Context, c deployments.ProfileChange) (deployments.Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.profiles[c.Organization+"/"+c.Name]
	if !found && !c.Makes() {
		return p, deployments.Errorf(deployments.CodeNotFound, "there is no profile %s", c.Name)
	}
	p, err := p.With(c, begun)
	if err == nil {
		s.profiles[c.Organization+"/"+c.Name] = p
	}
	return p.Shown(), err
}

// Profile describes a profile.
func (s *Service) Profile(_ context.Context, organization, name string) (deployments.Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, found := s.profiles[organization+"/"+name]
	if !found {
		return p, deployments.Errorf(deployments.CodeNotFound, "there is no profile %s", name)
	}
	return p.Shown(), nil
}

// Profiles lists the profiles of an organization.
func (s *Service) Profiles(_ context.Context, organization string) ([]deployments.Profile, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var list []deployments.Profile
	for _, p := range sorted(s.profiles) {
		if p.Organization == organization {
			list = append(list, p.Shown())
		}
	}
	return list, nil
}

// RemoveProfile removes a profile.
func (s *Service) RemoveProfile(_ context.Context, organization, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return drop(s.profiles, organization, name)
}
