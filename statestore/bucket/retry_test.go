package bucket

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/deployctl/deployctl/deployments"
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

// refusing may reject the service's credentials when it is read.
type refusing struct {
	Memory
	refuse func() bool
}

func (r *refusing) Get(ctx context.Context, key string) (Object, error) {
	if r.refuse() {
		return Object{}, deployments.Errorf(deployments.CodeUnauthorized, "the bucket does not accept the credentials")
	}
	return r.Memory.Get(ctx, key)
}

func TestRejectedCredentialsOfTheServiceAreNotTheCallersThoughTheCallEndsEarly(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	calls := 0
	r := NewRetry(&refusing{refuse: func() bool {
		if calls++; calls == 2 {
			end() // as a look-up of a token ends that took too long
		}
		return true
	}}, 0)
	if _, err := r.Put(ctx, "key", nil, Condition{}); err != nil { // the credentials were good once
		t.Fatal(err)
	}
	if _, err := r.Get(ctx, "key"); deployments.CodeOf(err) != deployments.CodeUnavailable || !CredentialsRefused(err) {
		t.Errorf("%v, of code %s", err, deployments.CodeOf(err))
	}
}
