package devserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/deployctl/deployctl/internal/sys/doors"
)

// s3Child keeps one child process serving S3 and starts another whenever it dies.
type s3Child struct {
	argv []string
	log  io.Writer
	note *slog.Logger

	died  chan error    // the end of a child that nobody asked for; drained by start, dropped later
	ended chan struct{} // closed when no child is left and none will come

	mu       sync.Mutex
	closing  bool
	lifeline io.Closer // the running child's standard input, which ends it when it ends
	process  *os.Process
}

// startS3Child starts the child and returns once the service's bucket is there.
func startS3Child(ctx context.Context, c *s3Child, client *s3.Client) error {
	c.died, c.ended = make(chan error, 1), make(chan struct{})
	go c.supervise()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ready := make(chan error, 1)
	go func() { ready <- eventually(ctx, func(ctx context.Context) error { return ensureBucket(ctx, client) }) }()
	select {
	case err := <-ready:
		return err
	case err := <-c.died: // a child that cannot start once will not start later
		cancel(err)
		<-ready //nolint:errcheck // what died says why
		return err
	}
}

// supervise runs children one after another. It keeps its thread, because a child dies with the thread that started it.
func (c *s3Child) supervise() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.ended)
	for pause := 50 * time.Millisecond; ; pause = min(2*pause, 5*time.Second) {
		began := time.Now()
		err := c.run()
		if c.isClosing() {
			return
		}
		c.note.Warn("the S3 server ended and is started again", "error", err, "after", time.Since(began))
		select {
		case c.died <- err:
		default:
		}
		if time.Since(began) > time.Minute {
			pause = 50 * time.Millisecond
		}
		time.Sleep(pause)
	}
}

// run is the life of one child. It returns nil at once when c is closing.
func (c *s3Child) run() error {
	cmd := exec.Command(c.argv[0], c.argv[1:]...)
	cmd.Env = append(os.Environ(), parentPipe+"=1")
	cmd.Stdout, cmd.Stderr = c.log, c.log
	cmd.SysProcAttr = tieToParent()
	cmd.WaitDelay = time.Second
	lifeline, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	c.mu.Lock()
	if c.closing {
		c.mu.Unlock()
		return lifeline.Close()
	}
	if err = cmd.Start(); err == nil {
		c.lifeline, c.process = lifeline, cmd.Process
	}
	c.mu.Unlock()
	if err != nil {
		return fmt.Errorf("start the S3 server: %w", err)
	}
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the S3 server ended: %w", err)
	}
	return errors.New("the S3 server ended")
}

func (c *s3Child) isClosing() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closing
}

// close ends the child, by force if it takes longer than ctx or five seconds.
func (c *s3Child) close(ctx context.Context) {
	c.mu.Lock()
	c.closing = true
	if c.lifeline != nil {
		_ = c.lifeline.Close()
	}
	process := c.process
	c.mu.Unlock()
	grace, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case <-c.ended:
		return
	case <-grace.Done():
	}
	if process != nil {
		_ = process.Kill()
	}
	<-c.ended
}

// s3Client is a client of the service's own S3 server.
func s3Client(endpoint string, keys Keys) *s3.Client {
	return s3.New(s3.Options{
		BaseEndpoint: aws.String(endpoint),
		Region:       Region,
		UsePathStyle: true,
		HTTPClient:   &http.Client{Transport: &http.Transport{DialContext: doors.Dialer(net.Dialer{})}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: keys.S3AccessKey, SecretAccessKey: keys.S3SecretKey}, nil
		}),
	})
}

// ensureBucket makes the service's bucket if it is not there.
func ensureBucket(ctx context.Context, client *s3.Client) error {
	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(Bucket)},
		func(o *s3.Options) { o.RetryMaxAttempts = 1 })
	if mine := (*types.BucketAlreadyOwnedByYou)(nil); errors.As(err, &mine) {
		return nil
	}
	return err
}
