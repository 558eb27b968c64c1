package statestore

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAWriterThatWasTooLatePausesBeforeItTriesAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := NewRetry(&Memory{}, 0)
		tag, err := r.Put(t.Context(), "key", []byte("one"), Condition{Absent: true})
		if err == nil {
			_, err = r.Put(t.Context(), "key", []byte("two"), Condition{Tag: tag})
		}
		if err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		if _, err := r.Put(t.Context(), "key", []byte("three"), Condition{Tag: tag}); !errors.Is(err, ErrChanged) ||
			time.Since(before) < firstPause/2 {
			t.Errorf("it fails after %s: %v", time.Since(before), err)
		}
		before = time.Now()
		if _, err := r.Put(t.Context(), "key", []byte("four"), Condition{Absent: true}); !errors.Is(err, ErrChanged) ||
			time.Since(before) > 0 {
			t.Errorf("what exists is told after %s: %v", time.Since(before), err)
		}
	})
}
