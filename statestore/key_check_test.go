package statestore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/storetest"
)

func TestABucketThatTheKeysDoNotOpenIsNotAdopted(t *testing.T) {
	master, err := seal.NewMasterKeeper(storetest.Master)
	if err != nil {
		t.Fatal(err)
	}
	kms := []seal.Keeper{&storetest.Keeper{Key: []byte("kms")}}
	stack := func(t *testing.T, s *statestore.Store) {
		if err := s.CreateStack(t.Context(), dev, nil); err != nil {
			t.Fatal(err)
		}
	}
	token := func(name string) func(*testing.T, *statestore.Store) {
		return func(t *testing.T, s *statestore.Store) {
			grant := deployments.Grant{Role: deployments.RoleAdmin, Organization: "*"}
			if _, err := s.Access.CreateToken(t.Context(), deployments.Token{Name: name, Grant: &grant}); err != nil {
				t.Fatal(err)
			}
		}
	}
	rotate := func(t *testing.T, s *statestore.Store) {
		if _, err := s.Keys.Rotate(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	type done []func(*testing.T, *statestore.Store)
	for _, c := range []struct {
		name    string
		keepers []seal.Keeper
		done    done
		says    string // of the object that cannot be opened; empty: it is adopted
	}{
		{"the keys were never replaced", []seal.Keeper{master}, done{stack, token("root")}, ""},
		{"a token was sealed after they were replaced", []seal.Keeper{master}, done{stack, rotate, token("root")},
			"tokens/root"},
		{"a token was sealed before they were replaced, and another stands beside it", []seal.Keeper{master},
			done{token("root"), rotate, token("later")}, "tokens/later"},
		{"a head alone, under keys of a key management service", kms, done{stack}, "head.json"},
		{"a token alone, under keys of a key management service", kms, done{token("root")}, "tokens/root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			objects := &bucket.Memory{}
			s := opened(t, objects, statestore.Options{Keepers: c.keepers})
			for _, do := range c.done {
				do(t, s)
			}
			lose(t, objects, ringObject)
			if _, err := open(t, objects, statestore.Options{Keepers: c.keepers}); !strings.Contains(err.Error(),
				"put keys/ring.json back") {
				t.Errorf("the first thing to do is not to put the keys back: %v", err)
			}
			_, err := open(t, objects, statestore.Options{Keepers: c.keepers, Adopt: true})
			if (err == nil) != (c.says == "") {
				t.Fatalf("adopted: %v", err)
			}
			if err == nil {
				return
			}
			if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(), c.says) ||
				!strings.Contains(err.Error(), "put keys/ring.json back") {
				t.Errorf("got %v", err)
			}
			if _, err := objects.Get(t.Context(), ringObject); !errors.Is(err, bucket.ErrAbsent) {
				t.Errorf("keys were written: %v", err)
			}
		})
	}
}
