package servers_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// sequence runs n activities one after another.
func sequence(ctx workflow.Context, n int) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: time.Minute})
	for range n {
		if err := workflow.ExecuteActivity(ctx, repeat, make([]byte, 1024)).Get(ctx, nil); err != nil {
			return err
		}
	}
	return nil
}

func repeat(_ context.Context, p []byte) ([]byte, error) { return p, nil }

// hang is an activity that only a cancel ends; it says when it has begun.
func hang(began chan<- struct{}) func(context.Context) error {
	return func(ctx context.Context) error {
		close(began)
		<-ctx.Done()
		return ctx.Err()
	}
}

// untilCancelled waits for an activity and wants it to have ended when it is cancelled.
func untilCancelled(ctx workflow.Context) error {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: time.Hour, HeartbeatTimeout: time.Hour, WaitForCancellation: true,
	})
	return workflow.ExecuteActivity(ctx, "hang").Get(ctx, nil)
}

// work connects a worker to s on a queue of its own.
func work(tb testing.TB, s *devserver.Server) (client.Client, worker.Worker) {
	tb.Helper()
	config, err := devserver.TemporalTLS(s.Status.TemporalCredentials)
	if err != nil {
		tb.Fatal(err)
	}
	c, err := client.Dial(client.Options{
		HostPort: s.Status.TemporalAddress, Namespace: devserver.Namespace, Logger: log.NewStructuredLogger(
			slog.New(slog.DiscardHandler)),
		ConnectionOptions: client.ConnectionOptions{TLS: config},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return c, worker.New(c, "queue", worker.Options{DeadlockDetectionTimeout: waittest.Patience})
}

// BenchmarkSequentialActivities is 6 ms on a machine where the default settings make it 41.
func BenchmarkSequentialActivities(b *testing.B) {
	s, err := devserver.Start(context.Background(), options(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	c, w := work(b, s)
	defer c.Close()
	w.RegisterWorkflow(sequence)
	w.RegisterActivity(repeat)
	if err := w.Start(); err != nil {
		b.Fatal(err)
	}
	defer w.Stop()
	const each = 200
	for b.Loop() {
		run, err := c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{TaskQueue: "queue"}, sequence,
			each)
		if err == nil {
			err = run.Get(context.Background(), nil)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N*each), "ms/activity")
	status, _ := os.ReadFile("/proc/self/status")
	for line := range bytes.Lines(status) {
		if bytes.HasPrefix(line, []byte("VmRSS")) {
			b.Logf("%s", bytes.TrimSpace(line))
		}
	}
}

// BenchmarkPut is one object of the service's state, 4 KiB, after another.
func BenchmarkPut(b *testing.B) {
	s, err := devserver.Start(context.Background(), options(b.TempDir()))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = s.Close(context.Background()) }()
	c := s3Client(s.Status.S3Endpoint, s.Keys)
	for b.Loop() {
		_, err := c.PutObject(context.Background(), &s3.PutObjectInput{
			Bucket: aws.String(devserver.Bucket), Key: aws.String(fmt.Sprintf("a/b/%d", b.N)),
			Body: bytes.NewReader(make([]byte, 4096)),
		})
		if err != nil {
			b.Fatal(err)
		}
	}
}
