package statestore_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/bucket"
	"github.com/deployctl/deployctl/statestore/storetest"
)

func TestAFaultOfABucketIsReported(t *testing.T) {
	good := bucket.S3Options{Endpoint: s3test.Endpoint, Region: "us-east-1", Bucket: s3test.Bucket,
		AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey}
	wrongSecret, wrongKey, noBucket, badName, nobody := good, good, good, good, good
	badName.Bucket = "No_Bucket"
	wrongSecret.SecretKey = "wrong"
	wrongKey.AccessKey = "nobody"
	noBucket.Bucket = "elsewhere"
	nobody.Endpoint = "http://" + porttest.Address(t)
	half, none := good, nobody
	half.SecretKey = ""
	none.AccessKey, none.SecretKey = "", ""
	withoutAWS(t)
	for _, c := range []struct {
		name string
		o    bucket.S3Options
		code deployments.Code
		says []string
	}{
		{"a wrong secret key", wrongSecret, deployments.CodeUnauthorized,
			[]string{"credentials", good.Bucket, good.Endpoint}},
		{"an unknown access key", wrongKey, deployments.CodeUnauthorized, []string{"credentials"}},
		{"a bucket that does not exist", noBucket, deployments.CodeInvalid,
			[]string{"no bucket elsewhere", "create it"}},
		{"a name that no bucket can have", badName, deployments.CodeInvalid,
			[]string{"No_Bucket", "correct s3.bucket"}},
		{"nobody at the address", nobody, deployments.CodeUnavailable,
			[]string{"cannot be reached", nobody.Endpoint, "connection refused", "check that the server runs"}},
		{"no credentials, and nobody at the address", none, deployments.CodeInvalid,
			[]string{"there are no credentials", "DEPLOYCTL_S3_ACCESS_KEY_ID", "AWS_ACCESS_KEY_ID"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			o, err := bucket.OpenS3(t.Context(), c.o)
			if err != nil {
				t.Fatal(err)
			}
			s, err := statestore.New(bucket.NewRetry(o, 300*time.Millisecond),
				statestore.Options{Master: storetest.Master})
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
			if text := err.Error(); strings.Contains(text, "operation error") || strings.Contains(text, "StatusCode") ||
				strings.Contains(text, "IMDS") {
				t.Errorf("it says %q", text)
			}
		})
	}
	if _, err := bucket.OpenS3(t.Context(), half); deployments.CodeOf(err) != deployments.CodeInvalid ||
		!strings.Contains(err.Error(), "secret access key") {
		t.Errorf("without a secret key: %v", err)
	}
	o, err := bucket.OpenS3(t.Context(), good)
	if err != nil {
		t.Fatal(err)
	}
	s, err := statestore.New(bucket.NewRetry(o, 0), statestore.Options{Master: storetest.Master})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Check(t.Context()); err != nil {
		t.Error(err)
	}
}

// withoutAWS takes whatever the AWS SDK could find on this machine away.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
		}
	}
	t.Setenv("AWS_CONFIG_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(t.TempDir(), "none"))
}

// TestAMachinesRoleIsAskedForOnAWSOnly has a metadata service that counts.
func TestAMachinesRoleIsAskedForOnAWSOnly(t *testing.T) {
	withoutAWS(t)
	var asked atomic.Int32
	metadata := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusForbidden)
	}))
	defer metadata.Close()
	t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", metadata.URL)
	for _, c := range []struct {
		endpoint, disabled string
		asks               bool
	}{
		{"", "", true},
		{"", "true", false},
		{"https://bucket.vpce-1.s3.us-east-1.vpce.amazonaws.com", "", true},
		{"http://127.0.0.1:1", "", false},
		{"https://s3.amazonaws.com.example.test", "", false},
	} {
		t.Setenv("AWS_EC2_METADATA_DISABLED", c.disabled)
		asked.Store(0)
		o, err := bucket.OpenS3(t.Context(), bucket.S3Options{Endpoint: c.endpoint, Region: "us-east-1",
			Bucket: s3test.Bucket})
		if err != nil {
			t.Fatal(err)
		}
		_, err = o.Get(t.Context(), "key")
		if deployments.CodeOf(err) != deployments.CodeInvalid || !strings.Contains(err.Error(),
			"there are no credentials") {
			t.Errorf("%+v: got %v", c, err)
		}
		if (asked.Load() > 0) != c.asks {
			t.Errorf("%+v: it is asked %d times", c, asked.Load())
		}
	}
}

func TestAnotherMasterKeyDoesNotOpenTheStore(t *testing.T) {
	objects := &bucket.Memory{}
	s := newStack(t, objects)
	u := deployments.UpdateName{StackName: dev, Version: "1"}
	if err := s.Updates.PutRequest(t.Context(), u, deployments.UpdateRequest{Message: "m"}); err != nil {
		t.Fatal(err)
	}
	other, err := statestore.New(objects, statestore.Options{Master: make([]byte, 32)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Updates.Request(t.Context(), u); deployments.CodeOf(err) != deployments.CodeFormat ||
		!strings.Contains(err.Error(), "not written by this service") {
		t.Fatalf("got %v", err)
	}
}

// TestAStackHasOneWriterEvenWhenReadsAreStale goes beyond what an object store may do.
func TestAStackHasOneWriterEvenWhenReadsAreStale(t *testing.T) {
	for seed := range uint64(30) {
		faults := storetest.NewFaulty(&bucket.Memory{}, storetest.Randomly(seed, 0.4, storetest.Stale,
			storetest.ReplyLost, storetest.Repeated))
		s := newStack(t, bucket.NewRetry(faults, time.Minute))
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
	objects := &bucket.Memory{}
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
	if err := there.Updates.PutRequest(t.Context(), u, deployments.UpdateRequest{Message: "m"}); err != nil {
		t.Fatal(err)
	}
	if r, err := here.Updates.Request(t.Context(), u); err != nil || r.Message != "m" {
		t.Fatalf("got %+v, %v", r, err)
	}
}
