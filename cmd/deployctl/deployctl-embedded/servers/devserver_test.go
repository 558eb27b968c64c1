package servers_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/cookiejar"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/deployctl/deployctl/internal/devserver"
	"github.com/deployctl/deployctl/internal/testkit/porttest"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

func TestAServiceAnswersInEveryPart(t *testing.T) {
	began := time.Now()
	opts := options(newHome(t))
	opts.Codec = func(devserver.Keys) (http.Handler, error) {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("decoded")) }), nil
	}
	s, err := devserver.Start(t.Context(), opts)
	must(t, err)
	defer func() { must(t, s.Close(context.Background())) }()
	t.Logf("started in %s", time.Since(began).Round(time.Millisecond))

	t.Run("the namespace keeps closed workflows for 30 days", func(t *testing.T) {
		answer, err := frontend(t, s).DescribeNamespace(t.Context(),
			&workflowservice.DescribeNamespaceRequest{Namespace: devserver.Namespace})
		must(t, err)
		if got := answer.GetConfig().GetWorkflowExecutionRetentionTtl().AsDuration(); got != 30*24*time.Hour {
			t.Errorf("retention is %s", got)
		}
	})
	t.Run("updates can be searched by what the Web UI shows", func(t *testing.T) {
		answer, err := operatorservice.NewOperatorServiceClient(dial(t, s)).ListSearchAttributes(t.Context(),
			&operatorservice.ListSearchAttributesRequest{Namespace: devserver.Namespace})
		must(t, err)
		for _, name := range []string{"Org", "Project", "Stack", "Kind", "Result", "Initiator", "Drift"} {
			if answer.GetCustomAttributes()[name] != enums.INDEXED_VALUE_TYPE_KEYWORD {
				t.Errorf("no search attribute %s", name)
			}
		}
	})
	t.Run("the Web UI shows the namespace", func(t *testing.T) {
		response, err := browser(t, s).Get(s.Status.UIURL + "/namespaces/" + devserver.Namespace + "/workflows")
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		if response.StatusCode != http.StatusOK {
			t.Errorf("it answers %s", response.Status)
		}
	})
	t.Run("the Web UI decodes payloads at the codec endpoint", func(t *testing.T) {
		b := browser(t, s)
		response, err := b.Get(s.Status.UIURL + "/api/v1/settings")
		must(t, err)
		defer func() { _ = response.Body.Close() }()
		var settings struct{ Codec struct{ Endpoint string } }
		must(t, json.NewDecoder(response.Body).Decode(&settings))
		decoded, err := b.Post(settings.Codec.Endpoint+"/decode", "application/json", nil)
		must(t, err)
		defer func() { _ = decoded.Body.Close() }()
		if text, _ := io.ReadAll(decoded.Body); string(text) != "decoded" {
			t.Errorf("it decodes at %q, which answers %s %q", settings.Codec.Endpoint, decoded.Status, text)
		}
	})
	t.Run("an object is replaced only by who has read it", func(t *testing.T) { compareAndSwap(t, s) })
	t.Run("programs open every bucket but the service's own", func(t *testing.T) { asPrograms(t, s) })
	t.Run("every server has a log", func(t *testing.T) {
		logs, err := devserver.Logs(s.Status.Home)
		must(t, err)
		for i := range logs {
			logs[i] = filepath.Base(logs[i])
		}
		if want := []string{"s3.log", "service.log", "temporal.log"}; !slices.Equal(logs, want) {
			t.Errorf("the logs are %v, want %v", logs, want)
		}
	})
	t.Run("nobody else can read the home", func(t *testing.T) {
		must(t, filepath.WalkDir(s.Status.Home, func(path string, entry os.DirEntry, err error) error {
			must(t, err)
			info, err := entry.Info()
			if err == nil && info.Mode().Perm()&0o077 != 0 {
				t.Errorf("%s has mode %s", path, info.Mode())
			}
			return nil
		}))
	})
}

