package snapshot_test

import (
	"testing"

	"github.com/deployctl/deployctl/engine/snapshot"
)

func TestAReferenceIsReadAsItWasMade(t *testing.T) {
	for text, made := range map[snapshot.Ref]struct {
		key  snapshot.Key
		part snapshot.Part
	}{
		"base:17/in":     {snapshot.BaseKey(17), snapshot.PartInputs},
		"base:0":         {snapshot.BaseKey(0), ""},
		"base:p3/out":    {snapshot.PendingKey(3), snapshot.PartOutputs},
		"op:42/trigger":  {snapshot.OpKey(42), snapshot.PartTrigger},
		"op:1/something": {snapshot.OpKey(1), "something"},
	} {
		key, part, ok := text.State()
		if !ok || key != made.key || part != made.part || made.key.Ref(made.part) != text {
			t.Errorf("%s is read as %s of %s (%v), and made as %s", text, part, key, ok, made.key.Ref(made.part))
		}
		if _, blob := text.Blob(); blob {
			t.Errorf("%s is taken for a blob", text)
		}
	}
	if hash, ok := snapshot.BlobRef("abc").Blob(); !ok || hash != "abc" {
		t.Errorf("the hash of a blob is read as %q", hash)
	}
}

func TestWhatIsNoReferenceToAStateIsNotTakenForOne(t *testing.T) {
	for _, text := range []snapshot.Ref{"", "base:", "base:x/in", "base:-1/in", "base:p/in", "op:/in", "op:b1/in", "17/in",
		"blob:17", "base:pp1/in", "base:o1/in"} {
		if key, part, ok := text.State(); ok {
			t.Errorf("%q is taken for %s of %s", text, part, key)
		}
	}
}

func TestAKeyHasOneOrigin(t *testing.T) {
	for key, want := range map[snapshot.Key][3]bool{
		snapshot.BaseKey(1): {true, false, false}, snapshot.PendingKey(1): {false, true, false},
		snapshot.OpKey(1): {false, false, true}, "": {}, "b": {}, "o-1": {}, "bp1": {}, "x1": {},
	} {
		_, base := key.Base()
		_, pending := key.Pending()
		_, op := key.Op()
		if got := [3]bool{base, pending, op}; got != want {
			t.Errorf("%q: base, pending, op are %v", key, got)
		}
	}
}
