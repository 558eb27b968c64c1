package bucket

import (
	"testing"

	"github.com/deployctl/deployctl/deployments"
)

func TestAKeyOfASegmentThatIsNotSafeIsRefused(t *testing.T) {
	for _, segment := range []string{"", ".", "..", "a/b", "/", "a\\b", "a\x00b", "a b", "ä", "a\n", ".hidden",
		"%2e%2e", "x\xff"} {
		key := Key("stacks", segment, "head.json")
		if err := CheckKey(key); deployments.CodeOf(err) != deployments.CodeInvalid || err == nil {
			t.Errorf("%q makes the key %q: %v", segment, key, err)
		}
	}
	for _, key := range []string{Key("stacks", "o", "p-1", "s.x_y", ""), Key("tokens", "ann"),
		Key("blobs", "A", "files", "2026-11", "file-00")} {
		if err := CheckKey(key); err != nil {
			t.Error(err)
		}
	}
}

func TestAStoreRefusesKeysThatAServerCouldTakeForPaths(t *testing.T) {
	s := Guarded(&Memory{})
	for _, key := range []string{"a/../b", "../b", "a//b", "/a", "a/./b", "a\x00", `a\..\b`, "\xff"} {
		if _, err := s.Put(t.Context(), key, nil, Condition{}); deployments.CodeOf(
			err) != deployments.CodeInvalid {
			t.Errorf("put %q: %v", key, err)
		}
		if _, err := s.Get(t.Context(), key); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("get %q: %v", key, err)
		}
		if _, err := s.Tag(t.Context(), key); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("tag %q: %v", key, err)
		}
		if err := s.Delete(t.Context(), key); deployments.CodeOf(err) != deployments.CodeInvalid {
			t.Errorf("delete %q: %v", key, err)
		}
		if _, err := s.List(t.Context(), Query{Prefix: key}); deployments.CodeOf(
			err) != deployments.CodeInvalid {
			t.Errorf("list %q: %v", key, err)
		}
	}
}
