package statestore_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deployctl/deployctl/providers/s3/s3test"
	"github.com/deployctl/deployctl/statestore/bucket"
)

// TestABucketsAnswersAfterOnesOwnWriteAreUnderstood stands between the store and its bucket, lets the first Put have
// its effect, and answers something else.
func TestABucketsAnswersAfterOnesOwnWriteAreUnderstood(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		code   string
	}{
		{"a conflict", http.StatusConflict, "ConditionalRequestConflict"},
		{"that the condition does not hold", http.StatusPreconditionFailed, "PreconditionFailed"},
		{"that it is slow", http.StatusServiceUnavailable, "SlowDown"},
		{"that it failed", http.StatusInternalServerError, "InternalError"},
		{"nothing", 0, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			target, err := url.Parse(s3test.Endpoint)
			if err != nil {
				t.Fatal(err)
			}
			var armed atomic.Bool
			proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
				r.SetURL(target)
				r.Out.Host = r.In.Host // which is signed
			}}
			proxy.ModifyResponse = func(r *http.Response) error {
				if r.Request.Method != http.MethodPut || !armed.CompareAndSwap(true, false) {
					return nil
				}
				if c.status == 0 {
					return errors.New("cut off")
				}
				text := "<Error><Code>" + c.code + "</Code><Message>so it says</Message></Error>"
				r.StatusCode, r.ContentLength, r.Body = c.status, int64(len(text)),
					io.NopCloser(strings.NewReader(text))
				r.Header = http.Header{"Content-Type": {"application/xml"}}
				return nil
			}
			proxy.ErrorHandler = func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) }
			between := httptest.NewServer(proxy)
			defer between.Close()
			o, err := bucket.OpenS3(t.Context(), bucket.S3Options{
				Endpoint: between.URL, Region: "us-east-1", Bucket: s3test.Bucket, AccessKey: s3test.AccessKey,
				SecretKey: s3test.SecretKey, Prefix: "answers/" + strings.ReplaceAll(c.name, " ", "-") + "/",
			})
			if err != nil {
				t.Fatal(err)
			}
			retried := bucket.NewRetry(o, time.Minute)
			tag, err := retried.Put(t.Context(), "head", []byte("one"), bucket.Condition{Absent: true})
			if err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			next, err := retried.Put(t.Context(), "head", []byte("two"), bucket.Condition{Tag: tag})
			if err != nil || armed.Load() {
				t.Fatalf("the put that was carried out gave %v", err)
			}
			if got, err := retried.Get(t.Context(), "head"); err != nil || string(got.Data) != "two" ||
				got.Tag != next {
				t.Errorf("there is %q, %v", got.Data, err)
			}
			if _, err := retried.Put(t.Context(), "head", []byte("three"),
				bucket.Condition{Tag: tag}); !errors.Is(err, bucket.ErrChanged) {
				t.Errorf("the next by the same tag gave %v", err)
			}
		})
	}
}
