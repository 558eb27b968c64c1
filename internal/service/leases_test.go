package service

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/pulumi/pulumi/sdk/v3/go/common/apitype"
)

// holder makes a token with a role, and returns who holds it.
func holder(t *testing.T, s *Service, name string, role deployments.Role, organization string) deployments.Holder {
	t.Helper()
	_, err := s.CreateToken(t.Context(), deployments.Token{Name: name,
		Grant: &deployments.Grant{Role: role, Organization: organization}})
	must(t, err)
	list, err := s.ListTokens(t.Context())
	must(t, err)
	for _, made := range list {
		if made.Name == name {
			return deployments.Holder{Token: name, Made: made.Created}
		}
	}
	t.Fatal("the token is not listed")
	return deployments.Holder{}
}

// preview starts a preview that its client executes.
func preview(t *testing.T, s *Service, by deployments.Holder) deployments.Leased {
	t.Helper()
	id, err := s.CreateUpdate(t.Context(), deployments.UpdateRequest{Stack: dev, Kind: engine.KindUp, DryRun: true,
		Authority: &deployments.Authority{Holders: []deployments.Holder{by}}})
	must(t, err)
	l, err := s.StartUpdate(t.Context(), deployments.StartRequest{Stack: dev, ID: id, By: by})
	must(t, err)
	return l
}

func forbidden(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil || deployments.CodeOf(err) != deployments.CodeForbidden {
		t.Errorf("%s is answered %v", what, err)
	}
}

func TestALeaseIsRenewedForWhomItsStackIsOpenStill(t *testing.T) {
	s, f := newFake(t)
	deployer := holder(t, s, "deployer", deployments.RoleDeployer, dev.Organization)
	viewer := holder(t, s, "viewer", deployments.RoleViewer, dev.Organization)
	elsewhere := holder(t, s, "elsewhere", deployments.RoleDeployer, "other")
	f.begin(version(1))
	update := preview(t, s, deployer)
	update.Update = version(1)
	for name, l := range map[string]deployments.Leased{"preview": preview(t, s, deployer), "update": update} {
		renew := func(by deployments.Holder) error {
			l := l
			l.Caller = by
			_, err := s.RenewLease(t.Context(), l, time.Minute)
			return err
		}
		must(t, renew(deployer))
		must(t, renew(deployments.Holder{Token: deployments.LocalToken}))
		forbidden(t, "the "+name+" of a viewer", renew(viewer))
		forbidden(t, "the "+name+" of another organization", renew(elsewhere))
		forbidden(t, "the "+name+" of an earlier token", renew(deployments.Holder{Token: "deployer", Made: time.Unix(1, 0)}))
	}
	lasting := preview(t, s, deployer)
	must(t, s.RemoveToken(t.Context(), "deployer"))
	_, err := s.RenewLease(t.Context(), lasting, time.Minute)
	forbidden(t, "the preview of a token that was removed", err)
	_, err = s.RenewLease(t.Context(), update, time.Minute)
	forbidden(t, "the update of a token that was removed", err)
}

func TestALeaseEndsADayAfterItsCreationHoweverOftenItIsRenewed(t *testing.T) {
	s, f := newFake(t)
	f.begin(version(1))
	local := deployments.Holder{Token: deployments.LocalToken}
	l := preview(t, s, local)
	if life := time.Until(l.Last); life > deployments.LeaseLife || life < deployments.LeaseLife-time.Hour {
		t.Errorf("it lasts for %s", life)
	}
	l.Last = time.Now().Add(time.Minute)
	renewed, err := s.RenewLease(t.Context(), l, time.Hour)
	must(t, err)
	if renewed.Expires.After(l.Last.Add(time.Second)) || renewed.Last != l.Last {
		t.Errorf("it is renewed until %s, after its end at %s", renewed.Expires, l.Last)
	}
	l.Last = time.Now()
	_, err = s.RenewLease(t.Context(), l, time.Minute)
	forbidden(t, "a preview of yesterday", err)
	l.Update = version(1)
	_, err = s.RenewLease(t.Context(), l, time.Minute)
	forbidden(t, "an update of yesterday", err)
}

func TestNothingIsWrittenUnderTheLeaseOfAnUpdateThatHasEnded(t *testing.T) {
	s, _ := newFake(t)
	l := preview(t, s, deployments.Holder{Token: deployments.LocalToken})
	events := []apitype.EngineEvent{{Sequence: 1, StdoutEvent: &apitype.StdoutEngineEvent{}}}
	must(t, s.WriteEvents(t.Context(), l, asJSON(t, events)))
	again, err := s.StartUpdate(t.Context(), deployments.StartRequest{Stack: dev, ID: l.ID, By: l.Caller})
	if must(t, err); again.Update != l.Update || again.Last != l.Last {
		t.Errorf("a repeated start is answered %+v, not %+v", again, l)
	}
	_, err = s.CompleteUpdate(t.Context(), l, engine.StatusSucceeded)
	must(t, err)
	forbidden(t, "a late event", s.WriteEvents(t.Context(), l, asJSON(t, events)))
	_, err = s.RenewLease(t.Context(), l, time.Minute)
	forbidden(t, "a renewal", err)
	_, err = s.StartUpdate(t.Context(), deployments.StartRequest{Stack: dev, ID: l.ID, By: l.Caller})
	forbidden(t, "another start", err)
	if info, err := s.Updates.Info(t.Context(), l.Update); err != nil || info.Ended.IsZero() {
		t.Errorf("it is described as %+v, %v", info, err)
	}
}

func TestALeaseIsForWhoeverHasCreatedItsUpdate(t *testing.T) {
	s, f := newFake(t)
	f.open[deployments.StackWorkflowID(dev)] = true
	ann := holder(t, s, "ann", deployments.RoleDeployer, dev.Organization)
	for _, dryRun := range []bool{true, false} {
		id, err := s.CreateUpdate(t.Context(), deployments.UpdateRequest{Stack: dev, Kind: engine.KindUp, DryRun: dryRun,
			Authority: &deployments.Authority{Holders: []deployments.Holder{ann}}})
		must(t, err)
		for name, by := range map[string]deployments.Holder{
			"another": holder(t, s, "bob"+id, deployments.RoleAdmin, dev.Organization), "nobody": {},
			"a later token of the name": {Token: ann.Token, Made: ann.Made.Add(time.Hour)},
			"a member of the name":      {Token: ann.Token, Member: ann.Token, Made: ann.Made},
		} {
			_, err := s.StartUpdate(t.Context(), deployments.StartRequest{Stack: dev, ID: id, By: by})
			if !notFound(err) {
				t.Errorf("%s starts it: %v", name, err)
			}
		}
	}
}

func TestALeaseIsForItsStackAndNotForTheNextOneOfTheName(t *testing.T) {
	s, _ := newFake(t)
	l := preview(t, s, deployments.Holder{Token: deployments.LocalToken})
	must(t, s.store.Store.RemoveStack(t.Context(), dev, false))
	events := asJSON(t, []apitype.EngineEvent{{Sequence: 1, StdoutEvent: &apitype.StdoutEngineEvent{}}})
	forbidden(t, "an event when there is no stack", s.WriteEvents(t.Context(), l, events))
	must(t, s.store.Store.CreateStack(t.Context(), dev, nil))
	forbidden(t, "an event for another stack", s.WriteEvents(t.Context(), l, events))
	_, err := s.RenewLease(t.Context(), l, time.Minute)
	forbidden(t, "a renewal for another stack", err)
}
