package statestore_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/creates"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// heldAbsences is objects whose notes of absence are written only once the gate is open.
type heldAbsences struct {
	bucket.Memory
	gate    chan struct{}
	written atomic.Int32
}

func (h *heldAbsences) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	if creates.OfSeveral(key) {
		h.written.Add(1)
		<-h.gate
	}
	return h.Memory.Put(ctx, key, data, c)
}

func TestAbsencesThatAreNotedTogetherAreWrittenTogether(t *testing.T) {
	objects := &heldAbsences{}
	s, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	must(t, err)
	must(t, s.CreateStack(t.Context(), dev, nil))
	synctest.Test(t, func(t *testing.T) {
		objects.gate = make(chan struct{})
		saw := func(seed []byte, sought string, since int) bool {
			seen, err := s.Creates.SawAbsence(t.Context(), dev, seed, sought, since)
			must(t, err)
			return seen
		}
		var noting sync.WaitGroup
		for n := range 100 {
			noting.Go(func() {
				seed := []byte{byte(n), 1}
				if err := s.Creates.NoteAbsence(t.Context(), dev, seed, "x", 3); err != nil || !saw(seed, "x", 3) {
					t.Errorf("create %d goes on without its note: %v", n, err)
				}
			})
			if n == 0 {
				synctest.Wait() // its note is being written
			}
		}
		synctest.Wait()
		if saw([]byte{7, 1}, "x", 0) {
			t.Error("a note is there before it is written")
		}
		close(objects.gate)
		noting.Wait()
		if n := objects.written.Load(); n != 2 {
			t.Errorf("%d objects were written, not the first note and then all others", n)
		}
		for _, c := range []struct {
			what   string
			seed   []byte
			sought string
			since  int
			want   bool
		}{
			{"the same search", []byte{7, 1}, "x", 0, true},
			{"since that update", []byte{7, 1}, "x", 3, true},
			{"since a later update", []byte{7, 1}, "x", 4, false},
			{"another search", []byte{7, 1}, "y", 0, false},
			{"a create that has noted none", []byte{7, 2}, "x", 0, false},
		} {
			if saw(c.seed, c.sought, c.since) != c.want {
				t.Errorf("%s: seen is not %t", c.what, c.want)
			}
		}
		must(t, s.Creates.NoteAbsence(t.Context(), dev, []byte{7, 1}, "y", 12))
		if !saw([]byte{7, 1}, "y", 4) || !saw([]byte{7, 1}, "x", 0) {
			t.Error("a later note does not count, or hides an earlier one")
		}
	})
}

// TestFewNotesOfAbsenceAreReadForACreateThatWasLost has a worker look for what another one has noted in a large update.
func TestFewNotesOfAbsenceAreReadForACreateThatWasLost(t *testing.T) {
	const noted = 300
	objects := &countedReads{Objects: &bucket.Memory{}}
	reads := func() (n int) {
		for object, times := range objects.of {
			if strings.HasPrefix(object, "0000000003-") { // of the update
				n += times
			}
		}
		return n
	}
	lost, next := opened(t, objects, statestore.Options{}), opened(t, objects, statestore.Options{})
	must(t, lost.CreateStack(t.Context(), dev, nil))
	for n := range noted {
		must(t, lost.Creates.NoteAbsence(t.Context(), dev, []byte{byte(n), byte(n >> 8)}, "x", 3))
	}
	saw := func(n int) bool {
		seen, err := next.Creates.SawAbsence(t.Context(), dev, []byte{byte(n), byte(n >> 8)}, "x", 3)
		must(t, err)
		return seen
	}
	if !saw(noted-1) || reads() != 1 {
		t.Errorf("the latest note is found by %d reads, not 1", reads())
	}
	var settling sync.WaitGroup
	for range 20 {
		settling.Go(func() {
			if saw(noted) {
				t.Error("a create that has noted nothing is seen")
			}
		})
	}
	settling.Wait()
	if n := reads(); n != noted {
		t.Errorf("%d reads of %d notes for 20 creates that have noted nothing", n, noted)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	late := opened(t, objects, statestore.Options{})
	if _, err := late.Creates.SawAbsence(ended, dev, []byte("x"), "x", 3); err == nil || reads() > noted+1 {
		t.Errorf("after its end it reads %d notes: %v", reads()-noted, err)
	}
}
