package statestore

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore/bucket"
)

var cachedStack = deployments.StackName{Organization: "o", Project: "p", Stack: "s"}

// held answers reads of checkpoints when it is let go.
type held struct {
	bucket.Objects
	reading, free chan struct{}
}

func (h *held) Get(ctx context.Context, key string) (bucket.Object, error) {
	if key != checkpointKey(cachedStack, 1) {
		return h.Objects.Get(ctx, key)
	}
	h.reading <- struct{}{}
	select {
	case <-ctx.Done():
		return bucket.Object{}, ctx.Err()
	case <-h.free:
		return h.Objects.Get(ctx, key)
	}
}

func TestACancelledReaderDoesNotCancelTheReadForOthers(t *testing.T) {
	h := &held{Objects: &bucket.Memory{}, reading: make(chan struct{}), free: make(chan struct{})}
	s, err := New(h, Options{Master: make([]byte, 32)})
	if err == nil {
		err = s.CreateStack(t.Context(), cachedStack, nil)
	}
	if err == nil {
		_, err = h.Put(t.Context(), checkpointKey(cachedStack, 1), []byte(`{"version":3,"deployment":{}}`), bucket.Condition{})
	}
	if err != nil {
		t.Fatal(err)
	}
	leaving, leave := context.WithCancel(t.Context())
	first, second := make(chan error), make(chan error)
	read := func(ctx context.Context, ended chan<- error) {
		_, err := s.Checkpoint(ctx, cachedStack, 1, deployments.SecretsProvider{})
		ended <- err
	}
	go read(leaving, first)
	<-h.reading
	go read(t.Context(), second)
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who left got %v", err)
	}
	close(h.free)
	if err := <-second; err != nil {
		t.Errorf("who stayed got %v", err)
	}
}

func TestWhatCannotBeOpenedLeavesNothingInTheCache(t *testing.T) {
	s, err := New(&bucket.Memory{}, Options{Master: make([]byte, 32)})
	if err == nil {
		err = s.CreateStack(t.Context(), cachedStack, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	for range 100 {
		if _, err := s.Checkpoint(t.Context(), cachedStack, 7, deployments.SecretsProvider{}); err == nil {
			t.Fatal("there is a version 7")
		}
	}
	if len(s.cacheOrder) != 0 || len(s.cache) != 0 {
		t.Errorf("%d in order, %d opened", len(s.cacheOrder), len(s.cache))
	}
}

// counted counts the reads of one object.
type counted struct {
	bucket.Objects
	key   string
	reads atomic.Int32
}

func (c *counted) Get(ctx context.Context, key string) (bucket.Object, error) {
	if key == c.key {
		c.reads.Add(1)
	}
	return c.Objects.Get(ctx, key)
}

func TestCheckpointsOfOneOrganizationForgetNoneOfAnother(t *testing.T) {
	read := checkpointsOf(t)
	c := read.counted
	read.checkpoint(t, cachedStack, 1)
	for i := range 3 * cachedCheckpoints {
		read.checkpoint(t, deployments.StackName{Organization: "evil", Project: "p", Stack: "s"}, i+1)
	}
	read.checkpoint(t, cachedStack, 1)
	if n := c.reads.Load(); n != 1 {
		t.Errorf("the checkpoint of another organization is read %d times", n)
	}
	if n := len(read.store.cacheOrder); n != cachedCheckpoints || len(read.store.cache) != n {
		t.Errorf("%d in order, %d opened", n, len(read.store.cache))
	}
}

func TestACheckpointThatIsUsedStaysInTheCache(t *testing.T) {
	read := checkpointsOf(t)
	for i := range 3 * cachedCheckpoints {
		read.checkpoint(t, cachedStack, 1)
		read.checkpoint(t, cachedStack, i+2)
	}
	if n := read.counted.reads.Load(); n != 1 {
		t.Errorf("a checkpoint that is used is read %d times", n)
	}
}

// checkpointReads reads empty checkpoints of stacks.
type checkpointReads struct {
	store   *Store
	counted *counted // reads of the first version of cachedStack
}

func checkpointsOf(t *testing.T) checkpointReads {
	c := &counted{Objects: &bucket.Memory{}, key: checkpointKey(cachedStack, 1)}
	s, err := New(c, Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	for _, organization := range []string{cachedStack.Organization, "evil"} {
		name := deployments.StackName{Organization: organization, Project: "p", Stack: "s"}
		if err := s.CreateStack(t.Context(), name, nil); err != nil {
			t.Fatal(err)
		}
		for i := range 3*cachedCheckpoints + 1 {
			if _, err := c.Put(t.Context(), checkpointKey(name, i+1), []byte(`{"version":3,"deployment":{}}`),
				bucket.Condition{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	return checkpointReads{s, c}
}

func (r checkpointReads) checkpoint(t *testing.T, name deployments.StackName, version int) {
	if _, err := r.store.Checkpoint(t.Context(), name, version, deployments.SecretsProvider{}); err != nil {
		t.Fatal(err)
	}
}
