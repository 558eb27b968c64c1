package access

import (
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// keys sets a profile that is for the stacks of shop.
func keys(t *testing.T, s *Store) {
	t.Helper()
	stacks := []string{"shop/*"}
	p, err := s.ChangeProfile(t.Context(), deployments.ProfileChange{Organization: "acme", Name: "aws", Stacks: &stacks,
		Set: []deployments.ProfileVariable{{Name: "KEY", Value: "hush", Secret: true}, {Name: "REGION", Value: "eu"}}})
	if err != nil || p.Version != 1 || p.Variables[0].Value != "" || p.Variables[1].Value != "eu" {
		t.Fatalf("%+v, %v", p, err)
	}
}

func TestASecretOfAProfileIsForUpdatesAlone(t *testing.T) {
	s, _ := clocked(t)
	keys(t, s)
	p, err := s.Profile(t.Context(), "acme", "aws")
	if err != nil || p.Variables[0].Value != "" || !p.Variables[0].Secret {
		t.Errorf("it is shown as %+v, %v", p, err)
	}
	list, err := s.Profiles(t.Context(), "acme")
	if err != nil || len(list) != 1 || list[0].Variables[0].Value != "" {
		t.Errorf("it is listed as %+v, %v", list, err)
	}
	if _, err := s.Profiles(t.Context(), deployments.AnyOrganization); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("those of all organizations are listed: %v", err)
	}
	used, err := s.UseProfile(t.Context(), nil, shop, ProfileUse{Name: "aws"})
	if err != nil || used.Variables[0].Value != "hush" {
		t.Errorf("an update gets %+v, %v", used, err)
	}
}

func TestEachUseOfAProfileIsInTheAuditLog(t *testing.T) {
	s, _ := clocked(t)
	keys(t, s)
	by := &deployments.Authority{Holders: []deployments.Holder{{Token: "ci", Member: "ann"}}}
	other := shop
	other.Project = "web"
	foreign := shop
	foreign.Organization = "evil"
	for _, c := range []struct {
		stack  deployments.StackName
		name   string
		code   deployments.Code
		reason string
	}{
		{shop, "aws", "", ""},
		{other, "aws", deployments.CodeForbidden, "deployctl profile set aws --stacks"},
		{shop, "gcp", deployments.CodeNotFound, "the organization acme has none"},
		{foreign, "aws", deployments.CodeNotFound, "the organization evil has none"},
	} {
		p, err := s.UseProfile(t.Context(), by, c.stack, ProfileUse{Name: c.name,
			Entry: deployments.AuditEntry{Method: "Profiles/Use", Subject: "kind=up"}})
		if deployments.CodeOf(err) != c.code || err != nil && !strings.Contains(err.Error(), c.reason) ||
			(len(p.Variables) == 2) != (c.code == "") {
			t.Errorf("%s uses %s: %+v, %v", c.stack, c.name, p, err)
		}
		var last deployments.AuditEntry
		err = s.Audit(t.Context(), deployments.AuditQuery{Organization: c.stack.Organization, Stack: c.stack.Project +
			"/" + c.stack.Stack}, func(e deployments.AuditEntry) error {
			if strings.HasPrefix(e.Subject, "profile="+c.name+" ") {
				last = e
			}
			return nil
		})
		if err != nil || last.Code != c.code || last.Token != "ci" || last.Member != "ann" ||
			!strings.HasSuffix(last.Subject, " kind=up") || c.code == "" && !strings.Contains(last.Subject, "version=1") {
			t.Errorf("the audit log has %+v, %v", last, err)
		}
	}
}

func TestAProfileThatIsGoneOrDamagedIsNotUsed(t *testing.T) {
	objects := &bucket.Memory{}
	s, err := over(objects, time.Now)
	if err != nil {
		t.Fatal(err)
	}
	keys(t, s)
	if _, err := objects.Put(t.Context(), "profiles/acme/aws", []byte("x"), bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.UseProfile(t.Context(), nil, shop, ProfileUse{Name: "aws"}); deployments.CodeOf(
		err) != deployments.CodeFormat {
		t.Errorf("a damaged one is used: %v", err)
	}
	list, err := s.Profiles(t.Context(), "acme")
	if err != nil || len(list) != 1 || list[0].Damaged == "" {
		t.Errorf("it is listed as %+v, %v", list, err)
	}
	if _, err := s.ChangeProfile(t.Context(), deployments.ProfileChange{Organization: "acme", Name: "aws",
		Removed: []string{"KEY"}}); deployments.CodeOf(err) != deployments.CodeFormat {
		t.Errorf("a damaged one is changed: %v", err)
	}
	if err := s.RemoveProfile(t.Context(), "acme", "aws"); err != nil {
		t.Error(err)
	}
	for _, err := range []error{s.RemoveProfile(t.Context(), "acme", "aws"), second(s.Profile(t.Context(), "acme", "aws")),
		second(s.ChangeProfile(t.Context(), deployments.ProfileChange{Organization: "acme", Name: "aws",
			Removed: []string{"KEY"}}))} {
		if deployments.CodeOf(err) != deployments.CodeNotFound {
			t.Errorf("one that is gone: %v", err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
