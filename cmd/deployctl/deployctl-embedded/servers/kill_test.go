package servers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/deployctl/deployctl/cmd/deployctl/deployctl-embedded/servers"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/devserver/parts"
	"github.com/deployctl/deployctl/internal/testkit/soaktest"
	"github.com/deployctl/deployctl/internal/testkit/waittest"
	"github.com/versity/versitygw/backend/meta"
)

func TestAFirstStartThatWasKilledIsStartedAgain(t *testing.T) {
	for row, gate := range []string{
		"locks/service", "service.json", "data", "data/keys.json", "data/temporal.pem", "data/ports.json",
		"data/temporal/schema.json",
		"data/temporal/temporal.db.new", "data/temporal/temporal.db", "data/temporal/temporal.db-wal", "data/s3",
		"data/s3/" + devserver.Bucket,
	} {
		t.Run("when "+strings.ReplaceAll(gate, "/", " ")+" was there", func(t *testing.T) {
			soaktest.ButFor(t, 4, row)
			home := newHome(t)
			p := spawn(t, "service", home)
			waittest.Until(t, gate+" is there, or has got its name", func() bool {
				at := filepath.Join(home, gate)
				return exists(at) || exists(strings.TrimSuffix(at, ".new")) // a look may come between the two
			})
			p.kill()
			s := start(t, home)
			namespaceID(t, s)
			writeObject(t, s, "key", "value")
		})
	}
}

// A kill while the S3 server makes a bucket is too rare to be waited for: what it leaves is put there, and whoever
// looks at the folder sees a bucket only once it is whole.
func TestABucketIsThereWithItsTagsOrNotAtAll(t *testing.T) {
	for name, left := range map[string][]string{
		"with extended attributes": {"s3/.bucket"},
		"with metadata beside":     {"s3/.bucket", "s3meta/.bucket/meta", "s3meta/bucket-0/meta"},
	} {
		t.Run(name, func(t *testing.T) {
			home := newHome(t)
			data := filepath.Join(home, "data")
			for _, dir := range left {
				must(t, os.MkdirAll(filepath.Join(data, dir), 0o700))
			}
			s := start(t, home)
			if exists(filepath.Join(data, "s3", ".bucket")) {
				t.Error("the rest of a bucket is still there")
			}
			tagsOf := func(bucket string) error {
				_, err := meta.XattrMeta{}.RetrieveAttribute(nil, filepath.Join(data, "s3", bucket), "",
					"X-Amz-Tagging")
				if len(left) > 1 {
					_, err = os.Stat(filepath.Join(data, "s3meta", bucket, "meta", "X-Amz-Tagging"))
				}
				return err
			}
			client := s3Client(s.Status.S3Endpoint, s.Keys)
			for i := range 50 {
				bucket, made := fmt.Sprint("bucket-", i), make(chan error, 1)
				go func() {
					_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: &bucket,
						CreateBucketConfiguration: &types.CreateBucketConfiguration{
							Tags: []types.Tag{{Key: aws.String("key"), Value: aws.String("value")}},
						}})
					made <- err
				}()
				for !exists(filepath.Join(data, "s3", bucket)) && len(made) == 0 {
				}
				if err := tagsOf(bucket); err != nil {
					t.Fatalf("%s is seen without its tags: %v", bucket, err)
				}
				must(t, <-made)
			}
		})
	}
}

func TestWhatWasAcknowledgedSurvivesEveryKill(t *testing.T) {
	home := newHome(t)
	written, rounds := 0, 3
	if *soaktest.Full {
		rounds = 10
	}
	for round := range rounds {
		p := spawn(t, "service", home)
		p.says(t, "running")
		status, err := devserver.ReadStatus(home)
		must(t, err)
		keys, err := devserver.ReadKeys(home)
		must(t, err)
		s := &devserver.Server{Status: status, Keys: keys}
		client := s3Client(status.S3Endpoint, keys)
		etag := ""
		if round > 0 {
			var text string
			text, etag = readObject(t, s, "counter")
			// One put may have been done and not acknowledged.
			if found, _ := strconv.Atoi(text); found != written && found != written+1 {
				t.Fatalf("the counter is %q after %d was acknowledged", text, written)
			} else {
				written = found
			}
		}
		for enough := written + 50; ; written++ {
			if written == enough {
				go p.kill() // in the middle of what follows
			}
			in := &s3.PutObjectInput{Bucket: aws.String(devserver.Bucket), Key: aws.String("counter"),
				Body: strings.NewReader(strconv.Itoa(written + 1))}
			if etag != "" {
				in.IfMatch = aws.String(etag)
			}
			out, err := client.PutObject(t.Context(), in, func(o *s3.Options) { o.RetryMaxAttempts = 1 })
			if err != nil {
				break
			}
			etag = aws.ToString(out.ETag)
		}
		p.kill()
	}
}

