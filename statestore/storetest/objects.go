// Package storetest is the conformance suite of the state store: what every Objects must do, what the typed store must
// do over every one of them, and an Objects on which calls go wrong.
package storetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/statestore/bucket"
)

// Objects checks the contract of statestore.Objects. Open gives an empty one for each test.
func Objects(t *testing.T, open func(t *testing.T) bucket.Objects) {
	for _, c := range []struct {
		name string
		test func(t *testing.T, o bucket.Objects)
	}{
		{"what was put is got, with a tag of its own", putAndGet},
		{"an object that is not there is absent", absent},
		{"a put with Absent makes an object once", putAbsent},
		{"a put with a tag needs that content to be there", putTag},
		{"of racing puts with Absent one succeeds", raceAbsent},
		{"of racing puts with a tag one succeeds each time", raceTag},
		{"a read sees a whole write", wholeWrites},
		{"deleting twice is deleting once", deleteTwice},
		{"keys are listed in byte order, by prefix, in parts", list},
		{"more keys than one page holds are listed", listMany},
		{"folded listings give what is below once", fold},
		{"a listing says when an object was written", writtenWhen},
		{"keys with unusual characters are kept apart", oddKeys},
		{"a cancelled call ends", cancelled},
	} {
		t.Run(c.name, func(t *testing.T) { c.test(t, open(t)) })
	}
}

func put(t *testing.T, o bucket.Objects, key, text string, c bucket.Condition) string {
	t.Helper()
	tag, err := o.Put(t.Context(), key, []byte(text), c)
	if err != nil {
		t.Fatalf("put %s: %v", key, err)
	}
	return tag
}

func wantText(t *testing.T, o bucket.Objects, key, text string) bucket.Object {
	t.Helper()
	got, err := o.Get(t.Context(), key)
	if err != nil || string(got.Data) != text {
		t.Fatalf("get %s: %q, %v; want %q", key, got.Data, err, text)
	}
	return got
}

func putAndGet(t *testing.T, o bucket.Objects) {
	first := put(t, o, "a/b", "one", bucket.Condition{})
	if got := wantText(t, o, "a/b", "one"); got.Tag != first || first == "" {
		t.Errorf("the put gave tag %q and the get %q", first, got.Tag)
	}
	second := put(t, o, "a/b", "two", bucket.Condition{})
	if second == first {
		t.Errorf("two contents have the tag %q", first)
	}
	if tag, err := o.Tag(t.Context(), "a/b"); err != nil || tag != second {
		t.Errorf("the put gave tag %q, and it has %q, %v", second, tag, err)
	}
	wantText(t, o, "a/b", "two")
	put(t, o, "empty", "", bucket.Condition{})
	wantText(t, o, "empty", "")
	large := strings.Repeat("0123456789abcdef", 1<<18)
	put(t, o, "large", large, bucket.Condition{})
	wantText(t, o, "large", large)
}

func absent(t *testing.T, o bucket.Objects) {
	if _, err := o.Get(t.Context(), "nothing/here"); !errors.Is(err, bucket.ErrAbsent) {
		t.Fatalf("got %v", err)
	}
	if _, err := o.Tag(t.Context(), "nothing/here"); !errors.Is(err, bucket.ErrAbsent) {
		t.Fatalf("its tag: %v", err)
	}
	put(t, o, "dir/object", "x", bucket.Condition{})
	if _, err := o.Get(t.Context(), "dir"); !errors.Is(err, bucket.ErrAbsent) {
		t.Fatalf("the beginning of a key gave %v", err)
	}
}

func putAbsent(t *testing.T, o bucket.Objects) {
	put(t, o, "k", "one", bucket.Condition{Absent: true})
	if _, err := o.Put(t.Context(), "k", []byte("two"), bucket.Condition{Absent: true}); !errors.Is(err,
		bucket.ErrChanged) {
		t.Fatalf("the second gave %v", err)
	}
	wantText(t, o, "k", "one")
}

