package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unsafe"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/pulumi/pulumi/sdk/v3/go/common/resource/urn"
)

func done(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// large is a grant with the longest globs that there can be.
func large(organization string) *deployments.Grant {
	g := &deployments.Grant{Role: deployments.RoleViewer, Organization: organization}
	for range deployments.MaxStackGlobs {
		g.Stacks = append(g.Stacks, strings.Repeat("p", deployments.MaxNameLength)+"/"+
			strings.Repeat("s", deployments.MaxNameLength))
	}
	return g
}

// busyMemory is the context of a call for which there is no memory: what needs none of it succeeds.
func busyMemory(t *testing.T) context.Context {
	t.Helper()
	pool := mempool.New(mempool.Step)
	other := pool.Claim("other", nil)
	done(t, other.Take(t.Context(), mempool.Step, time.Second))
	claim := pool.Claim("acme", nil)
	t.Cleanup(claim.Release)
	return mempool.With(t.Context(), claim, time.Millisecond)
}

func TestAListTakesTheMemoryOfWhatIsInItAndNothingForOthers(t *testing.T) {
	// As on a real bucket: a write that finds its own content there counts as one whose answer was lost.
	s, err := New(bucket.NewRetry(&bucket.Memory{}, time.Minute), Options{Master: make([]byte, 32)})
	done(t, err)
	ctx := t.Context()
	for n := range 40 {
		_, err := s.Access.CreateToken(ctx, deployments.Token{Name: fmt.Sprint("evil-", n), Grant: large("evil")})
		done(t, err, s.Access.GrantMember(ctx, fmt.Sprint("m", n), *large("evil")),
			s.Access.GrantTeam(ctx, fmt.Sprint("t", n), *large("evil")),
			s.Access.PutTrust(ctx, deployments.Trust{Organization: "evil", Name: fmt.Sprint("t", n),
				Issuer:     "https://issuer.example",
				Conditions: []deployments.Condition{{Claim: "sub", Pattern: "a"}}, Grant: *large("evil")}),
			changeProfile(ctx, s, fmt.Sprint("p", n)),
			s.CreateStack(ctx, deployments.StackName{Organization: "evil", Project: "p", Stack: fmt.Sprint("s", n)},
				map[string]string{"a": strings.Repeat("v", 1000)}))
		for tag := range 9 {
			done(t, s.ChangeTags(ctx, deployments.StackName{Organization: "evil", Project: "p", Stack: fmt.Sprint("s", n)},
				map[string]string{fmt.Sprint(tag): strings.Repeat("v", 1000)}, nil))
		}
	}
	busy := busyMemory(t)
	for what, list := range map[string]func(context.Context, string) error{
		"tokens":  func(ctx context.Context, of string) error { _, err := s.Access.TokensOf(ctx, of); return err },
		"members": func(ctx context.Context, of string) error { _, err := s.Access.MembersOf(ctx, of); return err },
		"teams":   func(ctx context.Context, of string) error { _, err := s.Access.TeamsOf(ctx, of); return err },
		"trusts":  func(ctx context.Context, of string) error { _, err := s.Access.TrustsOf(ctx, of); return err },
		"profiles": func(ctx context.Context, of string) error {
			_, err := s.Access.Profiles(ctx, of)
			return err
		},
		"stacks": func(ctx context.Context, of string) error { _, err := s.ListStacks(ctx, of, ""); return err },
	} {
		if err := list(busy, "acme"); err != nil {
			t.Errorf("the %s of acme, which has none: %v", what, err)
		}
		if err := list(busy, "evil"); !errors.Is(err, mempool.ErrBusy) {
			t.Errorf("the %s of evil without memory: %v", what, err)
		}
		if err := list(ctx, "evil"); err != nil {
			t.Errorf("the %s of evil: %v", what, err)
		}
	}
	if is, err := s.Access.HasAdmin(busy); is || err != nil {
		t.Errorf("whether there is an admin of all: %v, %v", is, err)
	}
}

func TestWhatManyResourcesNameIsInMemoryOnce(t *testing.T) {
	header := func() engine.State {
		var r storedResource
		done(t, json.Unmarshal([]byte(`{"urn":"urn:pulumi:dev::shop::t:m:T::b","type":"t:m:T",
			"dependencies":["urn:pulumi:dev::shop::t:m:T::b"],"parent":"urn:pulumi:dev::shop::t:m:T::b",
			"propertyDependencies":{"p":["urn:pulumi:dev::shop::t:m:T::b"]}}`), &r))
		return r.header()
	}
	first := header()
	of := func(u urn.URN) *byte { return unsafe.StringData(string(u)) }
	for _, h := range []engine.State{first, header()} {
		for _, named := range []urn.URN{h.URN, h.Parent, h.Dependencies[0], h.PropertyDependencies[0].URNs[0]} {
			if of(named) != of(first.URN) {
				t.Errorf("%s is in memory twice", named)
			}
		}
	}
}

// changeProfile makes a profile of evil that is large.
func changeProfile(ctx context.Context, s *Store, name string) error {
	_, err := s.Access.ChangeProfile(ctx, deployments.ProfileChange{Organization: "evil", Name: name,
		Set: []deployments.ProfileVariable{{Name: "A", Value: strings.Repeat("v", 9000)}}})
	return err
}
