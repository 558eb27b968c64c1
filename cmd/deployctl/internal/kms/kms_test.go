package kms_test

import (
	"bytes"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/cmd/deployctl/internal/kms"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
)

func localURL(fill byte) string {
	return "base64key://" + base64.URLEncoding.EncodeToString(bytes.Repeat([]byte{fill}, 32))
}

func TestAKeyOfAServiceOpensWhatItWrapped(t *testing.T) {
	first, err := kms.Open(t.Context(), localURL(1))
	if err != nil {
		t.Fatal(err)
	}
	wrapped, err := first.Wrap(t.Context(), []byte("keys"))
	if err != nil || bytes.Contains(wrapped, []byte("keys")) {
		t.Fatalf("%q, %v", wrapped, err)
	}
	if plain, err := first.Unwrap(t.Context(), wrapped); err != nil || string(plain) != "keys" {
		t.Errorf("%q, %v", plain, err)
	}
	second, err := kms.Open(t.Context(), localURL(2))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := second.Unwrap(t.Context(), wrapped); err == nil {
		t.Error("another key opens it")
	}
	if first.ID() == second.ID() || strings.Contains(localURL(1), strings.TrimPrefix(first.ID(), "base64key ")) {
		t.Errorf("they are called %q and %q", first.ID(), second.ID())
	}
}

func TestAServiceWithAKeyOfAnotherServiceDoesNotStart(t *testing.T) {
	objects := &bucket.Memory{}
	check := func(url string) error {
		keeper, err := kms.Open(t.Context(), url)
		if err != nil {
			t.Fatal(err)
		}
		s, err := statestore.New(objects, statestore.Options{Keepers: []seal.Keeper{keeper}})
		if err != nil {
			t.Fatal(err)
		}
		return s.Check(t.Context())
	}
	if err := check(localURL(1)); err != nil {
		t.Fatal(err)
	}
	if err := check(localURL(2)); deployments.CodeOf(err) != deployments.CodeInvalid {
		t.Errorf("got %v", err)
	}
	if err := check(localURL(1)); err != nil {
		t.Error(err)
	}
}

func TestAURLThatNamesNoKeyIsRefused(t *testing.T) {
	for _, url := range []string{"", "x", "nothing://key", "base64key://short", "://"} {
		if _, err := kms.Open(t.Context(), url); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("%q: %v", url, err)
		}
	}
}