func putTag(t *testing.T, o bucket.Objects) {
	if _, err := o.Put(t.Context(), "k", []byte("x"),
		bucket.Condition{Tag: `"d41d8cd98f00b204e9800998ecf8427e"`}); !errors.Is(err, bucket.ErrChanged) {
		t.Fatalf("a tag of nothing gave %v", err)
	}
	first := put(t, o, "k", "one", bucket.Condition{})
	second := put(t, o, "k", "two", bucket.Condition{Tag: first})
	if _, err := o.Put(t.Context(), "k", []byte("three"), bucket.Condition{Tag: first}); !errors.Is(err,
		bucket.ErrChanged) {
		t.Fatalf("an old tag gave %v", err)
	}
	put(t, o, "k", "four", bucket.Condition{Tag: second})
	wantText(t, o, "k", "four")
}

func raceAbsent(t *testing.T, o bucket.Objects) {
	var won atomic.Int32
	var wg sync.WaitGroup
	for i := range 12 {
		wg.Go(func() {
			_, err := o.Put(t.Context(), "k", fmt.Appendf(nil, "writer %d", i), bucket.Condition{Absent: true})
			switch {
			case err == nil:
				won.Add(1)
			case !errors.Is(err, bucket.ErrChanged):
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 {
		t.Fatalf("%d writers made the object", won.Load())
	}
}

func raceTag(t *testing.T, o bucket.Objects) {
	put(t, o, "count", "0;", bucket.Condition{})
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for done := 0; done < 5; {
				old, err := o.Get(t.Context(), "count")
				if err != nil {
					t.Error(err)
					return
				}
				entry := fmt.Sprintf(" %d.%d;", i, done)
				if strings.Contains(string(old.Data), entry) { // a reply was lost, and others have written since
					done++
					continue
				}
				_, err = o.Put(t.Context(), "count", append(old.Data, entry...), bucket.Condition{Tag: old.Tag})
				if err != nil && !errors.Is(err, bucket.ErrChanged) {
					t.Error(err)
					return
				}
				if err == nil {
					done++
				}
			}
		})
	}
	wg.Wait()
	got, err := o.Get(t.Context(), "count")
	if n := bytes.Count(got.Data, []byte(";")); err != nil || n != 31 {
		t.Fatalf("%d of 31 writes are there: %s, %v", n, got.Data, err)
	}
}

func wholeWrites(t *testing.T, o bucket.Objects) {
	text := func(i int) string { return strings.Repeat(fmt.Sprintf("%04d", i), 50_000) }
	put(t, o, "k", text(0), bucket.Condition{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 1; i < 20; i++ {
			if _, err := o.Put(t.Context(), "k", []byte(text(i)), bucket.Condition{}); err != nil {
				t.Error(err)
			}
		}
	})
	for range 20 {
		got, err := o.Get(t.Context(), "k")
		if err != nil || len(got.Data) != 200_000 || !bytes.Equal(got.Data[:100_000], got.Data[100_000:]) {
			t.Fatalf("%d bytes of two writes, %v", len(got.Data), err)
		}
	}
	wg.Wait()
}

func deleteTwice(t *testing.T, o bucket.Objects) {
	put(t, o, "a/k", "x", bucket.Condition{})
	for range 2 {
		if err := o.Delete(t.Context(), "a/k"); err != nil {
			t.Fatal(err)
		}
	}
	absent(t, o)
	put(t, o, "a/k", "again", bucket.Condition{Absent: true})
}

func wantKeys(t *testing.T, o bucket.Objects, q bucket.Query, more bool, keys ...string) {
	t.Helper()
	got, err := o.List(t.Context(), q)
	if err != nil || !slices.Equal(got.Keys, keys) || got.More != more {
		t.Errorf("%+v gave %q, more %v, %v; want %q", q, got.Keys, got.More, err, keys)
	}
}

func list(t *testing.T, o bucket.Objects) {
	for _, key := range []string{"b/2", "a", "b/10", "b/1", "b0", "c/d/e"} {
		put(t, o, key, "x", bucket.Condition{})
	}
	wantKeys(t, o, bucket.Query{}, false, "a", "b/1", "b/10", "b/2", "b0", "c/d/e")
	wantKeys(t, o, bucket.Query{Prefix: "b/"}, false, "b/1", "b/10", "b/2")
	wantKeys(t, o, bucket.Query{Prefix: "b/1"}, false, "b/1", "b/10")
	wantKeys(t, o, bucket.Query{Prefix: "b/", Limit: 2}, true, "b/1", "b/10")
	wantKeys(t, o, bucket.Query{Prefix: "b/", Limit: 3}, false, "b/1", "b/10", "b/2")
	wantKeys(t, o, bucket.Query{Prefix: "b/", After: "b/10"}, false, "b/2")
	wantKeys(t, o, bucket.Query{Prefix: "z"}, false)
}

func listMany(t *testing.T, o bucket.Objects) {
	var want []string
	for i := range 1100 {
		want = append(want, fmt.Sprintf("many/%04d", i))
	}
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := w; i < len(want); i += 8 {
				if _, err := o.Put(t.Context(), want[i], nil, bucket.Condition{}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	got, err := o.List(t.Context(), bucket.Query{Prefix: "many/"})
	if err != nil || !slices.Equal(got.Keys, want) {
		t.Fatalf("%d keys of %d, %v", len(got.Keys), len(want), err)
	}
	got, err = o.List(t.Context(), bucket.Query{Prefix: "many/", Limit: 1050})
	if err != nil || !slices.Equal(got.Keys, want[:1050]) || !got.More {
		t.Fatalf("%d keys of 1050, more %v, %v", len(got.Keys), got.More, err)
	}
}

func fold(t *testing.T, o bucket.Objects) {
	for _, key := range []string{"s/a/1", "s/a/2", "s/b/x/y", "s/c", "s/a.b/1", "t/q"} {
		put(t, o, key, "x", bucket.Condition{})
	}
	wantKeys(t, o, bucket.Query{Prefix: "s/", Fold: true}, false, "s/a.b/", "s/a/", "s/b/", "s/c")
	wantKeys(t, o, bucket.Query{Fold: true}, false, "s/", "t/")
	wantKeys(t, o, bucket.Query{Prefix: "s/", Fold: true, After: "s/a/"}, false, "s/b/", "s/c")
	wantKeys(t, o, bucket.Query{Prefix: "s/", Fold: true, Limit: 1}, true, "s/a.b/")
}

func writtenWhen(t *testing.T, o bucket.Objects) {
	for _, key := range []string{"w/a", "w/b/c", "w/d"} {
		put(t, o, key, "x", bucket.Condition{})
	}
	first, err := o.List(t.Context(), bucket.Query{Prefix: "w/", Fold: true})
	if err != nil || len(first.Written) != 3 || !first.Written[1].IsZero() {
		t.Fatalf("got %+v, %v", first, err)
	}
	for _, i := range []int{0, 2} { // the store has a clock of its own
		if off := time.Since(first.Written[i]).Abs(); off > time.Hour {
			t.Errorf("%s was written %s from now", first.Keys[i], off)
		}
	}
	put(t, o, "w/a", "y", bucket.Condition{})
	again, err := o.List(t.Context(), bucket.Query{Prefix: "w/", Limit: 1})
	if err != nil || len(again.Written) != 1 || again.Written[0].Before(first.Written[0]) {
		t.Errorf("got %+v, %v", again, err)
	}
}

func oddKeys(t *testing.T, o bucket.Objects) {
	keys := []string{"odd/A", "odd/a", "odd/a b", "odd/a%20b", "odd/a+b", "odd/a..b", "odd/-_.", "odd/a=b&c"}
	for _, key := range keys {
		put(t, o, key, key, bucket.Condition{Absent: true})
	}
	for _, key := range keys {
		wantText(t, o, key, key)
	}
}

func cancelled(t *testing.T, o bucket.Objects) {
	ctx, end := context.WithCancel(t.Context())
	end()
	if _, err := o.Get(ctx, "k"); !errors.Is(err, context.Canceled) {
		t.Errorf("get gave %v", err)
	}
	if _, err := o.Put(ctx, "k", nil, bucket.Condition{}); !errors.Is(err, context.Canceled) {
		t.Errorf("put gave %v", err)
	}
}

// Lose removes every object, behind the back of the stores that know them.
func Lose(t *testing.T, objects bucket.Objects) {
	t.Helper()
	for {
		l, err := objects.List(t.Context(), bucket.Query{})
		if err != nil {
			t.Fatal(err)
		}
		if len(l.Keys) == 0 {
			return
		}
		for _, key := range l.Keys {
			if err := objects.Delete(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
}
