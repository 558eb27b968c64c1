package statestore

import (
	"context"
	"encoding/base64"
	"fmt"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// withoutPattern is a state of a length that compresses hardly.
func withoutPattern(length int) []byte {
	random := make([]byte, length/4*3)
	_, _ = rand.NewChaCha8([32]byte{1}).Read(random) // never fails
	values := base64.StdEncoding.EncodeToString(random)
	const each = 16 << 10
	var list []string
	for n := range len(values) / each {
		list = append(list, fmt.Sprintf(`{"urn":"urn:pulumi:dev::web::t:m:T::r%d","type":"t:m:T","outputs":{"v":%q}}`, n,
			values[n*each:(n+1)*each]))
	}
	return []byte(`{"version":3,"deployment":{"manifest":{"time":"2026-01-02T03:04:05Z"},"resources":[` +
		strings.Join(list, ",") + `]}}`)
}

// TestACallHasTakenWhatItMakesOfALargeState counts the bytes that calls allocate, whether the object of the state is
// small or not, and has each of them find no garbage of the one before.
func TestACallHasTakenWhatItMakesOfALargeState(t *testing.T) {
	const size, anEnd = 16 << 20, "an end"
	for kind, state := range map[string][]byte{"with a pattern": largeState(size>>14, 16<<10),
		"without one": withoutPattern(size)} {
		j := newJournaling(t)
		j.ok(j.store.Leases.WriteSnapshot(t.Context(), j.lease, 1, state))
		for _, c := range []struct {
			what string
			call func(context.Context) error
		}{
			{"a change that does not fit", func(ctx context.Context) error {
				err := j.store.Leases.PatchSnapshot(ctx, j.lease, deployments.SnapshotPatch{Sequence: 2, Digest: "x",
					Edits: []deployments.TextEdit{{Text: "x"}}})
				if deployments.CodeOf(err) != deployments.CodeConflict {
					return fmt.Errorf("it is answered %w", err)
				}
				return nil
			}},
			{anEnd, func(ctx context.Context) error {
				_, err := j.server().FinishLease(ctx, j.lease.Update, "")
				return err
			}},
			{"an export", func(ctx context.Context) error {
				_, err := j.server().Export(ctx, Exchange{Stack: j.lease.Update.StackName}, 0, false)
				return err
			}},
		} {
			made, taken, collected := memoryOf(t, c.call)
			if made > taken && c.what != anEnd { // which looks at each resource by itself
				t.Errorf("%s of a state %s makes %d bytes, and has taken %d", c.what, kind, made, taken)
			}
			if collected == 0 {
				t.Errorf("%s of a state %s finds the garbage of the call before", c.what, kind)
			}
		}
	}
}

// memoryOf returns how many bytes a call allocates and takes of the pool, and how often it has the garbage collected in
// a process that may have little.
func memoryOf(t *testing.T, call func(context.Context) error) (made, taken int64, collected uint32) {
	t.Helper()
	pool := mempool.New(1 << 30)
	own := pool.Claim("acme", nil)
	defer own.Release()
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(32 << 20))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := call(mempool.With(t.Context(), own, 0)); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	return int64(after.TotalAlloc - before.TotalAlloc), pool.Taken(), after.NumForcedGC - before.NumForcedGC
}
