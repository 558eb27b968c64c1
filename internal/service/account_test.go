package service

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
)

// counted counts the objects that are read.
type counted struct {
	statestore.Memory
	gets atomic.Int64
}

func (c *counted) Get(ctx context.Context, key string) (statestore.Object, error) {
	c.gets.Add(1)
	return c.Memory.Get(ctx, key)
}

func TestTheOrganizationsOfACallerAreFoundWithoutReadingTheirStacks(t *testing.T) {
	objects := &counted{}
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
	objects.gets.Store(0)
	everywhere := deployments.Caller{Authority: deployments.Authority{Grants: [][]deployments.Grant{
		{{Role: deployments.RoleAdmin, Organization: deployments.AnyOrganization}}}}}
	a, err := New(nil, store, Readers{}).WhoAmI(t.Context(), everywhere)
	if err != nil {
		t.Fatal(err)
	}
	if want := []string{"acme", "initech", deployments.DefaultOrganization}; !slices.Equal(a.Organizations, want) {
		t.Errorf("they are %q, want %q", a.Organizations, want)
	}
	if n := objects.gets.Load(); n != 0 {
		t.Errorf("%d objects were read", n)
	}
}
