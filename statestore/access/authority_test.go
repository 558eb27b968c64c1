package access

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// watched calls during after each read, before the reader gets it.
type watched struct {
	*bucket.Memory
	during func(key string) error
}

func (w *watched) Get(ctx context.Context, key string) (bucket.Object, error) {
	o, err := w.Memory.Get(ctx, key)
	if w.during != nil {
		err = errors.Join(err, w.during(key))
	}
	return o, err
}

func TestRequestedWorkIsAllowedByWhatTheRequesterMayDoNow(t *testing.T) {
	acme := deployments.StackName{Organization: "acme", Project: "shop", Stack: "prod"}
	deployer := deployments.Grant{Role: deployments.RoleDeployer, Organization: "acme"}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name   string
		since  func(t *testing.T, s *Store, now *time.Time)
		may    deployments.Role // the most on acme
		reason string           // why nothing begins
	}{
		{"nothing has changed", func(*testing.T, *Store, *time.Time) {}, deployments.RoleDeployer, ""},
		{"the token was removed", func(t *testing.T, s *Store, _ *time.Time) { must(s.RemoveToken(t.Context(), "ci")) },
			"", "the token was removed"},
		{"another token has the name", func(t *testing.T, s *Store, now *time.Time) {
			must(s.RemoveToken(t.Context(), "ci"))
			*now = now.Add(time.Second)
			_, err := s.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
			must(err)
		}, "", "the token was removed"},
		{"the token has expired", func(_ *testing.T, _ *Store, now *time.Time) { *now = now.Add(time.Hour) }, "",
			"the token is good until 2026-01-02T04:04:05Z"},
		{"the member was removed", func(t *testing.T, s *Store, _ *time.Time) {
			must(s.RemoveMember(t.Context(), "ann", "acme"))
		}, "", "the member was removed"},
		{"another member has the name", func(t *testing.T, s *Store, now *time.Time) {
			must(s.RemoveMember(t.Context(), "ann", "acme"))
			*now = now.Add(time.Second)
			must(s.GrantMember(t.Context(), "ann", deployer))
		}, "", "the member was removed"},
		{"the member has a lesser role", func(t *testing.T, s *Store, _ *time.Time) {
			must(s.GrantMember(t.Context(), "ann", deployments.Grant{Role: deployments.RoleViewer,
				Organization: "acme"}))
		}, deployments.RoleViewer, "it needs the role deployer on acme/shop/prod"},
		{"the member has a greater role, which was not asked with", func(t *testing.T, s *Store, _ *time.Time) {
			must(s.GrantMember(t.Context(), "ann", deployments.Grant{Role: deployments.RoleAdmin,
				Organization: "acme"}))
		}, deployments.RoleDeployer, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, now := clocked(t)
			must(s.GrantMember(t.Context(), "ann", deployer))
			text, err := s.CreateToken(t.Context(), deployments.Token{Name: "ci", Member: "ann", Organization: "acme",
				Expires: now.Add(time.Hour)})
			must(err)
			caller, err := s.Authenticate(t.Context(), text)
			must(err)
			asked := caller.Delegated()
			c.since(t, s, now)
			standing, err := s.CurrentAuthority(t.Context(), *asked)
			if (err != nil) != (c.may == "") || err != nil && !errors.Is(err, ErrNotAllowed) {
				t.Errorf("it stands: %v", err)
			}
			for _, role := range []deployments.Role{deployments.RoleViewer, deployments.RoleDeployer,
				deployments.RoleAdmin} {
				if standing.May(role, acme) != c.may.Includes(role) {
					t.Errorf("it stands for a %s: %v", role, standing.May(role, acme))
				}
			}
			err = s.Permit(t.Context(), *asked, acme, deployments.AuditEntry{Method: "Test"})
			if errors.Is(err, ErrNotAllowed) != (c.reason != "") || err != nil &&
				!strings.HasSuffix(err.Error(), c.reason) {
				t.Errorf("to begin: %v", err)
			}
			var audited []deployments.AuditEntry
			must(s.Audit(t.Context(), deployments.AuditQuery{Organization: "acme", Stack: "shop/prod", User: "ann"},
				func(e deployments.AuditEntry) error {
					audited = append(audited, e)
					return nil
				}))
			if refused := len(audited) == 1 && audited[0].Code == deployments.CodeForbidden; refused != (c.reason != "") {
				t.Errorf("the audit log has %+v", audited)
			}
		})
	}
}

func TestARejectionByTheObjectStoreRevokesNoRights(t *testing.T) {
	objects := &watched{Memory: &bucket.Memory{}}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	text, err := s.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &adminOfAll})
	if err != nil {
		t.Fatal(err)
	}
	caller, err := s.Authenticate(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	objects.during = func(string) error {
		return deployments.Errorf(deployments.CodeForbidden, "the credentials are refused")
	}
	err = s.Permit(t.Context(), *caller.Delegated(), deployments.StackName{Organization: "a", Project: "b", Stack: "c"},
		deployments.AuditEntry{})
	if err == nil || errors.Is(err, ErrNotAllowed) {
		t.Errorf("got %v", err)
	}
}

func TestATokenThatIsRemovedWhileItIsReadIsNotRemembered(t *testing.T) {
	objects := &watched{Memory: &bucket.Memory{}}
	s, err := over(objects, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.GrantMember(t.Context(), "ann", adminOfAll); err != nil {
		t.Fatal(err)
	}
	for name, remove := range map[string]func() error{
		"ci":     func() error { return s.RemoveToken(t.Context(), "ci") },
		"laptop": func() error { return s.RemoveMember(t.Context(), "ann", "*") },
	} {
		text, err := s.CreateToken(t.Context(), deployments.Token{Name: name, Member: "ann", Organization: "*"})
		if err != nil {
			t.Fatal(err)
		}
		objects.during = func(key string) error {
			if !strings.HasPrefix(key, MemberFolder) {
				return nil
			}
			objects.during = nil
			return remove()
		}
		if _, err := s.Authenticate(t.Context(), text); err != nil {
			t.Fatalf("a call that began before: %v", err)
		}
		if _, err := s.Authenticate(t.Context(), text); deployments.CodeOf(err) != deployments.CodeUnauthorized {
			t.Errorf("%s: a call that began after the removal: %v", name, err)
		}
		if err := s.GrantMember(t.Context(), "ann", adminOfAll); err != nil {
			t.Fatal(err)
		}
	}
}
