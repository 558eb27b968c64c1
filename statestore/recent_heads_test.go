package statestore_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// countedReads counts the reads of objects by the end of their keys, and holds those of one.
type countedReads struct {
	bucket.Objects
	mu    sync.Mutex
	of    map[string]int
	held  string
	until chan struct{}
	began chan struct{}
}

func (r *countedReads) Get(ctx context.Context, key string) (bucket.Object, error) {
	r.mu.Lock()
	if r.of == nil {
		r.of = map[string]int{}
	}
	r.of[key[strings.LastIndex(key, "/")+1:]]++
	r.mu.Unlock()
	if r.held != "" && strings.HasSuffix(key, r.held) {
		r.began <- struct{}{}
		<-r.until
	}
	return r.Objects.Get(ctx, key)
}

func (r *countedReads) count(of string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.of[of]
}

func claimant(version int) statestore.Claimant {
	return statestore.Claimant{Update: deployments.UpdateName{StackName: dev, Version: strconv.Itoa(version)},
		Writer: "w#1", Run: "run"}
}

func TestAHeadThatWasJustReadIsChangedWithoutAnotherRead(t *testing.T) {
	objects := &countedReads{Objects: &bucket.Memory{}}
	s := opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	_, err := s.Head(t.Context(), dev)
	must(t, err)
	before := objects.count("head.json")
	c, err := s.Claim(t.Context(), claimant(1))
	must(t, err)
	must(t, s.Commit(t.Context(), c, statestore.Written{}))
	if after := objects.count("head.json"); after != before {
		t.Errorf("the head was read %d times more", after-before)
	}
}

func TestAHeadThatIsOutdatedDoesNoHarm(t *testing.T) {
	objects := &countedReads{Objects: &bucket.Memory{}}
	s, other := opened(t, objects, statestore.Options{}), opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	_, err := s.Head(t.Context(), dev)
	must(t, err)
	must(t, other.TagStack(t.Context(), dev, map[string]string{"by": "other"}))
	_, err = s.Claim(t.Context(), claimant(1))
	must(t, err)
	h, err := other.Head(t.Context(), dev)
	if err != nil || h.Tags["by"] != "other" || h.Active == nil || h.Active.Version != "1" {
		t.Errorf("the head is %+v, %v", h, err)
	}
	_, err = other.Claim(t.Context(), statestore.Claimant{Update: claimant(1).Update, Writer: "w#2", Run: "run"})
	must(t, err)
	if _, err := s.Claim(t.Context(), claimant(2)); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("another update claims it: %v", err)
	}
}

func TestAnOlderHeadThatIsPutBackIsNoticedThoughTheStackWasJustLookedAt(t *testing.T) {
	objects := &countedReads{Objects: &bucket.Memory{}}
	s := opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	old, err := objects.Get(t.Context(), keyOf(t, objects, "head.json"))
	must(t, err)
	c, err := s.Claim(t.Context(), claimant(1))
	must(t, err)
	w, err := s.Finish(t.Context(), statestore.Finish{Scope: statestore.Scope{Update: c.Update}})
	must(t, err)
	must(t, s.Updates.PutInfo(t.Context(), deployments.UpdateInfo{Update: c.Update, Status: "succeeded", Committed: true,
		Ended: time.Now()}))
	_, next, err := s.HeadAndNext(t.Context(), dev)
	if err != nil || next != w.Version+1 {
		t.Fatalf("the next version is %d, %v", next, err)
	}
	_, err = objects.Put(t.Context(), keyOf(t, objects, "head.json"), old.Data, bucket.Condition{})
	must(t, err)
	for _, again := range []bool{false, true} {
		if again { // by the history
			_, _, _ = s.HeadAndNext(t.Context(), dev)
		}
		if _, err := s.Claim(t.Context(), claimant(2)); deployments.CodeOf(err) != deployments.CodeFormat {
			t.Errorf("it is claimed: %v", err)
		}
	}
}

// keyOf returns the key of the only object whose key ends so.
func keyOf(t *testing.T, objects bucket.Objects, end string) string {
	t.Helper()
	l, err := objects.List(t.Context(), bucket.Query{})
	must(t, err)
	for _, key := range l.Keys {
		if strings.HasSuffix(key, end) {
			return key
		}
	}
	t.Fatalf("no object ends with %s", end)
	return ""
}

func TestThoseWhoAskForTheModeAtOnceWaitForOneRead(t *testing.T) {
	objects := &countedReads{Objects: &bucket.Memory{}, held: "mode", until: make(chan struct{}),
		began: make(chan struct{}, 100)}
	s := opened(t, objects, statestore.Options{})
	ctx, leave := context.WithCancel(t.Context())
	var gone sync.WaitGroup
	gone.Go(func() {
		if _, err := s.Organizations.Mode(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("who has left is answered %v", err)
		}
	})
	<-objects.began
	leave()
	gone.Wait()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			if m, err := s.Organizations.Mode(t.Context()); err != nil || m.Kind != "" {
				t.Errorf("the mode is %+v, %v", m, err)
			}
		})
	}
	close(objects.until)
	all.Wait()
	if n := objects.count("mode"); n != 1 {
		t.Errorf("it was read %d times", n)
	}
}

func TestTheHeadMovesOnlyAfterWhatIsDoneBeside(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	c, err := s.Claim(t.Context(), claimant(1))
	must(t, err)
	no := errors.New("no")
	f := statestore.Finish{Scope: statestore.Scope{Update: c.Update},
		Beside: func(context.Context) error { return no }}
	if _, err := s.Finish(t.Context(), f); !errors.Is(err, no) {
		t.Errorf("it ends with %v", err)
	}
	f.Check = func(statestore.Head) error { return no }
	f.Beside = func(context.Context) error { t.Error("what is refused is done"); return nil }
	if _, err := s.Finish(t.Context(), f); !errors.Is(err, no) {
		t.Errorf("it ends with %v", err)
	}
	if h, err := s.Head(t.Context(), dev); err != nil || h.Active == nil || h.Version != 0 {
		t.Errorf("the head is %+v, %v", h, err)
	}
	done := 0
	f.Check, f.Beside = nil, func(ctx context.Context) error {
		done++
		h, err := s.Head(ctx, dev)
		if done == 1 && (err != nil || h.Version != 0) {
			t.Errorf("the head is %+v, %v", h, err)
		}
		return err
	}
	for range 2 {
		if w, err := s.Finish(t.Context(), f); err != nil || w.Version != 1 {
			t.Errorf("it is %+v, %v", w, err)
		}
	}
	if done != 2 {
		t.Errorf("it was done %d times", done)
	}
}
