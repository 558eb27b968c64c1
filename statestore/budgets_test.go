package statestore

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"sort"
	"strconv"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/leases"
)

// takes returns how many bytes a call takes from the memory of its organization: those that nobody else gets then.
func takes(t *testing.T, call func(context.Context) error) int64 {
	t.Helper()
	const size = 1 << 40
	pool := mempool.New(size)
	own := pool.Claim("acme", nil)
	defer own.Release()
	if err := call(mempool.With(t.Context(), own, 0)); err != nil {
		t.Error(err)
	}
	return int64(sort.Search(size, func(taken int) bool {
		other := pool.Claim("other", nil)
		defer other.Release()
		return other.Take(t.Context(), size-int64(taken), 0) == nil
	}))
}

// TestWhatAClientWritesTakesTheMemoryThatItNeeds counts what each place takes that reads or parses it.
func TestWhatAClientWritesTakesTheMemoryThatItNeeds(t *testing.T) {
	const length, copies = 1 << 20, 3 // of the last whole state, while the next one is made of it
	entries := json.RawMessage("[" + made(1, length) + "," + made(2, length) + "]")
	whole := []byte(`{"version":3,"deployment":{"resources":[{"urn":"urn:pulumi:dev::web::t:m:T::a","type":"t:m:T",` +
		`"outputs":{"v":"` + strings.Repeat("v", length) + `"}}]}}`)
	snapshot := func(j *journaling) {
		j.ok(j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1, whole))
	}
	for name, c := range map[string]struct {
		before      func(*journaling)
		call        func(context.Context, *journaling) error
		least, most int64
	}{
		"journal entries, one at a time": {
			call: func(ctx context.Context, j *journaling) error {
				return j.store.Leases.WriteJournal(ctx, j.lease, entries)
			}, least: length, most: 3 * length},
		"a whole state, as its resources are judged": {
			call: func(ctx context.Context, j *journaling) error {
				return j.store.Leases.WriteSnapshot(ctx, j.lease, 1, whole)
			}, least: headerTimes * length, most: (headerTimes + 2) * length},
		"a state that another server has written": {
			before: snapshot,
			call: func(ctx context.Context, j *journaling) error {
				return j.server().Leases.WriteSnapshot(ctx, j.lease, 1, nil) // a repeated write, which reads the last one
			}, least: copies * deployments.MaxClientState, most: copies*deployments.MaxClientState + 2*length},
		"a state that this server has written": {
			before: snapshot,
			call: func(ctx context.Context, j *journaling) error {
				return j.store.Leases.WriteSnapshot(ctx, j.lease, 1, nil)
			}, least: copies * length, most: copies*length + 2*length},
		"the end of a journal": {
			before: func(j *journaling) { j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, entries)) },
			call: func(ctx context.Context, j *journaling) error {
				_, err := j.store.Leases.End(ctx, j.lease.Update)
				return err
			}, least: (1 + leases.ReplayTimes) * 2 * length, most: (1 + leases.ReplayTimes) * 2 * length * 11 / 10},
		"the replay of a journal": {
			before: func(j *journaling) { j.ok(j.store.Leases.WriteJournal(t.Context(), j.lease, entries)) },
			call: func(ctx context.Context, j *journaling) error {
				r, err := j.store.Leases.End(t.Context(), j.lease.Update)
				j.ok(err)
				without := takes(t, func(ctx context.Context) error { // what the state takes that becomes of it
					_, err := j.store.replayed(mempool.Without(ctx), Claim{Update: j.lease.Update}, r, "")
					return err
				})
				if without > 0 {
					t.Errorf("without a claim it takes %d", without)
				}
				r, err = j.store.Leases.End(t.Context(), j.lease.Update)
				j.ok(err)
				_, err = j.store.replayed(ctx, Claim{Update: j.lease.Update}, r, "")
				return err
			}, least: headerTimes * length, most: (leases.ReplayTimes*3 + headerTimes*3) * length},
		"a checkpoint that is read": {
			before: func(j *journaling) {
				snapshot(j)
				_, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
				j.ok(err)
			},
			call: func(ctx context.Context, j *journaling) error {
				_, err := j.server().checkpointJSON(ctx, j.lease.Update.StackName, j.lease.Update.Number())
				return err
			}, least: checkpointTimes * length, most: checkpointTimes * length * 11 / 10},
		"what an update left pending, which is nothing": {
			before: func(j *journaling) {
				snapshot(j)
				_, err := j.store.FinishLease(t.Context(), j.lease.Update, "")
				j.ok(err)
			},
			call: func(ctx context.Context, j *journaling) error {
				_, err := j.server().LeftPending(ctx, j.lease.Update)
				return err
			}},
	} {
		t.Run(name, func(t *testing.T) {
			j := newJournaling(t)
			if c.before != nil {
				c.before(j)
			}
			taken := takes(t, func(ctx context.Context) error { return c.call(ctx, j) })
			if taken < c.least || taken > c.most {
				t.Errorf("it takes %d bytes, not %d to %d", taken, c.least, c.most)
			}
		})
	}
}

// TestAnObjectOfTheBucketTakesItsMemoryBeforeItIsRead has a server that says how long an object is, and sends nothing
// of it.
func TestAnObjectOfTheBucketTakesItsMemoryBeforeItIsRead(t *testing.T) {
	size := 2 * mempool.Step
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", strconv.Itoa(size))
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
	}))
	defer server.Close()
	s, err := bucket.OpenS3(t.Context(), bucket.S3Options{
		Endpoint: server.URL, Region: "r", Bucket: "b", AccessKey: "a", SecretKey: "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	pool := mempool.New(mempool.Step)
	other := pool.Claim("evil", nil)
	if err := other.Take(t.Context(), mempool.Step, 0); err != nil {
		t.Fatal(err)
	}
	own := pool.Claim("acme", nil)
	if _, err := s.Get(mempool.With(t.Context(), own, 0), "k"); !errors.Is(err, mempool.ErrBusy) {
		t.Errorf("without memory it is answered %v", err)
	}
}
