package statestore_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/engine"
	"github.com/deployctl/deployctl/engine/snapshot"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// countedLists counts the lists of objects.
type countedLists struct {
	bucket.Objects
	mu sync.Mutex
	n  int
}

func (l *countedLists) List(ctx context.Context, q bucket.Query) (bucket.Listing, error) {
	l.mu.Lock()
	l.n++
	l.mu.Unlock()
	return l.Objects.List(ctx, q)
}

// since returns how many lists there were since it was called last.
func (l *countedLists) since() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.n
	l.n = 0
	return n
}

func finishOf(c statestore.Claim) statestore.Finish {
	return statestore.Finish{Scope: statestore.Scope{Update: c.Update, Base: c.Base}}
}

func TestAnUpdateEndsByTheHeadOfItsClaimHoweverLongItRan(t *testing.T) {
	now := time.Now()
	objects := &countedReads{Objects: &bucket.Memory{}}
	s := opened(t, objects, statestore.Options{Now: func() time.Time { return now }})
	must(t, s.CreateStack(t.Context(), dev, nil))
	c, err := s.Claim(t.Context(), claimant(1))
	must(t, err)
	now = now.Add(3 * time.Hour)
	before := objects.count("head.json")
	_, err = s.Finish(t.Context(), finishOf(c))
	must(t, err)
	if after := objects.count("head.json"); after != before {
		t.Errorf("the head was read %d times", after-before)
	}
}

func TestAnUpdateEndsByTheHeadThatIsThere(t *testing.T) {
	for name, meanwhile := range map[string]struct {
		change func(other *statestore.Store, c statestore.Claim) error
		ends   bool
		beside int // how often what is done beside is done
	}{
		"somebody has set a tag": {func(other *statestore.Store, _ statestore.Claim) error {
			return other.TagStack(t.Context(), dev, map[string]string{"by": "other"})
		}, true, 1},
		"another worker has the update": {func(other *statestore.Store, _ statestore.Claim) error {
			_, err := other.Claim(t.Context(), statestore.Claimant{Update: claimant(1).Update, Writer: "w#2", Run: "run"})
			return err
		}, true, 2},
		"another process has ended it": {func(other *statestore.Store, c statestore.Claim) error {
			_, err := other.Finish(t.Context(), finishOf(c))
			return err
		}, true, 2},
		"it was given up": {func(other *statestore.Store, c statestore.Claim) error {
			return other.Commit(t.Context(), c, statestore.Written{})
		}, false, 1},
		"another update has the stack": {func(other *statestore.Store, c statestore.Claim) error {
			if err := other.Commit(t.Context(), c, statestore.Written{}); err != nil {
				return err
			}
			_, err := other.Claim(t.Context(), claimant(2))
			return err
		}, false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			objects := &bucket.Memory{}
			s, other := opened(t, objects, statestore.Options{}), opened(t, objects, statestore.Options{})
			must(t, s.CreateStack(t.Context(), dev, nil))
			c, err := s.Claim(t.Context(), claimant(1))
			must(t, err)
			must(t, meanwhile.change(other, c))
			was, err := other.Head(t.Context(), dev)
			must(t, err)
			f, beside := finishOf(c), 0
			f.Beside = func(context.Context) error { beside++; return nil }
			w, err := s.Finish(t.Context(), f)
			if (err == nil) != meanwhile.ends || err != nil && deployments.CodeOf(err) != deployments.CodeConflict ||
				beside != meanwhile.beside {
				t.Errorf("it ends as %+v, %v, and what is beside was done %d times", w, err, beside)
			}
			h, err := other.Head(t.Context(), dev)
			if err != nil || h.Version != map[bool]int{true: 1}[meanwhile.ends] || h.Tags["by"] != was.Tags["by"] {
				t.Errorf("the head is %+v, %v", h, err)
			}
			if h.Version == 1 {
				_, err = other.Checkpoint(t.Context(), dev, 1, deployments.SecretsProvider{})
				must(t, err)
			}
		})
	}
}

// A late end of an update that was given up does not count, also if it would end without a version.
func TestAnEndWithoutAVersionIsTheUpdatesOwn(t *testing.T) {
	objects := &bucket.Memory{}
	s, other := opened(t, objects, statestore.Options{}), opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	first, err := s.Claim(t.Context(), claimant(1))
	must(t, err)
	_, err = s.Finish(t.Context(), finishOf(first))
	must(t, err)
	c, err := s.Claim(t.Context(), claimant(2))
	must(t, err)
	l, err := objects.List(t.Context(), bucket.Query{})
	must(t, err)
	for _, key := range l.Keys {
		if strings.HasSuffix(key, "/checkpoints/1.json.zst") { // an update that changed nothing may end all the same
			_, err := objects.Put(t.Context(), key, []byte("damaged"), bucket.Condition{})
			must(t, err)
		}
	}
	must(t, other.Commit(t.Context(), c, statestore.Written{}))
	if w, err := s.Finish(t.Context(), finishOf(c)); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("it ends as %+v, %v", w, err)
	}
}

