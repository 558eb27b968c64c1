package service

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

func TestTheOrganizationsOfACallerAreFoundWithoutReadingTheirStacks(t *testing.T) {
	objects := &counting{}
	store, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 20 {
		name := deployments.StackName{Organization: []string{"acme", "initech"}[i%2], Project: "shop",
			Stack: fmt.Sprint("s", i)}
		if err := store.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
	}
	objects.requests.Store(0)
	everywhere := deployments.Caller{Authority: deployments.Authority{Grants: [][]deployments.Grant{
		{{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}}}}}
	a, err := New(nil, store, Readers{}).WhoAmI(t.Context(), everywhere)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"acme", "initech", deployments.DefaultOrganization}; !slices.Equal(a.Organizations, want) {
		t.Errorf("they are %q, want %q", a.Organizations, want)
	}
	if n := objects.requests.Load(); n != 1 {
		t.Errorf("it took %d requests, not one list of folders", n)
	}
}

func TestManyUpdatesThatWaitForTheirStacksLookLessOftenWithinABound(t *testing.T) {
	s := &Service{}
	for waiting, want := range map[int64]time.Duration{1: leasePollLast, 60: 4 * leasePollLast, 1 << 20: leasePollMost} {
		s.starting.Store(waiting)
		if got := s.longestPause(); got != want {
			t.Errorf("when %d wait, it is %s, not %s", waiting, got, want)
		}
	}
}
