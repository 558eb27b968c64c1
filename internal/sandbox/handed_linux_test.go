package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// TestWhatIsHandedToABoxIsReadThereAndByNoOtherOne hands a file to a box in each mode, and has another box of the same
// organization look for it.
func TestWhatIsHandedToABoxIsReadThereAndByNoOtherOne(t *testing.T) {
	for name, o := range map[string]Options{
		"off": {Mode: Off}, "namespace": {Mode: Namespace}, "namespace of one user": {Mode: Namespace, OneUser: true},
		"run-as": {Mode: RunAs, RunAs: userIDs(10)},
	} {
		t.Run(name, func(t *testing.T) {
			if o.Mode == RunAs {
				o.Record = filepath.Join(place(t), "uids.json")
			}
			rooms := filepath.Join(place(t), "rooms")
			p := policy(t, o)
			mine, other := box(t, p, "mine", rooms), box(t, p, "mine", rooms)
			h, err := mine.Hand()
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range []string{"first", "second", "after it was taken for one that was left"} {
				if text[0] == 'a' && o.Mode != Namespace { // where boxes see it by its mount
					if err := os.RemoveAll(h.Path); err != nil {
						t.Fatal(err)
					}
				}
				if err := h.Write("token", []byte(text)); err != nil {
					t.Fatal(err)
				}
				if got, err := inBox(t, mine, "cat "+h.Path+"/token"); err != nil || got != text {
					t.Errorf("it reads %q, %v", got, err)
				}
			}
			if o.Mode != Off {
				refusals(t, mine, "echo forged > "+h.Path+"/token", "rm "+h.Path+"/token", "touch "+h.Path+"/new",
					"mv "+h.Path+" "+h.Path+"-away")
				refusals(t, other, "cat "+filepath.Dir(h.Path)+"/*/token", "find "+rooms+" -name token | grep token")
			}
			if o.Mode == Namespace {
				refusals(t, other, "cat "+h.Path+"/token")
			}
			if err := h.Close(); err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(h.Path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("it is there after its end: %v", err)
			}
		})
	}
}

func TestWhatAKilledWorkerHasHandedIsRemoved(t *testing.T) {
	rooms := place(t)
	p := policy(t, Options{Mode: Off})
	left, err := box(t, p, "mine", rooms).Hand()
	if err != nil {
		t.Fatal(err)
	}
	lives, err := box(t, p, "mine", rooms).Hand()
	if err != nil {
		t.Fatal(err)
	}
	long := time.Now().Add(-2 * leftAfter)
	if err := os.Chtimes(left.Path, long, long); err != nil {
		t.Fatal(err)
	}
	if _, err := box(t, p, "mine", rooms).Hand(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(left.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a worker has left is there: %v", err)
	}
	if _, err := os.Stat(lives.Path); err != nil {
		t.Errorf("what another session has is gone: %v", err)
	}
}
