package statestore_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

const fenceSeeds = 300

func TestAWriterThatLostTheStackCannotMoveTheHeadWhateverGoesWrong(t *testing.T) {
	for seed := range uint64(fenceSeeds) {
		synctest.Test(t, func(t *testing.T) { // pauses between attempts take no time
			if err := storetest.Fence(t.Context(), &bucket.Memory{}, seed); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
		})
	}
}

// unconditional is a store that does not honour a condition.
type unconditional struct {
	bucket.Objects
	forget func(bucket.Condition) bucket.Condition
}

func (u unconditional) Put(ctx context.Context, key string, data []byte, c bucket.Condition) (string, error) {
	return u.Objects.Put(ctx, key, data, u.forget(c))
}

func TestAStoreThatIgnoresIfMatchIsFoundOut(t *testing.T) {
	found := 0
	for seed := range uint64(fenceSeeds) {
		synctest.Test(t, func(t *testing.T) {
			broken := unconditional{&bucket.Memory{}, func(c bucket.Condition) bucket.Condition {
				return bucket.Condition{Absent: c.Absent}
			}}
			if storetest.Fence(t.Context(), broken, seed) != nil {
				found++
			}
		})
	}
	if found < fenceSeeds*9/10 {
		t.Errorf("%d of %d seeds find it", found, fenceSeeds)
	}
	t.Logf("%d of %d seeds find it", found, fenceSeeds)
}
