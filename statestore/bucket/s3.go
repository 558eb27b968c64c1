package bucket

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/deployctl/deployctl/deployments"
	"github.com/deployctl/deployctl/internal/sys/mempool"
)

// S3Options describe a bucket.
type S3Options struct {
	// Endpoint is the server's URL; empty for AWS.
	Endpoint string
	Region   string
	Bucket   string
	// Prefix is put before every key; empty, or ending with '/'.
	Prefix string
	// AccessKey and SecretKey; when both are empty, the AWS SDK searches for credentials.
	AccessKey, SecretKey string
	// Dial connects to the server; nil: as a net.Dialer does.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// SecretKeyFile, if not empty, is the file of SecretKey. It is read again when it has changed, or the key was
	// rejected.
	SecretKeyFile string
}

// S3 is an Objects in a bucket. It makes one attempt at each call; see Retry.
type S3 struct {
	client   *s3.Client
	bucket   string
	prefix   string
	endpoint string
	// md5Tags: some tag was the MD5 of its content. otherTags: some tag never was.
	md5Tags, otherTags atomic.Bool
	credentials        *searched
}

// OpenS3 prepares the use of a bucket. It does not call the server; see statestore.Store.Check.
func OpenS3(ctx context.Context, o S3Options) (*S3, error) {
	cfg, err := o.load(ctx)
	if err != nil {
		return nil, deployments.Errorf(deployments.CodeInvalid, "the S3 settings cannot be used: %w", err)
	}
	transport := awshttp.NewBuildableClient().WithTransportOptions(func(t *http.Transport) {
		t.MaxIdleConnsPerHost = 64 // events, deltas and blobs are written concurrently
		if o.Dial != nil {
			t.DialContext = o.Dial
		}
	})
	client := s3.NewFromConfig(cfg, func(so *s3.Options) {
		so.UsePathStyle = true
		so.Retryer = aws.NopRetryer{}
		so.HTTPClient = transport
		so.HTTPSignerV4 = &signer{}
		so.RequestChecksumCalculation = aws.RequestChecksumCalculationWhenRequired
		so.ResponseChecksumValidation = aws.ResponseChecksumValidationWhenRequired
		if o.Endpoint != "" {
			so.BaseEndpoint = aws.String(o.Endpoint)
		}
	})
	endpoint := o.Endpoint
	if endpoint == "" {
		endpoint = "AWS region " + o.Region
	}
	found, _ := cfg.Credentials.(*searched)
	return &S3{client: client, bucket: o.Bucket, prefix: o.Prefix, endpoint: endpoint, credentials: found}, nil
}

// String names the bucket and its server.
func (s *S3) String() string {
	if s.prefix == "" {
		return fmt.Sprintf("bucket %s at %s", s.bucket, s.endpoint)
	}
	return fmt.Sprintf("bucket %s at %s with the prefix %s", s.bucket, s.endpoint, s.prefix)
}

// Get implements Objects.
//
// A server that stores tags apart from contents may return an old content with a new tag during a Put, and a swap by
// that tag would undo the Put. Where tags are the MD5 of the content, as with most servers, this is detected and the
// read is repeated. Where they are not (AWS with its key service), tags and contents are consistent.
func (s *S3) Get(ctx context.Context, key string) (Object, error) {
	for attempt := 0; ; attempt++ {
		o, err := s.getOnce(ctx, key)
		if err != nil {
			return o, err
		}
		if o.Tag == md5Tag(o.Data) {
			s.md5Tags.Store(true)
			return o, nil
		}
		if attempt == tornReads || s.otherTags.Load() && !s.md5Tags.Load() {
			s.otherTags.Store(true)
			return o, nil
		}
		select {
		case <-ctx.Done():
			return o, ctx.Err()
		case <-time.After(tornPause):
		}
	}
}

// How often and how soon a read is repeated whose tag is not the MD5 of its content.
const (
	tornReads = 8
	tornPause = 10 * time.Millisecond
)

func md5Tag(data []byte) string {
	sum := md5.Sum(data) // S3's ETag; no secret depends on it
	return `"` + hex.EncodeToString(sum[:]) + `"`
}

