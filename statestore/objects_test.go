package statestore_test

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/statestore"
	"github.com/deployctl/deployctl/statestore/storetest"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The S3 server changes the working directory of its process, so it is this test binary started again.
const (
	serverDir     = "STATESTORE_TEST_S3_DIR"
	serverAddress = "STATESTORE_TEST_S3_ADDRESS"
	accessKey     = "test-access"
	secretKey     = "test-secret"
	bucket        = "state"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(serverDir); dir != "" {
		log.Fatal(serveS3(dir, os.Getenv(serverAddress)))
	}
	code := m.Run()
	stopS3()
	os.Exit(code)
}

// serveS3 serves a directory until the standard input ends.
func serveS3(dir, address string) error {
	ctx, end := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		end()
		time.Sleep(time.Second) // open connections may hold the server up
		os.Exit(0)
	}()
	data, sidecar := dir+"/data", dir+"/meta"
	for _, d := range []string{data + "/" + bucket, sidecar} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	attributes, err := meta.NewSideCar(sidecar)
	if err != nil {
		return err
	}
	store, err := posix.New(data, attributes, posix.PosixOpts{})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(ctx, store, &embedgw.Config{
		RootUserAccess: accessKey, RootUserSecret: secretKey, Region: "us-east-1", Ports: []string{address},
		MaxConnections: 1024, MaxRequests: 512, MultipartMaxParts: 1000, KeepAlive: true, Quiet: true,
	})
}

var s3 struct {
	once     sync.Once
	endpoint string
	stop     func()
	err      error
}

func stopS3() {
	if s3.stop != nil {
		s3.stop()
	}
}

// s3Endpoint starts the server once for all tests.
func s3Endpoint(t *testing.T) string {
	t.Helper()
	s3.once.Do(func() { s3.endpoint, s3.stop, s3.err = startS3() })
	if s3.err != nil {
		t.Fatal(s3.err)
	}
	return s3.endpoint
}

func startS3() (string, func(), error) {
	dir, err := os.MkdirTemp("", "statestore-s3-")
	if err != nil {
		return "", nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serverDir+"="+dir, serverAddress+"="+address)
	cmd.Stderr = os.Stderr
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return "", nil, err
	}
	if err := cmd.Start(); err != nil {
		return "", nil, err
	}
	stop := func() {
		_ = pipe.Close()
		_ = cmd.Wait()
		_ = os.RemoveAll(dir)
	}
	for range 600 {
		resp, err := http.Get("http://" + address)
		if err == nil {
			return "http://" + address, stop, resp.Body.Close()
		}
		time.Sleep(50 * time.Millisecond)
	}
	stop()
	return "", nil, fmt.Errorf("the S3 server did not start at %s", address)
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}

var prefixes atomic.Int32

// openS3 gives an empty part of the bucket.
func openS3(t *testing.T) statestore.Objects {
	t.Helper()
	o, err := statestore.OpenS3(t.Context(), statestore.S3Options{
		Endpoint: s3Endpoint(t), Region: "us-east-1", Bucket: bucket, Prefix: fmt.Sprintf("part%d/", prefixes.Add(1)),
		AccessKey: accessKey, SecretKey: secretKey,
	})
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func openMemory(*testing.T) statestore.Objects { return &statestore.Memory{} }

// retrying opens what open does, behind faults and retries.
func retrying(open func(*testing.T) statestore.Objects) func(*testing.T) statestore.Objects {
	return func(t *testing.T) statestore.Objects {
		t.Helper()
		choose := storetest.Randomly(1, 0.2, storetest.Sound...)
		return statestore.NewRetry(storetest.NewFaulty(open(t), choose), time.Minute)
	}
}

func TestMemoryIsAnObjectStore(t *testing.T) { storetest.Objects(t, openMemory) }

func TestABucketIsAnObjectStore(t *testing.T) { storetest.Objects(t, openS3) }

func TestAnUnreliableObjectStoreIsAReliableOneBehindRetries(t *testing.T) {
	storetest.Objects(t, retrying(openMemory))
}

func TestTheStoreKeepsItsContractInMemory(t *testing.T) { storetest.Store(t, openMemory) }

func TestTheStoreKeepsItsContractInABucket(t *testing.T) { storetest.Store(t, openS3) }

func TestTheStoreKeepsItsContractWhenCallsGoWrong(t *testing.T) {
	storetest.Store(t, retrying(openMemory))
}