func compareAndSwap(t *testing.T, s *devserver.Server) {
	client := s3Client(s.Status.S3Endpoint, s.Keys)
	put := func(text, ifMatch, ifNoneMatch string) (string, error) {
		in := &s3.PutObjectInput{Bucket: aws.String(devserver.Bucket), Key: aws.String("stacks/head.json"),
			Body: strings.NewReader(text)}
		if ifMatch != "" {
			in.IfMatch = aws.String(ifMatch)
		}
		if ifNoneMatch != "" {
			in.IfNoneMatch = aws.String(ifNoneMatch)
		}
		out, err := client.PutObject(t.Context(), in)
		if err != nil {
			return "", err
		}
		return aws.ToString(out.ETag), nil
	}
	first, err := put("one", "", "*")
	must(t, err)
	second, err := put("two", first, "")
	must(t, err)
	for _, stale := range []struct{ ifMatch, ifNoneMatch string }{{first, ""}, {"", "*"}} {
		_, err := put("three", stale.ifMatch, stale.ifNoneMatch)
		var answer interface{ HTTPStatusCode() int }
		if !errors.As(err, &answer) || answer.HTTPStatusCode() != http.StatusPreconditionFailed {
			t.Errorf("a stale put (%+v) got %v, not 412", stale, err)
		}
	}
	if got, etag := readObject(t, s, "stacks/head.json"); got != "two" || etag != second {
		t.Errorf("the object is %q %s, want two %s", got, etag, second)
	}
}

