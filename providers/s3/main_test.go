package s3_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/embedgw"
)

// The tests run against a real S3 server, which is this test binary started once more: the server changes the working directory of
// its process.
const (
	serveDir  = "S3_TEST_SERVE_DIR"
	serveAddr = "S3_TEST_SERVE_ADDR"
	accessKey = "test-access"
	secretKey = "test-secret"
)

var endpoint string

func TestMain(m *testing.M) {
	if dir := os.Getenv(serveDir); dir != "" {
		go func() { // ends with its parent
			_, _ = io.Copy(io.Discard, os.Stdin)
			os.Exit(0)
		}()
		fmt.Fprintln(os.Stderr, serve(dir, os.Getenv(serveAddr)))
		os.Exit(1)
	}
	os.Exit(withServer(m))
}

func withServer(m *testing.M) int {
	dir, err := os.MkdirTemp("", "s3-test-")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		panic(err)
	}
	addr := listener.Addr().String()
	_ = listener.Close()

	server := exec.Command(os.Args[0])
	server.Env = append(os.Environ(), serveDir+"="+dir, serveAddr+"="+addr)
	server.Stderr = os.Stderr
	stdin, err := server.StdinPipe()
	if err != nil {
		panic(err)
	}
	if err := server.Start(); err != nil {
		panic(err)
	}
	defer func() { _ = stdin.Close(); _ = server.Wait() }()
	endpoint = "http://" + addr
	await(endpoint)
	return m.Run()
}

func await(url string) {
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if resp, err := http.Get(url); err == nil {
			_ = resp.Body.Close()
			return
		}
	}
	panic("the S3 server did not come up")
}

func serve(dir, addr string) error {
	side := dir + "/meta"
	objects := dir + "/objects"
	for _, d := range []string{side, objects} {
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
		RootUserAccess: accessKey, RootUserSecret: secretKey, Region: "us-east-1", Ports: []string{addr},
		MaxConnections: 1024, MaxRequests: 512, MultipartMaxParts: 10_000, Quiet: true, KeepAlive: true,
	})
}