// What ends an update with less than it has saved neither ends it, nor replaces what another process has written.
func TestACheckpointWithLessDoesNotReplaceAnother(t *testing.T) {
	objects := &bucket.Memory{}
	s := opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	c, err := s.Claim(t.Context(), claimant(1))
	must(t, err)
	state := engine.State{Key: snapshot.OpKey(1), URN: "urn:pulumi:dev::shop::a:b:C::n", Type: "a:b:C"}
	must(t, s.Updates.SaveDeltas(t.Context(), c.Update, 1, []engine.Delta{{Seq: 1, Kind: engine.DeltaPut, Op: 1,
		State: &state}}))
	all := finishOf(c)
	all.Saves = 1
	stopped := false
	all.Beside = func(context.Context) error { // the head has not moved then, and the checkpoint is there
		if !stopped {
			stopped = true
			return deployments.Errorf(deployments.CodeUnavailable, "it is interrupted")
		}
		return nil
	}
	if _, err := s.Finish(t.Context(), all); err == nil {
		t.Fatal("it is not interrupted")
	}
	checkpoint, has := objectOf(t, objects, "/checkpoints/1.json.zst")
	if !has {
		t.Fatal("the checkpoint is not written")
	}
	if _, err := s.Finish(t.Context(), finishOf(c)); deployments.CodeOf(err) != deployments.CodeConflict {
		t.Errorf("with less it ends as %v", err)
	}
	if now, _ := objectOf(t, objects, "/checkpoints/1.json.zst"); string(now) != string(checkpoint) {
		t.Error("the checkpoint is replaced")
	}
	if w, err := s.Finish(t.Context(), all); err != nil || w.Resources != 1 {
		t.Errorf("with all it ends as %+v, %v", w, err)
	}
}

func objectOf(t *testing.T, objects bucket.Objects, end string) (data []byte, has bool) {
	t.Helper()
	l, err := objects.List(t.Context(), bucket.Query{})
	must(t, err)
	for _, key := range l.Keys {
		if strings.HasSuffix(key, end) {
			o, err := objects.Get(t.Context(), key)
			must(t, err)
			return o.Data, true
		}
	}
	return nil, false
}

func TestNothingIsLookedForOfAnUpdateThatLeavesNothing(t *testing.T) {
	objects := &countedLists{Objects: &bucket.Memory{}}
	s, other := opened(t, objects, statestore.Options{}), opened(t, objects, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	end := func(version, saves int) {
		t.Helper()
		c, err := s.Claim(t.Context(), claimant(version))
		must(t, err)
		for n := range saves {
			must(t, s.Updates.SaveDeltas(t.Context(), c.Update, n+1, nil))
		}
		f := finishOf(c)
		f.Saves = saves
		_, err = s.Finish(t.Context(), f)
		must(t, err)
	}
	lists := func(by *statestore.Store, version int) int {
		objects.since()
		by.Sweep(t.Context(), dev, version)
		return objects.since()
	}
	end(1, 0)
	if n := lists(s, 1); n != 0 {
		t.Errorf("the process that has ended it lists %d times", n)
	}
	if n := lists(other, 1); n != 1 {
		t.Errorf("another one lists %d times", n)
	}
	end(2, 1)
	if n := lists(s, 2); n != 2 {
		t.Errorf("of one that has saved something it lists %d times", n)
	}
	if last, err := other.Updates.LastSave(t.Context(), claimant(2).Update); err != nil || last != 0 {
		t.Errorf("its saves are not removed: %d, %v", last, err)
	}
}

// A client asks for its stack and for its files together, with one token.
func TestCallsThatComeTogetherReadOnce(t *testing.T) {
	memory := &bucket.Memory{}
	s := opened(t, memory, statestore.Options{})
	must(t, s.CreateStack(t.Context(), dev, nil))
	text, err := s.Access.CreateToken(t.Context(), deployments.Token{Name: "ci", Grant: &deployments.Grant{
		Role: deployments.RoleDeployer, Organization: dev.Organization}})
	must(t, err)
	for held, calls := range map[string][]func(*statestore.Store) error{
		"head.json": {func(s *statestore.Store) error { _, err := s.Head(t.Context(), dev); return err },
			func(s *statestore.Store) error {
				_, err := s.Programs.Missing(t.Context(), dev, deployments.Manifest{})
				return err
			}},
		"ci": {func(s *statestore.Store) error { _, err := s.Access.Authenticate(t.Context(), text); return err },
			func(s *statestore.Store) error { _, err := s.Access.Authenticate(t.Context(), text); return err }},
	} {
		objects := &countedReads{Objects: memory, held: held, until: make(chan struct{}), began: make(chan struct{}, 100)}
		other := opened(t, objects, statestore.Options{})
		var all sync.WaitGroup
		all.Go(func() { must(t, calls[0](other)) })
		<-objects.began
		all.Go(func() { must(t, calls[1](other)) })
		close(objects.until)
		all.Wait()
		if n := objects.count(held); n != 1 {
			t.Errorf("%s is read %d times", held, n)
		}
	}
}