// asPrograms uses the S3 server by the keys of programs.
func asPrograms(t *testing.T, s *devserver.Server) {
	var keys devserver.Keys
	keys.S3AccessKey, keys.S3SecretKey = s.Keys.OfPrograms()
	client, ctx := s3Client(s.Status.S3Endpoint, keys), t.Context()
	mine, own, key := aws.String("of-programs"), aws.String(devserver.Bucket), aws.String("it")
	body := func() io.Reader { return strings.NewReader("text") }
	readable := aws.String(`{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Principal": "*",
		"Action": "s3:GetObject", "Resource": "arn:aws:s3:::of-programs/*"}]}`)
	all := &types.Delete{Objects: []types.ObjectIdentifier{{Key: key}}}

	_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: mine})
	must(t, err)
	_, err = client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: mine, Policy: readable})
	must(t, err)
	_, err = client.PutObject(ctx, &s3.PutObjectInput{Bucket: mine, Key: key, Body: body()})
	must(t, err)
	_, err = client.CopyObject(ctx, &s3.CopyObjectInput{Bucket: mine, Key: aws.String("copy"),
		CopySource: aws.String("of-programs/it")})
	must(t, err)
	part, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: mine, Key: key})
	must(t, err)

	listed, err := client.ListBuckets(ctx, nil)
	must(t, err)
	if all := listed.Buckets; len(all) != 1 || *all[0].Name != *mine {
		t.Errorf("the buckets %v are listed, and not only that of programs", all)
	}

	writeObject(t, s, "it", "secret")
	for what, call := range map[string]func() error{
		"get":  func() error { _, err := client.GetObject(ctx, &s3.GetObjectInput{Bucket: own, Key: key}); return err },
		"head": func() error { _, err := client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: own, Key: key}); return err },
		"list": func() error { _, err := client.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: own}); return err },
		"put": func() error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: own, Key: key, Body: body()})
			return err
		},
		"put a new one": func() error {
			_, err := client.PutObject(ctx, &s3.PutObjectInput{Bucket: own, Key: aws.String("new/one"), Body: body()})
			return err
		},
		"delete": func() error {
			_, err := client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: own, Key: key})
			return err
		},
		"copy from": func() error {
			_, err := client.CopyObject(ctx, &s3.CopyObjectInput{Bucket: mine, Key: key,
				CopySource: aws.String(devserver.Bucket + "/it")})
			return err
		},
		"copy to": func() error {
			_, err := client.CopyObject(ctx, &s3.CopyObjectInput{Bucket: own, Key: key,
				CopySource: aws.String("of-programs/it")})
			return err
		},
		"copy a part from": func() error {
			_, err := client.UploadPartCopy(ctx, &s3.UploadPartCopyInput{Bucket: mine, Key: key, UploadId: part.UploadId,
				PartNumber: aws.Int32(1), CopySource: aws.String(devserver.Bucket + "/it")})
			return err
		},
		"begin to upload": func() error {
			_, err := client.CreateMultipartUpload(ctx, &s3.CreateMultipartUploadInput{Bucket: own, Key: key})
			return err
		},
		"make it anew": func() error {
			_, err := client.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: own})
			return err
		},
		"open it to all": func() error {
			_, err := client.PutBucketPolicy(ctx, &s3.PutBucketPolicyInput{Bucket: own, Policy: readable})
			return err
		},
		"tag it": func() error {
			_, err := client.PutBucketTagging(ctx, &s3.PutBucketTaggingInput{Bucket: own, Tagging: &types.Tagging{
				TagSet: []types.Tag{{Key: key, Value: key}}}})
			return err
		},
		"delete it": func() error {
			_, err := client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: own})
			return err
		},
	} {
		var answer interface{ HTTPStatusCode() int }
		if err := call(); !errors.As(err, &answer) || answer.HTTPStatusCode() != http.StatusForbidden {
			t.Errorf("%s in the service's own bucket is answered with %v, not 403", what, err)
		}
	}
	deleted, err := client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: own, Delete: all})
	if err == nil && len(deleted.Errors) != 1 {
		t.Errorf("objects of the service's own bucket are deleted: %+v", deleted)
	}
	if text, _ := readObject(t, s, "it"); text != "secret" {
		t.Errorf("the service's object is %q", text)
	}
	_, err = client.DeleteObjects(ctx, &s3.DeleteObjectsInput{Bucket: mine, Delete: &types.Delete{
		Objects: append(all.Objects, types.ObjectIdentifier{Key: aws.String("copy")})}})
	must(t, err)
	_, err = client.AbortMultipartUpload(ctx, &s3.AbortMultipartUploadInput{Bucket: mine, Key: key,
		UploadId: part.UploadId})
	must(t, err)
	_, err = client.DeleteBucket(ctx, &s3.DeleteBucketInput{Bucket: mine})
	must(t, err)
}

func TestANewStartFindsWhatTheLastOneLeft(t *testing.T) {
	home := newHome(t)
	first := spawn(t, "service", home)
	first.says(t, "running")
	before, err := devserver.ReadStatus(home)
	must(t, err)
	if before.State != devserver.Running || before.PID != first.Process.Pid {
		t.Fatalf("the status is %+v", before)
	}
	keys, err := devserver.ReadKeys(home)
	must(t, err)
	id := namespaceID(t, &devserver.Server{Status: before})
	writeObject(t, &devserver.Server{Status: before, Keys: keys}, "kept", "yes")

	must(t, devserver.Stop(t.Context(), home))
	if after, err := devserver.ReadStatus(home); err != nil || after.State != devserver.Stopped {
		t.Errorf("after Stop the status is %+v, %v", after, err)
	}
	if err := devserver.Stop(t.Context(), home); !errors.Is(err, devserver.ErrNotRunning) {
		t.Errorf("stopping twice says %v", err)
	}
	<-first.ended
	if !first.ProcessState.Success() {
		t.Errorf("the service ended with %s", first.ProcessState)
	}
	if text := first.said(); text != "running\n" {
		t.Errorf("the servers talked to the terminal: %q", text)
	}

	again := start(t, home)
	if !slices.Equal(again.Status.Gone, []string{before.Instance}) {
		t.Errorf("gone are %v, want %s", again.Status.Gone, before.Instance)
	}
	if again.Status.TemporalAddress != before.TemporalAddress || again.Status.UIURL == before.UIURL ||
		again.Status.S3Endpoint != before.S3Endpoint || again.Status.APIAddress != before.APIAddress {
		t.Errorf("addresses moved from %+v to %+v", before, again.Status)
	}
	if string(again.Keys.Master) != string(keys.Master) || len(keys.Master) != 32 {
		t.Error("the master key changed")
	}
	if namespaceID(t, again) != id {
		t.Error("the namespace is another one")
	}
	if text, _ := readObject(t, again, "kept"); text != "yes" {
		t.Errorf("the object is %q", text)
	}
}