func (s *S3) getOnce(ctx context.Context, key string) (Object, error) {
	out, err := s.client.GetObject(ctx, &s3.GetObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)})
	if err != nil {
		return Object{}, s.translate(err)
	}
	defer func() { _ = out.Body.Close() }()
	limit := largestOf(key)
	size := aws.ToInt64(out.ContentLength)
	if size > limit {
		return Object{}, overLimit(key, limit)
	}
	if size >= mempool.Step { // a call reads many small ones in turn
		if err := mempool.Take(ctx, size); err != nil {
			return Object{}, err
		}
	}
	var content bytes.Buffer
	content.Grow(int(max(size, 0)) + bytes.MinRead) // one that grows would be in memory twice
	if _, err := content.ReadFrom(io.LimitReader(out.Body, limit+1)); err != nil {
		return Object{}, s.translate(err)
	}
	data := content.Bytes()
	if int64(len(data)) > limit {
		return Object{}, overLimit(key, limit)
	}
	return Object{Data: data, Tag: aws.ToString(out.ETag)}, nil
}

// Tag implements Objects.
func (s *S3) Tag(ctx context.Context, key string) (string, error) {
	out, err := s.client.HeadObject(ctx, &s3.HeadObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)})
	// only the reply to a GET has the reason
	if st := status(err); st == http.StatusBadRequest || st == http.StatusForbidden {
		o, err := s.getOnce(ctx, key)
		return o.Tag, err
	}
	if err != nil {
		return "", s.translate(err)
	}
	return aws.ToString(out.ETag), nil
}

// Put implements Objects.
func (s *S3) Put(ctx context.Context, key string, data []byte, c Condition) (string, error) {
	in := &s3.PutObjectInput{
		Bucket: &s.bucket, Key: aws.String(s.prefix + key),
		Body: bytes.NewReader(data), ContentLength: aws.Int64(int64(len(data))),
	}
	if c.Absent {
		in.IfNoneMatch = aws.String("*")
	}
	if c.Tag != "" {
		in.IfMatch = aws.String(c.Tag)
	}
	out, err := s.client.PutObject(ctx, in)
	if err != nil {
		err = s.translate(err)
		if c.Tag != "" && errors.Is(err, ErrAbsent) { // S3's reply to If-Match on an object that is gone
			err = ErrChanged
		}
		return "", err
	}
	return aws.ToString(out.ETag), nil
}

// Delete implements Objects.
func (s *S3) Delete(ctx context.Context, key string) error {
	_, err := s.client.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: &s.bucket, Key: aws.String(s.prefix + key)})
	if err = s.translate(err); errors.Is(err, ErrAbsent) {
		return nil
	}
	return err
}

// List implements Objects.
func (s *S3) List(ctx context.Context, q Query) (Listing, error) {
	var l Listing
	in := &s3.ListObjectsV2Input{Bucket: &s.bucket, Prefix: aws.String(s.prefix + q.Prefix)}
	if q.Fold {
		in.Delimiter = aws.String("/")
	}
	if q.After != "" {
		in.StartAfter = aws.String(s.prefix + q.After)
	}
	if q.Limit > 0 && q.Limit < 1000 {
		in.MaxKeys = aws.Int32(int32(q.Limit) + 1)
	}
	for {
		out, err := s.client.ListObjectsV2(ctx, in)
		if err != nil {
			return Listing{}, s.translate(err)
		}
		s.page(&l, out, q.After)
		if q.Limit > 0 && len(l.Keys) > q.Limit {
			l.Keys, l.Written, l.More = l.Keys[:q.Limit], l.Written[:q.Limit], true
			return l, nil
		}
		if !aws.ToBool(out.IsTruncated) {
			return l, nil
		}
		in.ContinuationToken = out.NextContinuationToken
	}
}

// page adds the keys and the common prefixes of one response, which are each in order.
func (s *S3) page(l *Listing, out *s3.ListObjectsV2Output, after string) {
	i, j := 0, 0
	for i < len(out.Contents) || j < len(out.CommonPrefixes) {
		var key string
		var written time.Time
		if j == len(out.CommonPrefixes) ||
			i < len(out.Contents) && aws.ToString(out.Contents[i].Key) < aws.ToString(out.CommonPrefixes[j].Prefix) {
			key, written = aws.ToString(out.Contents[i].Key), aws.ToTime(out.Contents[i].LastModified)
			i++
		} else {
			key = aws.ToString(out.CommonPrefixes[j].Prefix)
			j++
		}
		if key = key[len(s.prefix):]; key > after {
			l.Keys, l.Written = append(l.Keys, key), append(l.Written, written)
		}
	}
}
