package provider_test

import (
	"context"
	"testing"

	"github.com/deployctl/deployctl/provider"
	pulumirpc "github.com/pulumi/pulumi/sdk/v3/proto/go"
)

// token is a resource that is called like its owner.
type token struct{}

func (token) Reconcile(_ context.Context, r provider.Request[struct{}, struct{}]) (string, struct{}, error) {
	return r.Owner(), struct{}{}, nil
}

func (token) Delete(context.Context, provider.Existing[struct{}, struct{}]) error { return nil }

func TestWhoOwnsAThingIsKnownByTheURNAndTheStackThatTheEnvironmentNames(t *testing.T) {
	const urn = "urn:pulumi:dev::proj::toy:index:Token::t"
	owner := func(stack string) string {
		t.Helper()
		t.Setenv(provider.StackVariable, stack)
		pkg := provider.Package{Name: "toy", Modules: []provider.Module{{
			Resources: []provider.Resource{provider.NewResource("toy:index:Token", token{})}}}}
		resp, err := provider.Server(pkg).Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetId()
	}
	none, one, two := owner(""), owner("one"), owner("two")
	if want := (provider.Identity{URN: urn}).Owner(); none != want {
		t.Errorf("without a stack it is %s, not %s", none, want)
	}
	if one == none || two == none || one == two || owner("one") != one {
		t.Errorf("it is %s without a stack, %s and %s of two", none, one, two)
	}
}
