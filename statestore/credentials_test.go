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

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// doorman is an S3 server that accepts one access key at a time.
type doorman struct {
	accepts atomic.Value // string
	refused atomic.Int32
	// turnAway is called, once, when a key is refused that was accepted before.
	turnAway func()
}

func (d *doorman) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.Contains(r.Header.Get("Authorization"), "Credential="+d.accepts.Load().(string)+"/") {
		w.Header().Set("ETag", `"tag"`)
		_, _ = w.Write([]byte("content"))
		return
	}
	if d.refused.Add(1) == 1 && d.turnAway != nil {
		d.turnAway()
	}
	w.WriteHeader(http.StatusForbidden)
	_, _ = w.Write([]byte("<Error><Code>InvalidAccessKeyId</Code><Message>no</Message></Error>"))
}

func TestCredentialsThatAreRefusedAreReadAgain(t *testing.T) {
	for _, c := range []struct {
		name   string
		config func(dir string) // writes what stays
		rotate func(t *testing.T, dir, key string)
	}{
		{"from the shared credentials file", func(string) {}, func(t *testing.T, dir, key string) {
			write(t, filepath.Join(dir, "credentials"), fmt.Sprintf(
				"[default]\naws_access_key_id = %s\naws_secret_access_key = s\n", key))
		}},
		{"from a process", func(dir string) {
			write(t, filepath.Join(dir, "config"), "[default]\ncredential_process = cat "+filepath.Join(dir,
				"answer")+"\n")
		}, func(t *testing.T, dir, key string) {
			write(t, filepath.Join(dir, "answer"), fmt.Sprintf(`{"Version":1,"AccessKeyId":%q,"SecretAccessKey":"s"}`,
				key))
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			withoutAWS(t)
			dir := t.TempDir()
			t.Setenv("AWS_CONFIG_FILE", filepath.Join(dir, "config"))
			t.Setenv("AWS_SHARED_CREDENTIALS_FILE", filepath.Join(dir, "credentials"))
			c.config(dir)
			c.rotate(t, dir, "OLD")
			door := &doorman{}
			door.accepts.Store("OLD")
			door.turnAway = func() { c.rotate(t, dir, "NEW") }
			server := httptest.NewServer(door)
			defer server.Close()
			o, err := bucket.OpenS3(t.Context(), bucket.S3Options{Endpoint: server.URL, Region: "us-east-1",
				Bucket: s3test.Bucket})
			if err != nil {
				t.Fatal(err)
			}
			objects := bucket.NewRetry(o, time.Minute)
			if _, err := objects.Get(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			door.accepts.Store("NEW")
			if got, err := objects.Get(t.Context(), "key"); err != nil || string(got.Data) != "content" {
				t.Errorf("got %q, %v", got.Data, err)
			}
			if door.refused.Load() == 0 {
				t.Error("the old key was never refused")
			}
		})
	}
}

// signatory is an S3 server that knows one secret key at a time.
type signatory struct{ secret atomic.Value }

func (s *signatory) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !s.signed(r) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = w.Write([]byte("<Error><Code>SignatureDoesNotMatch</Code><Message>no</Message></Error>"))
		return
	}
	w.Header().Set("ETag", `"tag"`)
	_, _ = w.Write([]byte("content"))
}

// signed signs the request again, and compares.
func (s *signatory) signed(r *http.Request) bool {
	at, err := time.Parse("20060102T150405Z", r.Header.Get("X-Amz-Date"))
	again, errAgain := http.NewRequest(r.Method, "http://"+r.Host+r.URL.RequestURI(), nil)
	if err != nil || errAgain != nil {
		return false
	}
	_, headers, _ := strings.Cut(r.Header.Get("Authorization"), "SignedHeaders=")
	headers, _, _ = strings.Cut(headers, ",")
	for _, name := range strings.Split(headers, ";") {
		if value := r.Header.Get(name); value != "" {
			again.Header.Set(name, value)
		}
	}
	keys := aws.Credentials{AccessKeyID: "MINE", SecretAccessKey: s.secret.Load().(string)}
	err = v4.NewSigner(func(o *v4.SignerOptions) { o.DisableURIPathEscaping = true }).
		SignHTTP(r.Context(), keys, again, r.Header.Get("X-Amz-Content-Sha256"), "s3", "us-east-1", at)
	return err == nil && again.Header.Get("Authorization") == r.Header.Get("Authorization")
}

