package statestore_test

import (
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/seal"
	"github.com/deployctl/deployctl/statestore/storetest"
)

func TestMain(m *testing.M) {
	// What compresses is shared. Used first in a bubble of testing/synctest, it would belong to that one.
	keys, err := seal.NewKeyring(storetest.Master)
	if err != nil {
		panic(err)
	}
	keys.Box(seal.PurposeStore).Seal(make([]byte, 1<<10), "")
	os.Exit(s3test.Run(m))
}

var prefixes atomic.Int32

// openS3 gives an empty part of the bucket.
func openS3(t *testing.T) bucket.Objects {
	t.Helper()
	o, err := bucket.OpenS3(t.Context(), bucket.S3Options{
		Endpoint: s3test.Endpoint, Region: "us-east-1", Bucket: s3test.Bucket,
		Prefix: fmt.Sprintf("part%d/", prefixes.Add(1)), AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func openMemory(*testing.T) bucket.Objects { return &bucket.Memory{} }

// retrying opens what open does, behind faults and retries.
func retrying(open func(*testing.T) bucket.Objects) func(*testing.T) bucket.Objects {
	return func(t *testing.T) bucket.Objects {
		t.Helper()
		choose := storetest.Randomly(1, 0.2, storetest.Sound...)
		return bucket.NewRetry(storetest.NewFaulty(open(t), choose), time.Minute)
	}
}

func TestMemoryIsAnObjectStore(t *testing.T) { storetest.Objects(t, openMemory) }

func TestABucketIsAnObjectStore(t *testing.T) { storetest.Objects(t, openS3) }

func TestAnUnreliableObjectStoreIsAReliableOneBehindRetries(t *testing.T) {
	storetest.Objects(t, retrying(openMemory))
}

func TestTheStoreKeepsItsContractInMemory(t *testing.T) { storetest.Store(t, openMemory) }

// Each write of what was read loses once, and is done again; but for what fails or is left out instead: the head of a
// name that was reserved for a renaming, and the time at which a token was used.
func TestTheStoreKeepsItsContractWhenAnotherWriterIsAlwaysFaster(t *testing.T) {
	storetest.Store(t, func(t *testing.T) bucket.Objects {
		return storetest.NewContended(openMemory(t), "/live/head.json", "tokens/")
	})
}

func TestTheStoreKeepsItsContractInABucket(t *testing.T) { storetest.Store(t, openS3) }

func TestTheStoreKeepsItsContractWhenCallsGoWrong(t *testing.T) {
	storetest.Store(t, retrying(openMemory))
}
