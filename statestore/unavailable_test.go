package statestore_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/storetest"
)

func TestWhatIsWrongWithABucketIsSaid(t *testing.T) {
	address, err := freeAddress()
	if err != nil {
		t.Fatal(err)
	}
	good := statestore.S3Options{Endpoint: s3Endpoint(t), Region: "us-east-1", Bucket: bucket, AccessKey: accessKey, SecretKey: secretKey}
	wrongSecret, wrongKey, noBucket, nobody := good, good, good, good
	wrongSecret.SecretKey = "wrong"
	wrongKey.AccessKey = "nobody"
	noBucket.Bucket = "elsewhere"
	nobody.Endpoint = "http://" + address
	for _, c := range []struct {
		name string
		o    statestore.S3Options
		code deployments.Code
		says []string
	}{
		{"a wrong secret key", wrongSecret, deployments.CodeUnauthorized, []string{"credentials", bucket, good.Endpoint}},
		{"an unknown access key", wrongKey, deployments.CodeUnauthorized, []string{"credentials"}},
		{"a bucket that does not exist", noBucket, deployments.CodeInvalid, []string{"no bucket elsewhere", "create it"}},
		{"nobody at the address", nobody, deployments.CodeUnavailable, []string{"cannot be reached", nobody.Endpoint, "check that the server runs"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := statestore.OpenS3(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			s, err := statestore.New(statestore.NewRetry(o, 300*time.Millisecond), statestore.Options{Master: storetest.Master})
			if err != nil {
				t.Fatal(err)
			}
			err = s.CreateStack(t.Context(), dev, nil)
			if deployments.CodeOf(err) != c.code {
				t.Fatalf("got %s: %v", deployments.CodeOf(err), err)
			}
			for _, says := range c.says {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if err := s.Check(t.Context()); deployments.CodeOf(err) != c.code {
				t.Errorf("the check gave %s: %v", deployments.CodeOf(err), err)
			}
		})
	}
	o, err := statestore.OpenS3(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	s, err := statestore.New(statestore.NewRetry(o, 0), statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnotherMasterKeyDoesNotOpenTheStore(t *testing.T) {
	objects := &statestore.Memory{}
	s := newStack(t, objects)
	u := deployments.UpdateName{StackName: dev, Version: "1"}
	if err := s.PutRequest(t.Context(), u, deployments.UpdateRequest{Message: "m"}); err != nil {
		t.Fatal(err)
	}
	other, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Request(t.Context(), u); deployments.CodeOf(err) != deployments.CodeFormat || !strings.Contains(err.Error(), "not sealed with this service's key") {
		t.Fatalf("got %v", err)
	}
}

// TestAStackHasOneWriterEvenWhenReadsAreStale goes beyond what an object store may do.
func TestAStackHasOneWriterEvenWhenReadsAreStale(t *testing.T) {
	for seed := range uint64(30) {
		faults := storetest.NewFaulty(&statestore.Memory{}, storetest.Randomly(seed, 0.4, storetest.Stale, storetest.ReplyLost, storetest.Repeated))
		s := newStack(t, statestore.NewRetry(faults, time.Minute))
		winners := map[int]string{}
		for n := 1; n <= 6; n++ {
			u := deployments.UpdateName{StackName: dev, Version: fmt.Sprint(n)}
			claim, err := s.Claim(t.Context(), statestore.Claimant{Update: u, Writer: fmt.Sprint("w", n)})
			if err != nil {
				continue
			}
			if before, ok := winners[claim.Fence]; ok {
				t.Fatalf("seed %d: %s and %s have the fence %d", seed, before, claim.Writer, claim.Fence)
			}
			winners[claim.Fence] = claim.Writer
		}
	}
}

func TestAStackMadeAgainElsewhereIsReadWithItsNewKeys(t *testing.T) {
	objects := &statestore.Memory{}
	here := newStack(t, objects)
	there, err := statestore.New(objects, statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	if err := there.RemoveStack(t.Context(), dev, false); err != nil {
		t.Fatal(err)
	}
	if err := there.CreateStack(t.Context(), dev, nil); err != nil {
		t.Fatal(err)
	}
	u := deployments.UpdateName{StackName: dev, Version: "1"}
	if err := there.PutRequest(t.Context(), u, deployments.UpdateRequest{Message: "m"}); err != nil {
		t.Fatal(err)
	}
	if r, err := here.Request(t.Context(), u); err != nil || r.Message != "m" {
		t.Fatalf("got %+v, %v", r, err)
	}
}
