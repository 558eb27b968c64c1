package organizations_test

import (
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

func TestAModeHoldsForEachProcessWithinABoundUntilItEnds(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	options := statestore.Options{Now: func() time.Time { return now }}
	objects := &bucket.Memory{}
	here, there := storetest.Opened(t, objects, options), storetest.Opened(t, objects, options)
	is := func(when string, want deployments.ModeKind) {
		t.Helper()
		for name, s := range map[string]*statestore.Store{"here": here, "there": there} {
			if m, err := s.Organizations.Mode(t.Context()); err != nil || m.Kind != want {
				t.Errorf("%s: %s the mode is %q, %v; want %q", when, name, m.Kind, err, want)
			}
		}
	}
	set := func(m deployments.Mode) {
		t.Helper()
		if err := here.Organizations.SetMode(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	is("at first", "")
	upgrade := deployments.Mode{Kind: deployments.ModeMaintenance, Reason: "Temporal is upgraded", By: "root",
		Until: now.Add(time.Hour)}
	set(upgrade)
	if m, err := here.Organizations.Mode(t.Context()); err != nil || m.Reason != upgrade.Reason || m.By != "root" ||
		!m.Since.Equal(now) {
		t.Errorf("where it was set it is %+v, %v", m, err)
	}
	now = now.Add(deployments.ModeKnownWithin)
	is("after the bound", deployments.ModeMaintenance)
	upgrade.Kind = deployments.ModeReadOnly
	set(upgrade)
	now = now.Add(deployments.ModeKnownWithin)
	is("once it was changed", deployments.ModeReadOnly)
	set(deployments.Mode{})
	now = now.Add(deployments.ModeKnownWithin)
	is("once it was ended", "")
	set(upgrade)
	now = now.Add(deployments.ModeKnownWithin)
	is("set again", deployments.ModeReadOnly)
	now = upgrade.Until.Add(-time.Second)
	is("a second before its end", deployments.ModeReadOnly)
	now = upgrade.Until
	is("at its end", "")
}

func TestAModeThatIsDamagedStopsNothingAndCanBeSetAgain(t *testing.T) {
	objects := &bucket.Memory{}
	s := storetest.Opened(t, objects, statestore.Options{})
	if _, err := objects.Put(t.Context(), "service/mode", []byte(`{"kind":"read-only"}`),
		bucket.Condition{}); err != nil {
		t.Fatal(err)
	}
	if m, err := s.Organizations.Mode(t.Context()); err != nil || m.Kind != "" {
		t.Errorf("the mode is %+v, %v", m, err)
	}
	m := deployments.Mode{Kind: deployments.ModeMaintenance, Reason: "why", Until: time.Now().Add(time.Hour)}
	if err := s.Organizations.SetMode(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if got, err := s.Organizations.Mode(t.Context()); err != nil || got.Kind != m.Kind {
		t.Errorf("the mode is %+v, %v", got, err)
	}
}
