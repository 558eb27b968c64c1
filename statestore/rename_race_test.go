package statestore_test

import (
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

// at is an object store that does something once, before a call: the nth after the first one that begins has.
func at(objects bucket.Objects, begin func(call, key string) bool, n int64, do func()) bucket.Objects {
	var begun atomic.Bool
	var calls atomic.Int64
	return storetest.NewFaulty(objects, func(call, key string) storetest.Fault {
		if begin(call, key) {
			begun.Store(true)
		}
		if begun.Load() && calls.Add(1) == n+1 {
			do()
		}
		return storetest.None
	})
}

// One renaming loses the stack to a second, which is then cut off, and gives its name free while a third takes that
// name. The first pauses at each of its calls from then on, the third at each of its own until the first has ended.
func TestARenamingThatLostTheStackLeavesTheNameToAnother(t *testing.T) {
	for firstAt, more := int64(1), true; more; firstAt++ {
		for thirdAt := int64(0); ; thirdAt++ {
			paused, ended := raced(t, firstAt, thirdAt)
			if more = paused; !paused || ended || t.Failed() {
				more = more && !t.Failed()
				break
			}
		}
	}
}

// raced reports whether the first renaming came to its pause, and whether the third ended before its own.
func raced(t *testing.T, firstAt, thirdAt int64) (paused, ended bool) {
	objects := &bucket.Memory{}
	withPending(t, newStack(t, objects))
	c := &cut{}
	second := another(t, storetest.NewFaulty(objects, c.choose))
	reserves := func(call, key string) bool { return call == "put" && key == "stacks/organization/site/live/head.json" }
	pause, resume, firstDone := make(chan struct{}), make(chan struct{}), make(chan struct{})
	first := another(t, at(at(objects, reserves, 0, func() {
		c.off(t, "put", "stacks/organization/site/spare/", func() error {
			return second.RenameStack(t.Context(), dev, spare)
		})
	}), reserves, firstAt, func() { close(pause); <-resume }))
	go func() {
		defer close(firstDone)
		if err := first.RenameStack(t.Context(), dev, live); err == nil {
			t.Errorf("the first renaming, which pauses at %d, says that it has succeeded", firstAt)
		}
	}()
	select {
	case <-pause:
		paused = true
	case <-firstDone:
		return false, true
	}

	ended = true
	third := another(t, at(objects, func(string, string) bool { return true }, thirdAt, func() {
		ended = false
		close(resume)
		<-firstDone
	}))
	_ = third.RenameStack(t.Context(), dev, live)
	if ended {
		close(resume)
		<-firstDone
	}
	s := another(t, objects)
	if _, err := s.Head(t.Context(), dev); err == nil {
		if err := s.RenameStack(t.Context(), dev, live); err != nil {
			t.Errorf("the renaming done again, after pauses at %d and %d: %v", firstAt, thirdAt, err)
			return paused, ended
		}
	}
	wantGone(t, s, dev)
	wantStock(t, s, live)
	return paused, ended
}
