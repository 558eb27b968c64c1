package statestore

import (
	"context"
	"errors"
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
