package memory

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/deployctl/deployctl/deployments"
)

// CreateToken makes a token.
func (s *Service) CreateToken(_ context.Context, t deployments.Token) (string, error) {
	if err := t.Validate(); err != nil {
		return "", err
	}
	return s.addToken(t)
}

func (s *Service) addToken(t deployments.Token) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.tokens {
		if other.Name == t.Name {
			return "", deployments.Errorf(deployments.CodeExists, "there is a token %s already", t.Name)
		}
	}
	text := fmt.Sprintf("token-%d-%s", len(s.tokens), t.Name)
	t.Created = begun
	s.tokens[digestOf([]byte(text))] = t
	return text, nil
}

// ListTokens lists tokens by name.
func (s *Service) ListTokens(context.Context) ([]deployments.Token, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.SortedFunc(maps.Values(s.tokens), func(a, b deployments.Token) int {
		return strings.Compare(a.Name, b.Name)
	}), nil
}

// Token describes a token.
func (s *Service) Token(ctx context.Context, name string) (deployments.Token, error) {
	list, err := s.ListTokens(ctx)
	for _, t := range list {
		if t.Name == name {
			return t, err
		}
	}
	return deployments.Token{}, deployments.Errorf(deployments.CodeNotFound, "there is no token %s", name)
}

// AnyMember describes a member.
func (s *Service) AnyMember(ctx context.Context, organization, name string) (deployments.Member, error) {
	list, err := s.ListMembers(ctx)
	for _, m := range list {
		if m.Organization == organization && m.Name == name {
			return m, err
		}
	}
	return deployments.Member{}, deployments.Errorf(deployments.CodeNotFound, "there is no member %s", name)
}

// WhoAmI describes the caller; without one, the local user.
func (s *Service) WhoAmI(_ context.Context, c deployments.Caller) (deployments.Account, error) {
	if c.Token == "" {
		c = deployments.Caller{Token: deployments.LocalToken, Authority: deployments.Everything()}
	}
	return deployments.Account{Token: c.Token, Member: c.Member, Identity: c.Identity, Grants: c.Grants,
		Organizations: []string{deployments.DefaultOrganization}}, nil
}

// RemoveToken removes a token.
func (s *Service) RemoveToken(_ context.Context, name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for hash, t := range s.tokens {
		if t.Name == name {
			delete(s.tokens, hash)
			return nil
		}
	}
	return deployments.Errorf(deployments.CodeNotFound, "there is no token %s", name)
}

// Authenticate is grpcapi's Authority.
func (s *Service) Authenticate(_ context.Context, text string) (deployments.Caller, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tokens[digestOf([]byte(text))]
	if !ok || !t.Expires.IsZero() && t.Expires.Before(time.Now()) {
		return deployments.Caller{}, deployments.Errorf(deployments.CodeUnauthorized,
			"the service does not know this token")
	}
	member := s.members[t.Organization+"/"+t.Member]
	member.Teams = s.teamsOf(t.Organization, t.Member)
	return deployments.Caller{Token: t.Name, Member: t.Member, Made: t.Created,
		Authority: deployments.AuthorityOf(t, member.All())}, nil
}

// GrantMember makes a member, or changes one.
func (s *Service) GrantMember(_ context.Context, name string, g deployments.Grant) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.members[g.Organization+"/"+name] = deployments.Member{Organization: g.Organization, Name: name, Created: begun,
		Grant: &g}
	return nil
}

// ListMembers lists members by organization and name.
func (s *Service) ListMembers(context.Context) ([]deployments.Member, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := sorted(s.members)
	for i := range list {
		list[i].Teams = s.teamsOf(list[i].Organization, list[i].Name)
	}
	return list, nil
}

// RemoveMember takes what a member may do.
func (s *Service) RemoveMember(_ context.Context, name, organization string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return drop(s.members, organization, name)
}

// Record is grpcapi's Auditor.
func (s *Service) Record(_ context.Context, e deployments.AuditEntry, _ bool) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Audited = append(s.Audited, e)
	return nil
}

// Audit sends what Record has recorded.
func (s *Service) Audit(_ context.Context, q deployments.AuditQuery, fn func(deployments.AuditEntry) error) error {
	s.mu.Lock()
	entries := slices.Clone(s.Audited)
	s.mu.Unlock()
	for _, e := range entries {
		if !q.Selects(e) {
			continue
		}
		if err := fn(e); err != nil {
			return err
		}
	}
	return nil
}