func TestTheSecretInAFileIsReadAgainWhenItChangesOrIsRefused(t *testing.T) {
	withoutAWS(t)
	file := filepath.Join(t.TempDir(), "secret")
	// the clock of a file system may be coarse: what was written within a tick looks the same
	same := time.Now().Add(-time.Hour)
	put := func(secret string) {
		write(t, file, secret)
		if err := os.Chtimes(file, same, same); err != nil {
			t.Error(err)
		}
	}
	put("first\n")
	door := &signatory{}
	door.secret.Store("first")
	server := httptest.NewServer(door)
	defer server.Close()
	o, err := bucket.OpenS3(t.Context(), bucket.S3Options{
		Endpoint: server.URL, Region: "us-east-1", Bucket: s3test.Bucket, AccessKey: "MINE", SecretKey: "first",
		SecretKeyFile: file,
	})
	if err != nil {
		t.Fatal(err)
	}
	reads := func(objects bucket.Objects, when string) {
		t.Helper()
		if got, err := objects.Get(t.Context(), "key"); err != nil || string(got.Data) != "content" {
			t.Errorf("%s: got %q, %v", when, got.Data, err)
		}
	}
	patient := bucket.NewRetry(o, time.Minute)
	reads(patient, "at first")
	door.secret.Store("the next")
	put("the next\n")
	reads(o, "after a change") // at the first attempt
	door.secret.Store("the last")
	put("the last\n")
	reads(patient, "after a change that does not show")
	door.secret.Store("another")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := o.Get(t.Context(), "key"); deployments.CodeOf(err) != deployments.CodeUnauthorized {
		t.Errorf("without the file: %v", err)
	}
	put("another")
	reads(o, "when the file is back")
}

func TestCredentialsThatWereNeverAcceptedAreSaidAtOnceAndOthersAfterAWhile(t *testing.T) {
	withoutAWS(t)
	door := &doorman{}
	door.accepts.Store("OTHER")
	server := httptest.NewServer(door)
	defer server.Close()
	o, err := bucket.OpenS3(t.Context(), bucket.S3Options{
		Endpoint: server.URL, Region: "us-east-1", Bucket: s3test.Bucket, AccessKey: "MINE", SecretKey: "s",
	})
	if err != nil {
		t.Fatal(err)
	}
	objects := bucket.NewRetry(o, 2*time.Second) // enough for many attempts
	if _, err := objects.Get(t.Context(), "key"); deployments.CodeOf(err) != deployments.CodeUnauthorized ||
		door.refused.Load() != 1 {
		t.Errorf("got %v after %d refusals", err, door.refused.Load())
	}
	door.accepts.Store("MINE")
	if _, err := objects.Get(t.Context(), "key"); err != nil {
		t.Fatal(err)
	}
	door.accepts.Store("OTHER")
	if _, err := objects.Get(t.Context(), "key"); deployments.CodeOf(err) != deployments.CodeUnavailable ||
		door.refused.Load() < 3 ||
		!strings.Contains(err.Error(), "does not accept the credentials") {
		t.Errorf("got %v after %d refusals", err, door.refused.Load())
	}
	before := door.refused.Load()
	if err := objects.Delete(t.Context(), "key"); deployments.CodeOf(err) != deployments.CodeUnauthorized ||
		door.refused.Load() != before+1 {
		t.Errorf("got %v after %d refusals", err, door.refused.Load()-before)
	}
}

func TestEveryCallSaysWhyTheBucketCannotBeUsed(t *testing.T) {
	withoutAWS(t)
	for _, c := range []struct {
		status int
		code   string
		says   string
		is     deployments.Code
	}{
		{http.StatusForbidden, "SignatureDoesNotMatch", "does not accept the credentials (SignatureDoesNotMatch)",
			deployments.CodeUnauthorized},
		{http.StatusBadRequest, "ExpiredToken", "does not accept the credentials (ExpiredToken)",
			deployments.CodeUnauthorized},
		{http.StatusForbidden, "AccessDenied", "may not be used with these credentials", deployments.CodeForbidden},
		{http.StatusNotFound, "NoSuchBucket", "there is no bucket", deployments.CodeInvalid},
	} {
		t.Run(c.code, func(t *testing.T) {
			var closed atomic.Bool
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if closed.Load() {
					w.WriteHeader(c.status)
					// which no reply to HEAD has
					_, _ = fmt.Fprintf(w, "<Error><Code>%s</Code><Message>no</Message></Error>", c.code)
				}
			}))
			defer server.Close()
			o, err := bucket.OpenS3(t.Context(), bucket.S3Options{Endpoint: server.URL, Region: "us-east-1",
				Bucket: s3test.Bucket, AccessKey: "MINE", SecretKey: "s"})
			if err != nil {
				t.Fatal(err)
			}
			used := bucket.NewRetry(o, 50*time.Millisecond)
			if _, err := used.Get(t.Context(), "key"); err != nil {
				t.Fatal(err)
			}
			closed.Store(true)
			_, atOnce := o.Tag(t.Context(), "key")
			if c.code == "NoSuchBucket" { // HEAD tells it from no such key nowhere
				_, atOnce = o.Get(t.Context(), "key")
			}
			_, later := used.Get(t.Context(), "key")
			for err, code := range map[error]deployments.Code{
				atOnce: c.is, later: deployments.CodeUnavailable, bucket.CheckReachable(t.Context(),
					o): deployments.CodeUnavailable,
			} {
				if deployments.CodeOf(err) != code || !strings.Contains(err.Error(), c.says) ||
					strings.Contains(err.Error(), "does not answer") {
					t.Errorf("%s: %v", deployments.CodeOf(err), err)
				}
			}
			if refused := c.is != deployments.CodeInvalid; bucket.CredentialsRefused(later) != refused {
				t.Errorf("that credentials were refused is %t of %v", !refused, later)
			}
		})
	}
}

func write(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Error(err)
	}
}
