// Package s3test gives tests a real S3 server.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
)

// The credentials of the server.
const (
	AccessKey = "test-access"
	SecretKey = "test-secret"
)

// Endpoint is where the server answers while Run runs.
var Endpoint string

// Bucket is there from the beginning; tests may make others.
const Bucket = "state"

// Run runs a package's tests, from its TestMain, with a server beside them. The server is a program of the module
// tools/versitygw, so that this module does not need what an S3 server is made of.
func Run(m *testing.M) int {
	stop, err := start()
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "starting the S3 server of the tests:", err)
		return 1
	}
	defer stop()
	return m.Run()
}

func start() (stop func(), err error) {
	program, err := build()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "s3-test-")
	if err != nil {
		return nil, err
	}
	addr, reservation, err := porttest.Reserve()
	if err != nil {
		return nil, err
	}
	server := exec.Command(program, dir, addr, AccessKey, SecretKey, Bucket)
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

// build returns the path of the server's program. It takes a minute where it has not been built yet, which
// tools/peers/build does for make test.
func build() (string, error) {
	root, err := repository()
	if err != nil {
		return "", err
	}
	command := exec.Command(filepath.Join(root, "tools", "cached"), "versitygw", "./s3server")
	command.Stderr = os.Stderr
	path, err := command.Output()
	return strings.TrimSpace(string(path)), err
}

// repository is the nearest directory with a go.work. Tests start in the directory of their package.
func repository() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.work")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("the tests run outside the repository: no directory above them has a go.work")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
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