func TestASecondServiceInOneHomeIsRefusedByNameOfTheFirst(t *testing.T) {
	home := newHome(t)
	s := start(t, home)
	_, err := devserver.Start(t.Context(), options(home))
	var running *devserver.RunningError
	if !errors.As(err, &running) || running.Status.PID != os.Getpid() ||
		!strings.Contains(err.Error(), "deployctl dev stop") {
		t.Errorf("the second start says %v", err)
	}
	if err := devserver.Reset(home); !errors.As(err, &running) {
		t.Errorf("a reset of a running service says %v", err)
	}
	must(t, s.Close(t.Context()))
	must(t, devserver.Reset(home))
	if exists(home + "/data") {
		t.Error("data is left after a reset")
	}
}

func TestAServiceThatIsAskedToEndKeepsItsHomeUntilItIsClosed(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	home := newHome(t)
	s, err := devserver.Start(ctx, options(home))
	must(t, err)
	defer func() { must(t, s.Close(context.Background())) }()
	must(t, s.Announce(""))
	cancel()
	must(t, s.AnnounceEnd())
	if _, err := devserver.Start(t.Context(), options(home)); !errors.As(err, new(*devserver.RunningError)) {
		t.Errorf("the next start says %v", err)
	}
	if status, err := devserver.ReadStatus(home); err != nil || status.State != devserver.Stopping ||
		status.PID != os.Getpid() {
		t.Errorf("while work is finished the status is %+v, %v", status, err)
	}
	namespaceID(t, s)
	writeObject(t, s, "what ran", "is recorded")
	must(t, s.Close(t.Context()))
	if status, err := devserver.ReadStatus(home); err != nil || status.State != devserver.Stopped {
		t.Errorf("the status is %+v, %v", status, err)
	}
}

func dial(t *testing.T, s *devserver.Server) *grpc.ClientConn {
	return dialAddress(t, s.Status.TemporalAddress, s.Status.TemporalCredentials)
}

func dialAddress(t *testing.T, address, credential string) *grpc.ClientConn {
	t.Helper()
	config, err := devserver.TemporalTLS(credential)
	must(t, err)
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(credentials.NewTLS(config)))
	must(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func frontend(t *testing.T, s *devserver.Server) workflowservice.WorkflowServiceClient {
	return workflowservice.NewWorkflowServiceClient(dial(t, s))
}

func namespaceID(t *testing.T, s *devserver.Server) string {
	t.Helper()
	answer, err := workflowservice.NewWorkflowServiceClient(dial(t, s)).
		DescribeNamespace(t.Context(), &workflowservice.DescribeNamespaceRequest{Namespace: devserver.Namespace})
	must(t, err)
	return answer.GetNamespaceInfo().GetId()
}

// browser is one that has opened a link to the Web UI.
func browser(t *testing.T, s *devserver.Server) *http.Client {
	t.Helper()
	jar, err := cookiejar.New(nil)
	must(t, err)
	b := porttest.Browser(jar)
	link, err := devserver.UILink(s.Status)
	must(t, err)
	response, err := b.Get(link)
	must(t, err)
	must(t, response.Body.Close())
	return b
}
