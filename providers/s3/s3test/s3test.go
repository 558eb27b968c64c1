// Package s3test gives tests a real S3 server.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/versity/versitygw/backend/meta"  //nolint:depguard // only tests import this package
	"github.com/versity/versitygw/backend/posix" //nolint:depguard // only tests import this package
	"github.com/versity/versitygw/embedgw"       //nolint:depguard // only tests import this package
)

// The credentials of the server.
const (
	AccessKey = "test-access"
	SecretKey = "test-secret"
)

const (
	serveDir  = "S3_TEST_SERVE_DIR"
	serveAddr = "S3_TEST_SERVE_ADDR"
)

// Endpoint is where the server answers while Run runs.
var Endpoint string

// Bucket is there from the beginning; tests may make others.
const Bucket = "state"

// Run runs a package's tests, from its TestMain, with a server beside them. The server is the test binary started once
// more, because it changes the working directory of its process; so Run must come first.
func Run(m *testing.M) int {
	if dir := os.Getenv(serveDir); dir != "" {
		go func() { // ends with its parent
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		_, _ = fmt.Fprintln(os.Stderr, serve(dir, os.Getenv(serveAddr)))
		return 1
	}
	stop, err := start()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "starting the S3 server of the tests:", err)
		return 1
	}
	defer stop()
	return m.Run()
}

func start() (stop func(), err error) {
	dir, err := os.MkdirTemp("", "s3-test-")
	if err != nil {
		return nil, err
	}
	addr, reservation, err := porttest.Reserve()
	if err != nil {
		return nil, err
	}
	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serveDir+"="+dir, serveAddr+"="+addr)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := server.Start(); err != nil {
		return nil, err
	}
	ended, end := context.WithCancelCause(context.Background())
	go func() { end(errors.Join(errors.New("it has ended"), server.Wait())) }()
	Endpoint = "http://" + addr
	return func() {
		_ = stdin.Close()
		<-ended.Done()
		_ = reservation.Close()
		_ = os.RemoveAll(dir)
	}, await(ended, Endpoint)
}

// await waits until the server answers.
func await(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, waittest.Patience)
	defer cancel()
	return waittest.Poll(ctx, "the S3 server answers", func() bool {
		resp, err := http.Get(url) //nolint:gosec // on loopback
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return true
	})
}

func serve(dir, addr string) error {
	side := dir + "/meta"
	objects := dir + "/objects"
	for _, d := range []string{side, objects + "/" + Bucket} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return err
		}
	}
	sidecar, err := meta.NewSideCar(side)
	if err != nil {
		return err
	}
	store, err := posix.New(objects, sidecar, posix.PosixOpts{})
	if err != nil {
		return err
	}
	return embedgw.RunVersityGW(context.Background(), store, &embedgw.Config{
		RootUserAccess: AccessKey, RootUserSecret: SecretKey, Region: "us-east-1", Ports: []string{addr},
		MaxConnections: 1024, MaxRequests: 512, MultipartMaxParts: 10_000, Quiet: true, KeepAlive: true,
	})
}
