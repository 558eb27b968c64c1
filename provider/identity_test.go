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
	owner := func(environment []string) string {
		t.Helper()
		pkg := provider.Package{Name: "toy", Environment: environment, Modules: []provider.Module{{
			Resources: []provider.Resource{provider.NewResource("toy:index:Token", token{})}}}}
		resp, err := provider.Server(pkg).Create(t.Context(), &pulumirpc.CreateRequest{Urn: urn})
		if err != nil {
			t.Fatal(err)
		}
		return resp.GetId()
	}
	none := owner(nil)
	if want := (provider.Identity{URN: urn}).Owner(); none != want {
		t.Errorf("without a stack it is %s, not %s", none, want)
	}
	t.Setenv(provider.StackVariable, "one")
	one := owner(nil) // this process is a plugin's
	if one == none || owner([]string{provider.StackVariable + "=two", provider.StackVariable + "=one"}) != one {
		t.Errorf("in a plugin process of the stack it is %s, elsewhere another", one)
	}
	if two := owner([]string{provider.StackVariable + "=two"}); two == one || two == none {
		t.Errorf("of another stack it is %s, too", two)
	}
	if owner([]string{}) != none {
		t.Error("the process's variable counts for an update that has none")
	}
}