func TestTheS3ServerEndsWithThePipeOfItsParent(t *testing.T) {
	home := newHome(t)
	t.Setenv("DEPLOYCTL_PARENT_PIPE", "1") // without a parent that the kernel would tell of
	p := spawn(t, "s3", home)
	waittest.Until(t, "the objects are served", func() bool {
		conn, err := net.Dial("tcp", address(keptPorts(t, home).S3))
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
	must(t, p.stdin.Close())
	<-p.ended
	if !p.ProcessState.Success() {
		t.Errorf("it ended with %s", p.ProcessState)
	}
}

func TestThePartsStandAlone(t *testing.T) {
	home := newHome(t)
	server, err := devserver.StartTemporal(t.Context(), home, servers.All{})
	must(t, err)
	namespaceID(t, &devserver.Server{Status: devserver.Status{TemporalAddress: server.Address,
		TemporalCredentials: server.Credentials}})
	spawn(t, "s3", home)
	keys, err := devserver.ReadKeys(home)
	must(t, err)
	client := s3Client("http://"+address(keptPorts(t, home).S3), keys)
	waittest.Until(t, "a bucket is made", func() bool {
		_, err := client.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(devserver.Bucket)})
		mine := (*types.BucketAlreadyOwnedByYou)(nil)
		return err == nil || errors.As(err, &mine) // the answer of a call before may have been lost
	})
	if err := devserver.Reset(home); err == nil {
		t.Error("the home was reset under the running parts")
	}
	must(t, server.Close(t.Context()))
}

func TestAnInterruptedResetIsFinishedByTheNextStart(t *testing.T) {
	home := newHome(t)
	s := start(t, home)
	writeObject(t, s, "key", "value")
	must(t, s.Close(t.Context()))
	must(t, os.Rename(filepath.Join(home, "data"), filepath.Join(home, "trash")))
	s = start(t, home)
	if exists(filepath.Join(home, "trash")) {
		t.Error("the trash is still there")
	}
	writeObject(t, s, "key", "another")
}

func TestAKilledS3ServerIsStartedAgain(t *testing.T) {
	home := newHome(t)
	s := start(t, home)
	writeObject(t, s, "key", "before")
	text, err := os.ReadFile(pidFile(home))
	must(t, err)
	child, err := strconv.Atoi(string(text))
	must(t, err)
	must(t, syscall.Kill(child, syscall.SIGKILL))
	writeObject(t, s, "key", "after") // the client's own retries bridge the gap, or the next line does
	if text, _ := readObject(t, s, "key"); text != "after" {
		t.Errorf("the object is %q", text)
	}
}

func TestAHomeWithoutExtendedAttributesKeepsMetadataBeside(t *testing.T) {
	home := newHome(t)
	must(t, os.MkdirAll(filepath.Join(home, "data", "s3meta"), 0o700)) // as where the file system has none
	s := start(t, home)
	compareAndSwap(t, s)
	if entries, _ := os.ReadDir(filepath.Join(home, "data", "s3meta", devserver.Bucket)); len(entries) == 0 {
		t.Error("no metadata beside the objects")
	}
}

func TestLostKeysAreNotMadeAnew(t *testing.T) {
	home := newHome(t)
	must(t, start(t, home).Close(t.Context()))
	must(t, os.Remove(filepath.Join(home, "data", "keys.json")))
	_, err := devserver.Start(t.Context(), options(home))
	if err == nil || !strings.Contains(err.Error(), "put it back from a copy") {
		t.Errorf("the start says %v", err)
	}
}

func TestADatabaseOfAnotherSchemaIsRefused(t *testing.T) {
	home := newHome(t)
	must(t, start(t, home).Close(t.Context()))
	other, err := json.Marshal(parts.Schema{Executions: "99.0"})
	must(t, err)
	must(t, os.WriteFile(filepath.Join(home, "data", "temporal", "schema.json"), other, 0o600))
	_, err = devserver.Start(t.Context(), options(home))
	if err == nil || !strings.Contains(err.Error(), "use the version that made it") {
		t.Errorf("the start says %v", err)
	}
}

func writeObject(t *testing.T, s *devserver.Server, key, text string) {
	t.Helper()
	client := s3Client(s.Status.S3Endpoint, s.Keys)
	waittest.Until(t, "object "+key+" is written", func() bool {
		_, err := client.PutObject(t.Context(),
			&s3.PutObjectInput{Bucket: aws.String(devserver.Bucket), Key: aws.String(key), Body: strings.NewReader(text)})
		return err == nil
	})
}

func readObject(t *testing.T, s *devserver.Server, key string) (text, etag string) {
	t.Helper()
	out, err := s3Client(s.Status.S3Endpoint, s.Keys).
		GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String(devserver.Bucket), Key: aws.String(key)})
	must(t, err)
	defer func() { _ = out.Body.Close() }()
	body, err := io.ReadAll(out.Body)
	must(t, err)
	return string(body), aws.ToString(out.ETag)
}
